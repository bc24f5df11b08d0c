// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

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

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// pageMode is what an exporter does with a page.
type pageMode string

const (
	pageWell       pageMode = ""
	pageDown       pageMode = "down"       // nothing listens
	pageHang       pageMode = "hang"       // no answer
	pageDrip       pageMode = "drip"       // a byte now and then
	pageSlow       pageMode = "slow"       // late, but in time
	pageError      pageMode = "error"      // 500
	pageGarbage    pageMode = "garbage"    // bytes
	pageHTML       pageMode = "html"       // another's page
	pageCut        pageMode = "cut"        // fewer bytes than promised
	pageHuge       pageMode = "huge"       // above the limit of a page
	pageBomb       pageMode = "bomb"       // above it when unpacked
	pageDuplicates pageMode = "duplicates" // every line twice
	pageHostile    pageMode = "hostile"    // unexpected families and labels
	pageReset      pageMode = "reset"      // counters begin again
)

// silent reports whether no value can be read from such a page.
func (p pageMode) silent() bool {
	switch p {
	case pageWell, pageSlow, pageDuplicates, pageHostile, pageReset:
		return false
	}
	return true
}

// exporter serves the page of one node of a fleet, as it was given to.
type exporter struct {
	fleet *gpusim.Fleet
	node  string
	addr  string

	mu     sync.Mutex // guards what follows
	mode   pageMode
	rand   *rand.Rand
	server *http.Server
}

// newExporter listens on a port. Close ends it.
func newExporter(fleet *gpusim.Fleet, node string, port int, seed uint64) (*exporter, error) {
	e := &exporter{fleet: fleet, node: node, addr: address(port), rand: rand.New(rand.NewPCG(seed, 3))}
	return e, e.open()
}

// Set changes what it does from now on.
func (e *exporter) Set(mode pageMode) error {
	e.mu.Lock()
	e.mode = mode
	e.mu.Unlock()
	if mode == pageDown {
		e.Close()
		return nil
	}
	return e.open()
}

// Close ends listening and every connection.
func (e *exporter) Close() {
	e.mu.Lock()
	server := e.server
	e.server = nil
	e.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

func (e *exporter) open() error {
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

// energy is the counter that pageReset begins again: a value above so much loses it.
var energy = regexp.MustCompile(`(?m)^(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION\{.*\}) (\d+)$`)

const oldEnergy = 1_000_000

// ServeHTTP serves the page.
func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	case pageHang:
		<-r.Context().Done()
		return
	case pageSlow:
		if !pause(r.Context(), interval*2/5) {
			return
		}
	case pageDrip:
		for _, b := range page {
			if _, err := w.Write([]byte{b}); err != nil || http.NewResponseController(w).Flush() != nil || !pause(r.Context(), interval/5) {
				return
			}
		}
		return
	case pageError:
		http.Error(w, "the host engine is gone", http.StatusInternalServerError)
		return
	case pageGarbage:
		page = garbage(noise, len(page))
	case pageHTML:
		h.Set("Content-Type", "text/html")
		page = []byte("<!doctype html><title>Sign in</title><p>This network wants to know you. {x=\"y\"} 1\n")
	case pageCut:
		h.Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page[:len(page)/2])
		panic(http.ErrAbortHandler)
	case pageHuge:
		_, _ = w.Write(page)
		filler := bytes.Repeat([]byte("# HELP x "+strings.Repeat("a", 4087)+"\n"), 16)
		for range 17<<20/len(filler) + 1 {
			if _, err := w.Write(filler); err != nil {
				return
			}
		}
		return
	case pageBomb:
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
	case pageDuplicates:
		page = twice(page)
	case pageHostile:
		page = append(page, hostileRows(page)...)
	case pageReset:
		page = energy.ReplaceAllFunc(page, func(line []byte) []byte {
			parts := energy.FindSubmatch(line)
			n, _ := strconv.Atoi(string(parts[2]))
			return fmt.Appendf(nil, "%s %d", parts[1], n%oldEnergy)
		})
	}
	_, _ = w.Write(page)
}

func garbage(seed uint64, n int) []byte {
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

// exporterPod puts the exporter's pod into the API server, in the node's network.
func (n *node) exporterPod() { n.exporterPodAt("nvidia-dcgm-exporter-"+n.name, "127.0.0.1") }

func (n *node) exporterPodAt(name, address string) {
	started := time.Now().UTC().Format(time.RFC3339)
	n.api.Put("pods", "gpu-operator", name, m{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": m{"namespace": "gpu-operator", "name": name, "uid": name, "creationTimestamp": started, "labels": m{"app": "nvidia-dcgm-exporter"}},
		"spec":     m{"nodeName": n.name, "hostNetwork": true, "containers": []m{{"name": "nvidia-dcgm-exporter", "image": "example.com/dcgm-exporter"}}},
		"status": m{
			"phase": "Running", "podIP": address, "hostIP": address, "startTime": started, "conditions": []m{{"type": "Ready", "status": "True"}},
		},
	})
}

// secondExporter is another exporter's pod on the node, which began later, as beside
// that of a cloud's own. End takes it away.
func (n *node) secondExporter() (end func() error, err error) {
	const address = "127.0.0.2"
	_, port, err := net.SplitHostPort(n.exporter.addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: n.exporter, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	name := "nvidia-dcgm-exporter-second-" + n.name
	n.exporterPodAt(name, address)
	return func() error {
		n.api.Delete("pods", "gpu-operator", name)
		return server.Close()
	}, nil
}
