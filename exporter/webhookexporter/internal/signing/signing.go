// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package signing // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"

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
	HeaderID              = "webhook-id"
	HeaderTimestamp       = "webhook-timestamp"
	HeaderSignature       = "webhook-signature"
	HeaderConvoxSignature = "Convox-Signature"

	prefixHMAC    = "whsec_"
	prefixEd25519 = "whsk_"

	maxKeys = 4 // of one kind; two are enough to change from one to the next
	// minEntropy is Shannon's, in bits per byte. 24 random bytes have 4.4 or
	// so; words, counters and repeated patterns have less than 3.5.
	minEntropy = 3.5
)

// Config holds signing keys. More than one key of a kind signs with
// each, so that a receiver can change from one to the next.
type Config struct {
	// Standard are Standard Webhooks keys: whsec_… (HMAC-SHA256) or whsk_…
	// (ed25519 private key), base64.
	Standard []configopaque.String `mapstructure:"standard"`
	// Convox are keys for the Convox-Signature header, lower-case hexadecimal.
	Convox []configopaque.String `mapstructure:"convox"`
}

// Signer signs requests with the keys of one receiver. It may have none.
type Signer struct {
	standard []standardKey
	convox   [][]byte
	// KeyIDs name the keys that signed in the audit record: a short one-way
	// digest of each, from which nothing can be signed.
	KeyIDs []string
}

// standardKey makes one entry of the webhook-signature header.
type standardKey struct {
	version string
	sign    func(message []byte) []byte
}

// New reads the keys. A key that cannot be used is an error, so that
// nothing is ever sent unsigned by accident; the error never shows the key.
func New(receiver string, cfg Config) (*Signer, error) {
	s := &Signer{}
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

func (s *Signer) addStandard(text string) error {
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
		s.KeyIDs = append(s.KeyIDs, "v1:"+digest(secret))
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
	s.KeyIDs = append(s.KeyIDs, "v1a:"+digest(private.Public().(ed25519.PublicKey)))
	return nil
}

func (s *Signer) addConvox(key configopaque.String) error {
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
	s.KeyIDs = append(s.KeyIDs, "convox:"+digest(secret))
	return nil
}

var errNotRandom = errors.New("is not random enough to be a key; make one with: openssl rand")

// Sign sets the headers of one attempt. The id and the time are sent even
// without a key: receivers recognize repetitions by the id.
func (s *Signer) Sign(h http.Header, id string, now time.Time, body []byte) {
	unix := strconv.FormatInt(now.Unix(), 10)
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, unix)
	if len(s.standard) > 0 {
		message := append([]byte(id+"."+unix+"."), body...)
		entries := make([]string, len(s.standard))
		for i, key := range s.standard {
			entries[i] = key.version + "," + base64.StdEncoding.EncodeToString(key.sign(message))
		}
		h.Set(HeaderSignature, strings.Join(entries, " "))
	}
	if len(s.convox) > 0 {
		message := append([]byte(unix+"."), body...)
		value := "t=" + unix
		for _, key := range s.convox {
			value += ",v1=" + hex.EncodeToString(hmacSHA256(key, message))
		}
		h.Set(HeaderConvoxSignature, value)
	}
}

func hmacSHA256(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// digest names a key without revealing it.
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
