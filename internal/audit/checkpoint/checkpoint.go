// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint has the keys that sign the head of an audit log's chain, and
// the form of what they sign.
package checkpoint // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
)

// Head is where the chain of a log stood: the first Count lines end in the
// digest Head.
type Head struct {
	Log   string `json:"log"`
	Count uint64 `json:"count"`
	Head  string `json:"head"`
}

// MaxUncovered is after how many lines a writer makes a checkpoint that is not due
// yet.
const MaxUncovered = 10_000

// Key signs checkpoints.
type Key struct {
	signer note.Signer
	public note.Verifier
}

// GenerateKey makes an ed25519 key pair in the text form of signed
// notes (C2SP). The name becomes the origin of the checkpoints.
func GenerateKey(name string) (private, public string, err error) {
	if !codec.KeyName.MatchString(name) {
		return "", "", errors.New("a key's name is 1 to 127 letters, digits, dots, dashes, underscores or slashes and starts with a letter or digit")
	}
	return note.GenerateKey(rand.Reader, name)
}

// ParseKey reads a private key as GenerateKey makes it. Its
// errors do not show the key.
func ParseKey(text string) (*Key, error) {
	signer, err := note.NewSigner(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is not a private checkpoint key (PRIVATE+KEY+name+hash+…); make one with gpuctl audit keygen")
	}
	if !codec.KeyName.MatchString(signer.Name()) {
		return nil, errors.New("is a checkpoint key with a name of other characters than letters, digits, dots, dashes, underscores and slashes; make one with gpuctl audit keygen")
	}
	public, err := publicOf(signer.Name(), strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is a checkpoint key that is not ed25519; make one with gpuctl audit keygen")
	}
	return &Key{signer, public}, nil
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
func (k *Key) origin() string { return k.signer.Name() }

func (k *Key) id() string { return KeyID(k.signer.KeyHash()) }

// KeyID is what a checkpoint calls the key with this hash.
func KeyID(hash uint32) string { return fmt.Sprintf("%08x", hash) }

// PublicKeys check checkpoints.
type PublicKeys struct {
	list []note.Verifier
}

// With are these keys and the one that belongs to a private key.
func (p *PublicKeys) With(k *Key) *PublicKeys {
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

// Verifiers are the keys as signed notes have them.
func (p *PublicKeys) Verifiers() note.Verifiers { return note.VerifierList(p.list...) }

// ParsePublicKeys reads public keys, one a line, as GenerateKey makes
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

// NoteText is what a checkpoint's signature covers: origin, size and root hash
// as in a C2SP checkpoint, then two lines of ours. The root hash is the head of
// the chain, not a Merkle tree's.
func NoteText(c *codec.CheckpointBody, log string, head codec.Digest) string {
	return fmt.Sprintf("%s\n%d\n%s\nlog %s\ntime %s\n", c.Origin, c.Count,
		base64.StdEncoding.EncodeToString(head[:]), log, c.Time.Format(time.RFC3339Nano))
}

// Sign makes the checkpoint of the first count lines of a log.
func (k *Key) Sign(log string, count uint64, head codec.Digest, now time.Time) (*codec.CheckpointBody, error) {
	c := &codec.CheckpointBody{Time: codec.UTC(now), Origin: k.origin(), Count: count, Head: head.String(), KeyID: k.id()}
	signed, err := note.Sign(&note.Note{Text: NoteText(c, log, head)}, k.signer)
	if err != nil {
		return nil, err
	}
	c.Note = string(signed)
	return c, nil
}
