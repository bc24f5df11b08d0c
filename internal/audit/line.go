// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// schemaVersion is the v of every line. A change that a reader of today would
// misunderstand gets the next number.
const schemaVersion = 1

// maxLine bounds a line, line feed included. A record is far below it; what is
// longer is no line of ours.
const maxLine = 1 << 20

// Kinds of lines.
const (
	kindFile       = "file"       // first line of every file
	kindOpen       = "open"       // a writer began
	kindRecord     = "record"     // a Record
	kindCheckpoint = "checkpoint" // signed count and head
	kindGap        = "gap"        // records that could not be kept while the disk failed
	kindTorn       = "torn"       // an interrupted write before this line was closed off
	kindRemoved    = "removed"    // old files were deleted by max_files
	kindClose      = "close"      // a writer ended in good order
)

// digest is the SHA-256 of a line, its line feed excluded. The first line of a
// log refers to the zero digest.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// fileBody is the first line of a file.
type fileBody struct {
	Time time.Time `json:"time"`
	Log  string    `json:"log"`  // UUIDv7 of the whole log, equal in all its files
	File int       `json:"file"` // from 1
}

type openBody struct {
	Time time.Time `json:"time"`
}

// closeBody is empty: then every byte of the line follows from the lines
// before, and a change of any is seen even where no line comes after it.
type closeBody struct{}

// checkpointBody spells out the signed note.
type checkpointBody struct {
	Time   time.Time `json:"time"`
	Origin string    `json:"origin"` // name of the key
	Count  uint64    `json:"count"`  // lines before this one, from the log's first
	Head   string    `json:"head"`   // digest of the last of them
	KeyID  string    `json:"key_id"`
	Note   string    `json:"note"` // C2SP signed note
}

