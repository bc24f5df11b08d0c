// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package codec reads and writes the lines of an audit log.
package codec // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// schemaVersion is the v of every line. A change that a reader of today would
// misunderstand gets the next number.
const schemaVersion = 1

// MaxLine bounds a line, line feed included. A record is far below it; what is
// longer is no line of ours.
const MaxLine = 1 << 20

// KeyName is what a checkpoint key may be called: it becomes the origin of the
// checkpoints, a line of a signed note.
var KeyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,126}$`)

// Kinds of lines.
const (
	KindFile       = "file"       // first line of every file
	KindOpen       = "open"       // a writer began
	KindRecord     = "record"     // a Record
	KindCheckpoint = "checkpoint" // signed count and head
	KindGap        = "gap"        // records that could not be kept while the disk failed
	KindTorn       = "torn"       // an interrupted write before this line was closed off
	KindRemoved    = "removed"    // old files were deleted by max_files
	KindClose      = "close"      // a writer ended in good order
)

// Digest is the SHA-256 of a line, its line feed excluded. The first line of a
// log refers to the zero digest.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// FileBody is the first line of a file.
type FileBody struct {
	Time time.Time `json:"time"`
	Log  string    `json:"log"`  // UUIDv7 of the whole log, equal in all its files
	File int       `json:"file"` // from 1
}

type OpenBody struct {
	Time time.Time `json:"time"`
}

// CloseBody is empty: then every byte of the line follows from the lines
// before, and a change of any is seen even where no line comes after it.
type CloseBody struct{}

// CheckpointBody spells out the signed note.
type CheckpointBody struct {
	Time   time.Time `json:"time"`
	Origin string    `json:"origin"` // name of the key
	Count  uint64    `json:"count"`  // lines before this one, from the log's first
	Head   string    `json:"head"`   // digest of the last of them
	KeyID  string    `json:"key_id"`
	Note   string    `json:"note"` // C2SP signed note
}

type GapBody struct {
	Lost uint64    `json:"lost"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// TornBody records the bytes between the line before in the chain and this
// line.
type TornBody struct {
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	SHA256 string    `json:"sha256"`
}

// RemovedBody records that all files up to one were deleted, and where the chain
// stood at their end.
type RemovedBody struct {
	Time        time.Time `json:"time"`
	ThroughFile int       `json:"through_file"`
	LastSeq     uint64    `json:"last_seq"`
	Head        string    `json:"head"`
}

type EventBody struct {
	Name string    `json:"name"`
	ID   string    `json:"id"`
	Key  string    `json:"key,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// RecordBody is a Record. Names are those of the courtesy log line where it has
// the field too.
type RecordBody struct {
	ID                string      `json:"id"` // first, where Find looks for it
	Time              time.Time   `json:"time"`
	Events            []EventBody `json:"events"`
	WebhookID         string      `json:"webhook_id"`
	TraceID           string      `json:"trace_id,omitempty"`
	Trigger           string      `json:"trigger,omitempty"`
	Receiver          string      `json:"receiver"`
	URLScheme         string      `json:"url_scheme"`
	URLHost           string      `json:"url_host"`
	URLPort           uint16      `json:"url_port"`
	URLFingerprint    string      `json:"url_fingerprint,omitempty"`
	PeerAddress       string      `json:"peer_address,omitempty"`
	Format            string      `json:"format"`
	Attempt           int         `json:"attempt"`
	MaxAttempts       int         `json:"max_attempts"`
	BodySHA256        string      `json:"body_sha256,omitempty"`
	BodySize          int         `json:"body_size,omitempty"`
	SignatureKeyIDs   []string    `json:"signature_key_ids,omitempty"`
	Outcome           string      `json:"outcome"`
	Status            int         `json:"status"`
	ErrorType         string      `json:"error.type,omitempty"`
	RetryAfterSeconds float64     `json:"retry_after_seconds,omitempty"`
	NextAttempt       time.Time   `json:"next_attempt,omitzero"`
	NotStored         bool        `json:"not_stored,omitempty"`
	QueuedSeconds     float64     `json:"queued_seconds"`
	DNSSeconds        float64     `json:"dns_seconds,omitempty"`
	ConnectSeconds    float64     `json:"connect_seconds,omitempty"`
	TLSSeconds        float64     `json:"tls_seconds,omitempty"`
	FirstByteSeconds  float64     `json:"first_byte_seconds,omitempty"`
	TotalSeconds      float64     `json:"total_seconds,omitempty"`
}

// UTC keeps times that JSON can write; a time outside years 1 to 9999 becomes zero.
func UTC(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	if t = t.UTC().Round(0); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// Prefix starts every line.
var Prefix = fmt.Appendf(nil, `{"v":%d,"seq":`, schemaVersion)

// Envelope is what every line has.
type Envelope struct {
	Seq  uint64
	Prev Digest
	Kind string
}

// Append writes a line, line feed included. body is a JSON object.
func Append(b []byte, e Envelope, body []byte) []byte {
	b = append(b, Prefix...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"prev_hash":"`...)
	b = hex.AppendEncode(b, e.Prev[:])
	b = append(b, `","kind":"`...)
	b = append(b, e.Kind...)
	b = append(b, '"')
	if len(body) > len("{}") {
		b = append(b, ',')
	}
	b = append(b, body[1:]...)
	return append(b, '\n')
}

