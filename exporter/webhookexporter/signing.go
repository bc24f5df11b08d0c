// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
)

const (
	headerID              = "webhook-id"
	headerTimestamp       = "webhook-timestamp"
	headerSignature       = "webhook-signature"
	headerConvoxSignature = "Convox-Signature"

	prefixHMAC    = "whsec_"
	prefixEd25519 = "whsk_"

	maxKeys = 4 // of one kind; two are enough to change from one to the next
	// minEntropy is Shannon's, in bits per byte. 24 random bytes have 4.4 or
	// so; words, counters and repeated patterns have less than 3.5.
	minEntropy = 3.5
)

// signer signs requests with the keys of one receiver. It may have none.
type signer struct {
	standard []standardKey
	convox   [][]byte
	// keyIDs tell in the audit record which keys signed: a short one-way
	// digest of each, from which nothing can be signed.
	keyIDs []string
}

// standardKey makes one entry of the webhook-signature header.
type standardKey struct {
	version string
	sign    func(message []byte) []byte
}

// newSigner reads the keys. A key that cannot be used is an error, so that
// nothing is ever sent unsigned by accident; the error never shows the key.
func newSigner(receiver string, cfg SigningConfig) (*signer, error) {
	s := &signer{}
	var errs []error
	if len(cfg.Standard) > maxKeys {
		errs = append(errs, fmt.Errorf("%s::signing::standard: at most %d keys", receiver, maxKeys))
	}
	if len(cfg.Convox) > maxKeys {
		errs = append(errs, fmt.Errorf("%s::signing::convox: at most %d keys", receiver, maxKeys))
	}
	for i, key := range cfg.Standard {
		if err := s.addStandard(strings.TrimSpace(string(key))); err != nil {
			errs = append(errs, fmt.Errorf("%s::signing::standard[%d]: %w", receiver, i, err))
		}
	}
	for i, key := range cfg.Convox {
		if err := s.addConvox(key); err != nil {
			errs = append(errs, fmt.Errorf("%s::signing::convox[%d]: %w", receiver, i, err))
		}
	}
	return s, errors.Join(errs...)
}

func (s *signer) addStandard(text string) error {
	if encoded, ok := strings.CutPrefix(text, prefixHMAC); ok {
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		switch {
		case err != nil:
			return errors.New("is not base64 after whsec_")
		case len(secret) < 24 || len(secret) > 64:
			return fmt.Errorf("holds %d bytes; a whsec_ key has 24 to 64", len(secret))
		case entropy(secret) < minEntropy:
			return errNotRandom
		}
		s.standard = append(s.standard, standardKey{"v1", func(m []byte) []byte { return hmacSHA256(secret, m) }})
		s.keyIDs = append(s.keyIDs, "v1:"+digest(secret))
		return nil
	}
	encoded, ok := strings.CutPrefix(text, prefixEd25519)
	if !ok {
		return errors.New("must start with whsec_ (HMAC-SHA256) or whsk_ (ed25519 private key)")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return errors.New("is not base64 after whsk_")
	}
	if len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize {
		return fmt.Errorf("holds %d bytes; a whsk_ key has %d (seed) or %d (seed and public key)", len(raw), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	if entropy(raw[:ed25519.SeedSize]) < minEntropy {
		return errNotRandom
	}
	private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	if len(raw) == ed25519.PrivateKeySize && !bytes.Equal(raw, private) {
		return errors.New("holds a public key that does not belong to its seed")
	}
	s.standard = append(s.standard, standardKey{"v1a", func(m []byte) []byte { return ed25519.Sign(private, m) }})
	s.keyIDs = append(s.keyIDs, "v1a:"+digest(private.Public().(ed25519.PublicKey)))
	return nil
}

func (s *signer) addConvox(key configopaque.String) error {
	text := strings.TrimSpace(string(key))
	if len(text) < 64 || strings.ToLower(text) != text {
		return errors.New("must be at least 64 lower-case hexadecimal digits; make one with: openssl rand -hex 32")
	}
	secret, err := hex.DecodeString(text)
	if err != nil {
		return errors.New("must be an even number of lower-case hexadecimal digits; make one with: openssl rand -hex 32")
	}
	if entropy(secret) < minEntropy {
		return errNotRandom
	}
	s.convox = append(s.convox, secret)
	s.keyIDs = append(s.keyIDs, "convox:"+digest(secret))
	return nil
}

var errNotRandom = errors.New("is not random enough to be a key; make one with: openssl rand")

// sign sets the headers of one attempt. The id and the time are sent even
// without a key: receivers tell repetitions by the id.
func (s *signer) sign(h http.Header, id string, now time.Time, body []byte) {
	unix := strconv.FormatInt(now.Unix(), 10)
	h.Set(headerID, id)
	h.Set(headerTimestamp, unix)
	if len(s.standard) > 0 {
		message := append([]byte(id+"."+unix+"."), body...)
		entries := make([]string, len(s.standard))
		for i, key := range s.standard {
			entries[i] = key.version + "," + base64.StdEncoding.EncodeToString(key.sign(message))
		}
		h.Set(headerSignature, strings.Join(entries, " "))
	}
	if len(s.convox) > 0 {
		message := append([]byte(unix+"."), body...)
		value := "t=" + unix
		for _, key := range s.convox {
			value += ",v1=" + hex.EncodeToString(hmacSHA256(key, message))
		}
		h.Set(headerConvoxSignature, value)
	}
}

// webhookID returns the id that is sent for an event: its own where a header
// and a signature can carry it (a dot would make the signed text ambiguous),
// else a digest, which is as stable.
func webhookID(eventID string) string {
	for i := range len(eventID) {
		switch c := eventID[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			sum := sha256.Sum256([]byte(eventID))
			return "evt_" + hex.EncodeToString(sum[:16])
		}
	}
	return eventID
}

func hmacSHA256(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// digest names a key without telling it.
func digest(key []byte) string {
	sum := sha256.Sum256(append([]byte("webhook signing key id\x00"), key...))
	return hex.EncodeToString(sum[:4])
}

// entropy is Shannon's entropy of the bytes, in bits per byte:
// H = -sum p(b) log2 p(b) over the byte values b that occur.
func entropy(data []byte) float64 {
	var count [256]int
	for _, b := range data {
		count[b]++
	}
	h := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(data))
			h -= p * math.Log2(p)
		}
	}
	return h
}
