// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// minFingerprintKey is the least length of a fingerprint key, in bytes: that of
// the digest.
const minFingerprintKey = sha256.Size

// keyName is what a checkpoint key may be called: it becomes the origin of the
// checkpoints, a line of a signed note.
var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,126}$`)

// CheckpointKey signs checkpoints.
type CheckpointKey struct {
	signer note.Signer
	public note.Verifier
}

// GenerateCheckpointKey makes an ed25519 key pair in the text form of signed
// notes (C2SP). The name becomes the origin of the checkpoints.
func GenerateCheckpointKey(name string) (private, public string, err error) {
	if !keyName.MatchString(name) {
		return "", "", errors.New("a key's name is 1 to 127 letters, digits, dots, dashes, underscores or slashes and starts with a letter or digit")
	}
	return note.GenerateKey(rand.Reader, name)
}

// ParseCheckpointKey reads a private key as GenerateCheckpointKey makes it. Its
// errors do not show the key.
func ParseCheckpointKey(text string) (*CheckpointKey, error) {
	signer, err := note.NewSigner(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is not a private checkpoint key (PRIVATE+KEY+name+hash+…); make one with gpuctl audit keygen")
	}
	if !keyName.MatchString(signer.Name()) {
		return nil, errors.New("is a checkpoint key with a name of other characters than letters, digits, dots, dashes, underscores and slashes; make one with gpuctl audit keygen")
	}
	public, err := publicOf(signer.Name(), strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is a checkpoint key that is not ed25519; make one with gpuctl audit keygen")
	}
	return &CheckpointKey{signer, public}, nil
}

// publicOf derives the public key of a private one in the text form of signed
// notes, PRIVATE+KEY+name+hash+base64(algorithm, seed).
func publicOf(name, private string) (note.Verifier, error) {
	parts := strings.SplitN(private, "+", 5) // base64 has plus signs of its own
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil {
		return nil, err
	}
	if len(raw) != 1+ed25519.SeedSize {
		return nil, errors.New("another length")
	}
	text, err := note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return note.NewVerifier(text)
}

// origin is what the checkpoints are from: the key's name.
func (k *CheckpointKey) origin() string { return k.signer.Name() }

func (k *CheckpointKey) id() string { return keyID(k.signer.KeyHash()) }

func keyID(hash uint32) string { return fmt.Sprintf("%08x", hash) }

// PublicKeys check checkpoints.
type PublicKeys struct {
	list []note.Verifier
}

// with are these keys and the one that belongs to a private key.
func (p *PublicKeys) with(k *CheckpointKey) *PublicKeys {
	if k == nil {
		return p
	}
	all := []note.Verifier{k.public}
	if p != nil {
		for _, v := range p.list {
			if v.Name() != k.public.Name() || v.KeyHash() != k.public.KeyHash() {
				all = append(all, v)
			}
		}
	}
	return &PublicKeys{all}
}

// ParsePublicKeys reads public keys, one a line, as GenerateCheckpointKey makes
// them. Empty lines and lines that start with # are left out.
func ParsePublicKeys(text string) (*PublicKeys, error) {
	var list []note.Verifier
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := note.NewVerifier(line)
		if err != nil {
			return nil, fmt.Errorf("line %d is not a public checkpoint key (name+hash+…)", i+1)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, errors.New("holds no public key")
	}
	return &PublicKeys{list}, nil
}

// noteText is what a checkpoint's signature covers: origin, size and root hash
// as in a C2SP checkpoint, then two lines of ours. The root hash is the head of
// the chain, not a Merkle tree's.
func noteText(c *checkpointBody, log string, head digest) string {
	return fmt.Sprintf("%s\n%d\n%s\nlog %s\ntime %s\n", c.Origin, c.Count,
		base64.StdEncoding.EncodeToString(head[:]), log, c.Time.Format(time.RFC3339Nano))
}

// sign makes the checkpoint of the first count lines of a log.
func (k *CheckpointKey) sign(log string, count uint64, head digest, now time.Time) (*checkpointBody, error) {
	c := &checkpointBody{Time: utc(now), Origin: k.origin(), Count: count, Head: head.String(), KeyID: k.id()}
	signed, err := note.Sign(&note.Note{Text: noteText(c, log, head)}, k.signer)
	if err != nil {
		return nil, err
	}
	c.Note = string(signed)
	return c, nil
}

// Fingerprint is the HMAC-SHA256 of a URL, in hexadecimal: who has the key and
// the URL can verify that a record is about it; with the record alone that is not possible,
// try URLs out.
func Fingerprint(key []byte, url string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(url))
	return hex.EncodeToString(mac.Sum(nil))
}

// GenerateFingerprintKey makes a key in the text form that ParseFingerprintKey
// reads.
func GenerateFingerprintKey() (string, error) {
	key := make([]byte, minFingerprintKey)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return hex.EncodeToString(key), nil
}

// ParseFingerprintKey reads a key: 64 hexadecimal digits or more. Its errors do
// not show the key.
func ParseFingerprintKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) < minFingerprintKey {
		return nil, errors.New("is not a fingerprint key (64 hexadecimal digits or more); make one with gpuctl audit keygen")
	}
	return key, nil
}