var (
	ErrNotALine = errors.New("is not a line of an audit log")
	ErrVersion  = errors.New("is of a version that this program does not know")
)

// ParseEnvelope reads the head of a line (without its line feed) and returns
// the rest of it as the JSON object that Append was given. It does not look
// into that.
func ParseEnvelope(line []byte) (e Envelope, body []byte, err error) {
	rest, ok := bytes.CutPrefix(line, Prefix)
	if !ok {
		if v, ok := bytes.CutPrefix(line, []byte(`{"v":`)); ok && len(v) > 1 && v[0] >= '1' && v[0] <= '9' {
			return e, nil, ErrVersion
		}
		return e, nil, ErrNotALine
	}
	digits, rest, ok := bytes.Cut(rest, []byte(`,"prev_hash":"`))
	if !ok || len(rest) < hex.EncodedLen(len(e.Prev)) || len(digits) > 20 {
		return e, nil, ErrNotALine
	}
	if e.Seq, err = strconv.ParseUint(string(digits), 10, 64); err != nil || e.Seq == 0 || digits[0] == '0' {
		return e, nil, ErrNotALine
	}
	hash := rest[:hex.EncodedLen(len(e.Prev))]
	if _, err := hex.Decode(e.Prev[:], hash); err != nil || bytes.ContainsAny(hash, "ABCDEF") {
		return e, nil, ErrNotALine
	}
	rest, ok = bytes.CutPrefix(rest[len(hash):], []byte(`","kind":"`))
	if !ok {
		return e, nil, ErrNotALine
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || len(rest) < end+2 || rest[len(rest)-1] != '}' {
		return e, nil, ErrNotALine
	}
	e.Kind = string(rest[:end])
	rest = rest[end+1:]
	switch {
	case rest[0] == ',':
		return e, append([]byte{'{'}, rest[1:]...), nil
	case len(rest) == 1:
		return e, []byte("{}"), nil
	default:
		return e, nil, ErrNotALine
	}
}

// Parse reads a line (without its line feed) whole. It accepts what
// Append writes and nothing else: JSON with the same content in other bytes
// has been changed.
func Parse(line []byte) (Envelope, any, error) {
	e, raw, err := ParseEnvelope(line)
	if err != nil {
		return e, nil, err
	}
	var body any
	switch e.Kind {
	case KindFile:
		body = &FileBody{}
	case KindOpen:
		body = &OpenBody{}
	case KindRecord:
		body = &RecordBody{}
	case KindCheckpoint:
		body = &CheckpointBody{}
	case KindGap:
		body = &GapBody{}
	case KindTorn:
		body = &TornBody{}
	case KindRemoved:
		body = &RemovedBody{}
	case KindClose:
		body = &CloseBody{}
	default:
		return e, nil, ErrNotALine
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(body); err != nil {
		return e, nil, ErrNotALine
	}
	if _, err := dec.Token(); err != io.EOF {
		return e, nil, ErrNotALine
	}
	again, err := json.Marshal(body)
	if err != nil || !bytes.Equal(again, raw) || !named(body) {
		return e, nil, ErrNotALine
	}
	return e, body, nil
}

// named reports whether a line names its log and its key as a Log does: by a
// UUID, and as keys are called.
func named(body any) bool {
	switch b := body.(type) {
	case *FileBody:
		id, err := uuid.Parse(b.Log)
		return err == nil && id.String() == b.Log
	case *CheckpointBody:
		return KeyName.MatchString(b.Origin)
	default:
		return true
	}
}

// Read is lines.Read with the limit MaxLine.
func Read(in *bufio.Reader) (line []byte, n int64, err error) { return lines.Read(in, MaxLine) }