type gapBody struct {
	Lost uint64    `json:"lost"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// tornBody records the bytes between the line before in the chain and this
// line.
type tornBody struct {
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	SHA256 string    `json:"sha256"`
}

// removedBody records that all files up to one were deleted, and where the chain
// stood at their end.
type removedBody struct {
	Time        time.Time `json:"time"`
	ThroughFile int       `json:"through_file"`
	LastSeq     uint64    `json:"last_seq"`
	Head        string    `json:"head"`
}

type eventBody struct {
	Name string    `json:"name"`
	ID   string    `json:"id"`
	Key  string    `json:"key,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// recordBody is a Record. Names are those of the courtesy log line where it has
// the field too.
type recordBody struct {
	ID                string      `json:"id"` // first, where Find looks for it
	Time              time.Time   `json:"time"`
	Events            []eventBody `json:"events"`
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

func newRecordBody(r *Record) recordBody {
	events := make([]eventBody, len(r.Events))
	for i, e := range r.Events {
		events[i] = eventBody{Name: valid(e.Name), ID: valid(e.ID), Key: valid(e.Key), Time: utc(e.Time)}
	}
	var keyIDs []string
	for _, id := range r.SignatureKeyIDs {
		keyIDs = append(keyIDs, valid(id))
	}
	return recordBody{
		ID:                valid(r.ID),
		Time:              utc(r.Time),
		Events:            events,
		WebhookID:         valid(r.WebhookID),
		TraceID:           valid(r.TraceID),
		Trigger:           string(r.Trigger),
		Receiver:          valid(r.Receiver),
		URLScheme:         valid(r.URLScheme),
		URLHost:           valid(r.URLHost),
		URLPort:           r.URLPort,
		URLFingerprint:    r.URLFingerprint,
		PeerAddress:       valid(r.PeerAddress),
		Format:            valid(r.Format),
		Attempt:           r.Attempt,
		MaxAttempts:       r.MaxAttempts,
		BodySHA256:        r.BodySHA256,
		BodySize:          r.BodySize,
		SignatureKeyIDs:   keyIDs,
		Outcome:           string(r.Outcome),
		Status:            r.Status,
		ErrorType:         string(r.ErrorType),
		RetryAfterSeconds: r.RetryAfter.Seconds(),
		NextAttempt:       utc(r.NextAttempt),
		NotStored:         r.NotStored,
		QueuedSeconds:     r.Durations.Queued.Seconds(),
		DNSSeconds:        r.Durations.DNS.Seconds(),
		ConnectSeconds:    r.Durations.Connect.Seconds(),
		TLSSeconds:        r.Durations.TLS.Seconds(),
		FirstByteSeconds:  r.Durations.FirstByte.Seconds(),
		TotalSeconds:      r.Durations.Total.Seconds(),
	}
}

// MarshalJSON writes the record as its line in the file has it.
func (r *Record) MarshalJSON() ([]byte, error) { return json.Marshal(newRecordBody(r)) }

// valid keeps a text encodable in one way only: JSON has two for a replaced
// byte.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// utc keeps times that JSON can write; a time outside years 1 to 9999 is none.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	if t = t.UTC().Round(0); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// linePrefix starts every line.
var linePrefix = fmt.Appendf(nil, `{"v":%d,"seq":`, schemaVersion)

// envelope is what every line has.
type envelope struct {
	seq  uint64
	prev digest
	kind string
}

// appendLine writes a line, line feed included. body is a JSON object.
func appendLine(b []byte, e envelope, body []byte) []byte {
	b = append(b, linePrefix...)
	b = strconv.AppendUint(b, e.seq, 10)
	b = append(b, `,"prev_hash":"`...)
	b = hex.AppendEncode(b, e.prev[:])
	b = append(b, `","kind":"`...)
	b = append(b, e.kind...)
	b = append(b, '"')
	if len(body) > len("{}") {
		b = append(b, ',')
	}
	b = append(b, body[1:]...)
	return append(b, '\n')
}

var (
	errNotALine = errors.New("is not a line of an audit log")
	errVersion  = errors.New("is of a version that this program does not know")
)

// parseEnvelope reads the head of a line (without its line feed) and returns
// the rest of it as the JSON object that appendLine was given. It does not look
// into that.
func parseEnvelope(line []byte) (e envelope, body []byte, err error) {
	rest, ok := bytes.CutPrefix(line, linePrefix)
	if !ok {
		if v, ok := bytes.CutPrefix(line, []byte(`{"v":`)); ok && len(v) > 1 && v[0] >= '1' && v[0] <= '9' {
			return e, nil, errVersion
		}
		return e, nil, errNotALine
	}
	digits, rest, ok := bytes.Cut(rest, []byte(`,"prev_hash":"`))
	if !ok || len(rest) < hex.EncodedLen(len(e.prev)) || len(digits) > 20 {
		return e, nil, errNotALine
	}
	if e.seq, err = strconv.ParseUint(string(digits), 10, 64); err != nil || e.seq == 0 || digits[0] == '0' {
		return e, nil, errNotALine
	}
	hash := rest[:hex.EncodedLen(len(e.prev))]
	if _, err := hex.Decode(e.prev[:], hash); err != nil || bytes.ContainsAny(hash, "ABCDEF") {
		return e, nil, errNotALine
	}
	rest, ok = bytes.CutPrefix(rest[len(hash):], []byte(`","kind":"`))
	if !ok {
		return e, nil, errNotALine
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || len(rest) < end+2 || rest[len(rest)-1] != '}' {
		return e, nil, errNotALine
	}
	e.kind = string(rest[:end])
	rest = rest[end+1:]
	switch {
	case rest[0] == ',':
		return e, append([]byte{'{'}, rest[1:]...), nil
	case len(rest) == 1:
		return e, []byte("{}"), nil
	default:
		return e, nil, errNotALine
	}
}

// parseLine reads a line (without its line feed) whole. It accepts what
// appendLine writes and nothing else: JSON with the same content in other bytes
// has been changed.
func parseLine(line []byte) (envelope, any, error) {
	e, raw, err := parseEnvelope(line)
	if err != nil {
		return e, nil, err
	}
	var body any
	switch e.kind {
	case kindFile:
		body = &fileBody{}
	case kindOpen:
		body = &openBody{}
	case kindRecord:
		body = &recordBody{}
	case kindCheckpoint:
		body = &checkpointBody{}
	case kindGap:
		body = &gapBody{}
	case kindTorn:
		body = &tornBody{}
	case kindRemoved:
		body = &removedBody{}
	case kindClose:
		body = &closeBody{}
	default:
		return e, nil, errNotALine
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(body); err != nil {
		return e, nil, errNotALine
	}
	if _, err := dec.Token(); err != io.EOF {
		return e, nil, errNotALine
	}
	again, err := json.Marshal(body)
	if err != nil || !bytes.Equal(again, raw) || !named(body) {
		return e, nil, errNotALine
	}
	return e, body, nil
}

// named reports whether a line names its log and its key as a Log does: by a
// UUID, and as keys are called.
func named(body any) bool {
	switch b := body.(type) {
	case *fileBody:
		id, err := uuid.Parse(b.Log)
		return err == nil && id.String() == b.Log
	case *checkpointBody:
		return keyName.MatchString(b.Origin)
	default:
		return true
	}
}
