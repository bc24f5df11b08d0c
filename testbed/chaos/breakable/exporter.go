// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package breakable has what agents depend on and what breaks on command: an exporter
// and the network to the gateway.
package breakable

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// PageMode is what an exporter does with a page.
type PageMode string

const (
	PageWell       PageMode = ""
	PageDown       PageMode = "down"       // nothing listens
	PageHang       PageMode = "hang"       // no answer
	PageDrip       PageMode = "drip"       // a byte now and then
	PageSlow       PageMode = "slow"       // late, but in time
	PageError      PageMode = "error"      // 500
	PageGarbage    PageMode = "garbage"    // bytes
	PageHTML       PageMode = "html"       // another's page
	PageCut        PageMode = "cut"        // fewer bytes than promised
	PageHuge       PageMode = "huge"       // above the limit of a page
	PageBomb       PageMode = "bomb"       // above it when unpacked
	PageDuplicates PageMode = "duplicates" // every line twice
	PageHostile    PageMode = "hostile"    // unexpected families and labels
	PageReset      PageMode = "reset"      // counters begin again
)

// Silent reports whether no value can be read from such a page.
func (p PageMode) Silent() bool {
	switch p {
	case PageWell, PageSlow, PageDuplicates, PageHostile, PageReset:
		return false
	}
	return true
}

// Exporter serves the page of one node of a fleet, as configured.
type Exporter struct {
	fleet    *gpusim.Fleet
	node     string
	addr     string
	interval time.Duration

	mu     sync.Mutex // guards what follows
	mode   PageMode
	rand   *rand.Rand
	server *http.Server
}

// NewExporter listens on a port of loopback. Interval is that of collection, which a
// slow page takes a part of. Close ends it.
func NewExporter(fleet *gpusim.Fleet, node string, port int, interval time.Duration, seed uint64) (*Exporter, error) {
	e := &Exporter{fleet: fleet, node: node, addr: collector.Address(port), interval: interval, rand: rand.New(rand.NewPCG(seed, 3))}
	return e, e.open()
}

// Addr is host:port of the exporter.
func (e *Exporter) Addr() string { return e.addr }

// Set changes what it does from now on.
func (e *Exporter) Set(mode PageMode) error {
	e.mu.Lock()
	e.mode = mode
	e.mu.Unlock()
	if mode == PageDown {
		e.Close()
		return nil
	}
	return e.open()
}

// Close ends listening and every connection.
func (e *Exporter) Close() {
	e.mu.Lock()
	server := e.server
	e.server = nil
	e.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

func (e *Exporter) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", e.addr)
	if err != nil {
		return err
	}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func(s *http.Server) { _ = s.Serve(l) }(e.server) // ends with Close
	return nil
}

// energy is the counter that PageReset starts from zero: a value above so much loses it.
var energy = regexp.MustCompile(`(?m)^(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION\{.*\}) (\d+)$`)

const oldEnergy = 1_000_000

// ServeHTTP serves the page.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	mode, noise := e.mode, e.rand.Uint64()
	e.mu.Unlock()
	page, err := e.fleet.Page(e.node, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	switch mode {
	case PageHang:
		<-r.Context().Done()
		return
	case PageSlow:
		if !pace.Pause(r.Context(), e.interval*2/5) {
			return
		}
	case PageDrip:
		for _, b := range page {
			if _, err := w.Write([]byte{b}); err != nil || http.NewResponseController(w).Flush() != nil || !pace.Pause(r.Context(), e.interval/5) {
				return
			}
		}
		return
	case PageError:
		http.Error(w, "the host engine is gone", http.StatusInternalServerError)
		return
	case PageGarbage:
		page = Garbage(noise, len(page))
	case PageHTML:
		h.Set("Content-Type", "text/html")
		page = []byte("<!doctype html><title>Sign in</title><p>This network wants to know you. {x=\"y\"} 1\n")
	case PageCut:
		h.Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page[:len(page)/2])
		panic(http.ErrAbortHandler)
	case PageHuge:
		_, _ = w.Write(page)
		filler := bytes.Repeat([]byte("# HELP x "+strings.Repeat("a", 4087)+"\n"), 16)
		for range 17<<20/len(filler) + 1 {
			if _, err := w.Write(filler); err != nil {
				return
			}
		}
		return
	case PageBomb:
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		filler := bytes.Repeat([]byte("# HELP x "+strings.Repeat("a", 4087)+"\n"), 256)
		for range 64<<20/len(filler) + 1 {
			if _, err := z.Write(filler); err != nil {
				return
			}
		}
		return
	case PageDuplicates:
		page = twice(page)
	case PageHostile:
		page = append(page, hostileRows(page)...)
	case PageReset:
		page = energy.ReplaceAllFunc(page, func(line []byte) []byte {
			parts := energy.FindSubmatch(line)
			n, _ := strconv.Atoi(string(parts[2]))
			return fmt.Appendf(nil, "%s %d", parts[1], n%oldEnergy)
		})
	}
	_, _ = w.Write(page)
}

// Garbage is n bytes of noise.
func Garbage(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 4))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// twice repeats every sample right behind itself.
func twice(page []byte) []byte {
	var out []byte
	for line := range bytes.Lines(page) {
		out = append(out, line...)
		if len(line) > 1 && line[0] != '#' {
			out = append(out, line...)
		}
	}
	return out
}

var uuidLabel = regexp.MustCompile(`UUID="(GPU-[^"]+)"`)

// hostileRows are valid lines about a device of the page that no exporter would
// print: families without end, labels that are long, empty or markup, and values
// that are no numbers.
func hostileRows(page []byte) []byte {
	found := uuidLabel.FindSubmatch(page)
	if found == nil {
		return nil
	}
	var b bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&b, "DCGM_FI_DEV_HOSTILE_%d{gpu=\"0\",UUID=\"%s\"} %s\n", i, found[1], []string{"NaN", "+Inf", "-Inf", "1e308", "-1", "0"}[i%6])
	}
	for i, value := range []string{strings.Repeat("x", 60_000), `<script>alert(1)</script>`, `\\\"\n`, "\u202e\ufeff", "'; drop table gpus; --", "{{.}}${env:HOME}"} {
		fmt.Fprintf(&b, "DCGM_FI_DEV_HOSTILE_LABEL{gpu=\"0\",UUID=\"%s\",evil_%d=\"%s\"} 1\n", found[1], i, value)
	}
	fmt.Fprintf(&b, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"\"} 50\nDCGM_FI_DEV_GPU_UTIL{gpu=\"\"} 50\n")
	return b.Bytes()
}
