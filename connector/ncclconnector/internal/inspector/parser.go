// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what a line may state.
const (
	maxName     = 128
	maxRanks    = 1 << 20
	maxBytes    = 1 << 53 // above it a size is a difference below zero
	maxDuration = time.Hour
	maxBatch    = 1 << 20 // records
)

// versions are the formats, and whether records follow a marker that has their header.
var versions = map[string]bool{"v4.0": false, "v4.3": true, "v4.4": true, "v5.0": false}

// Parser reads the lines of one file, in their order: those of v4.3 and v4.4 have their header on
// the marker before them. The zero value is one for a file from its beginning, or from anywhere.
type Parser struct {
	source Source
	left   int // records that follow the marker
}

type line struct {
	Header *struct {
		ID    string `json:"id"`
		Rank  int    `json:"rank"`
		Ranks int    `json:"n_ranks"`
		Nodes int    `json:"nnodes"`
		Name  string `json:"comm_name"`
	} `json:"header"`
	Metadata *struct {
		Version string `json:"inspector_output_format_version"`
		Dumped  int64  `json:"dump_timestamp_us"`
		Host    string `json:"hostname"`
		PID     int64  `json:"pid"`
	} `json:"metadata"`
	Collective *collective      `json:"coll_perf"`
	Peer       *peer            `json:"p2p_perf"`
	Stats      *stats           `json:"dump_stats"`
	Proxy      *json.RawMessage `json:"proxy_trace"`
}

type collective struct {
	Operation string  `json:"coll"`
	Sequence  uint64  `json:"coll_sn"`
	Bytes     uint64  `json:"coll_msg_size_bytes"`
	Micros    float64 `json:"coll_exec_time_us"`
	Timing    string  `json:"coll_timing_source"`
	Bandwidth float64 `json:"coll_algobw_gbs"`
	Graph     bool    `json:"graphCaptured"`
}

type peer struct {
	Operation string  `json:"p2p"`
	Sequence  uint64  `json:"p2p_sn"`
	Bytes     uint64  `json:"p2p_msg_size_bytes"`
	Micros    float64 `json:"p2p_exec_time_us"`
	Timing    string  `json:"p2p_timing_source"`
	Bandwidth float64 `json:"p2p_algobw_gbs"`
	Graph     bool    `json:"graphCaptured"`
}

type stats struct {
	Collectives    int    `json:"coll_records"`
	Peers          int    `json:"p2p_records"`
	Proxies        int    `json:"proxy_records"`
	CollectiveLost uint64 `json:"coll_dropped_total"`
	PeerLost       uint64 `json:"p2p_dropped_total"`
	ProxyLost      uint64 `json:"proxy_dropped_total"`
}

// Line reads one line. It has a record, or drops, or neither: traces of proxies are read over. A
// cause beside drops is of the batch before them.
func (p *Parser) Line(text string) (record *Record, drops *Drops, cause Cause) {
	var l line
	if cause = decode(text, &l); cause != Fine {
		if strings.HasPrefix(text, "{") {
			p.count() // it was a record of the batch, if there is one
		}
		return nil, nil, cause
	}
	if l.Header == nil || l.Metadata == nil {
		if l.Header != nil || l.Metadata != nil || l.Stats != nil || !l.known() {
			return nil, nil, Shape
		}
		if !p.count() {
			return nil, nil, NoContext
		}
		record, cause = l.record(p.source)
		return record, nil, cause
	}
	if _, known := versions[l.Metadata.Version]; !known {
		return nil, nil, Version
	}
	if !l.known() {
		return nil, nil, Shape
	}
	source, cause := l.source()
	if cause != Fine {
		if l.Stats != nil {
			p.left = 0 // records of a marker that cannot be used
		}
		return nil, nil, cause
	}
	if l.Stats == nil {
		record, cause = l.record(source)
		return record, nil, cause
	}
	if p.left > 0 {
		cause = Incomplete
	}
	s := l.Stats
	p.left = 0
	for _, n := range [...]int{s.Collectives, s.Peers, s.Proxies} {
		if n < 0 || n > maxBatch {
			p.left = 0
			return nil, nil, Shape
		}
		p.left += n
	}
	p.source = source
	return nil, &Drops{source, s.CollectiveLost, s.PeerLost, s.ProxyLost}, cause
}

// count takes one off the records that follow the marker; false: none does.
func (p *Parser) count() bool {
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}

func decode(text string, l *line) Cause {
	text = strings.TrimSpace(text)
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return NUL
	case !utf8.ValidString(text):
		return Text
	case !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}"):
		return Torn
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(l); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			return Shape
		}
		return Torn
	}
	if _, err := d.Token(); err != io.EOF {
		return Joined
	}
	return Fine
}

// known reports whether the line has exactly one of the objects that Inspector writes.
func (l *line) known() bool {
	n := 0
	for _, has := range [...]bool{l.Collective != nil, l.Peer != nil, l.Stats != nil, l.Proxy != nil} {
		if has {
			n++
		}
	}
	return n == 1
}

func (l *line) source() (Source, Cause) {
	h, m := l.Header, l.Metadata
	s := Source{Key: Key{h.ID, h.Ranks, h.Nodes, h.Name}, Rank: h.Rank, Host: m.Host, PID: m.PID, Dumped: time.UnixMicro(m.Dumped)}
	switch {
	case h.ID == "" || m.Dumped <= 0:
		return s, Shape
	case len(h.ID) > maxName || len(h.Name) > maxName || len(m.Host) > maxName:
		return s, Text
	case h.Ranks < 1 || h.Ranks > maxRanks || h.Nodes < 1 || h.Nodes > h.Ranks || h.Rank < 0 || h.Rank >= h.Ranks:
		return s, BadRank
	}
	return s, Fine
}

func (l *line) record(source Source) (*Record, Cause) {
	c := l.Collective
	switch {
	case l.Proxy != nil:
		return nil, Fine
	case l.Peer != nil:
		of := collective(*l.Peer)
		c = &of
	}
	switch {
	case c.Operation == "":
		return nil, Shape
	case len(c.Operation) > maxName || len(c.Timing) > maxName:
		return nil, Text
	case c.Bytes >= maxBytes:
		return nil, Size
	case !(c.Micros > 0 && c.Micros <= float64(maxDuration/time.Microsecond)):
		return nil, Duration
	}
	r := &Record{
		Source: source, Operation: c.Operation, Sequence: c.Sequence, Bytes: c.Bytes, Timing: c.Timing, Graph: c.Graph,
		Duration: time.Duration(c.Micros * float64(time.Microsecond)),
	}
	if message, _, ok := r.Traffic(); ok && c.Bandwidth > 0 {
		is := message / r.Duration.Seconds() / 1e9 // a GB is 1e9 bytes there
		r.Contradicts = math.Abs(c.Bandwidth-is) > 0.02*is
	}
	return r, Fine
}
