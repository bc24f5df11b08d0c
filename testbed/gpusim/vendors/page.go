// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/rename"
)

// ErrRateLimit and ErrNoData are answers without a page: 429, and 500 with #nodata.
var (
	ErrRateLimit = errors.New("429 Too Many Requests")
	ErrNoData    = errors.New("#nodata: failed to get devices (1)")
)

// promhttp is what an exporter prints about itself, alone if it reads no device.
const promhttp = `# HELP promhttp_metric_handler_requests_total Total number of scrapes by HTTP status code.
# TYPE promhttp_metric_handler_requests_total counter
promhttp_metric_handler_requests_total{code="200"} 7
promhttp_metric_handler_requests_total{code="500"} 0
promhttp_metric_handler_requests_total{code="503"} 0
`

// Page is what a node's exporter answers at a time.
func (f *Fleet) Page(node string, now time.Time) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(node)
	if h == nil {
		return nil, fmt.Errorf("no node %q", node)
	}
	all := h.at(f.start, now)
	switch {
	case h.on(RateLimit, -1, now) != nil:
		return nil, ErrRateLimit
	case h.on(NoData, -1, now) != nil:
		return nil, ErrNoData
	case h.on(EmptyPage, -1, now) != nil:
		return []byte(promhttp), nil
	}
	text := h.text(all, now)
	if h.on(FieldsRenamed, -1, now) != nil {
		text = rename.Page(text)
	}
	if h.on(BadPage, -1, now) != nil {
		text = text[:len(text)/2]
		if at := bytes.LastIndexByte(text, '{'); at > 0 {
			text = text[:at+9]
		}
	}
	return text, nil
}

func (h *host) text(all []*state, now time.Time) []byte {
	switch {
	case h.model.Vendor == AMD:
		return append(amdText(h, all, now).bytes(), promhttp...)
	case h.model.Vendor == Gaudi:
		return append(gaudiText(h, all, now).bytes(), promhttp...)
	case h.Version == "1":
		return xpum1Text(h, all, now).bytes()
	}
	return xpum2Text(h, all, now).bytes()
}

// contentType is what the exporters send.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler serves a node's page at any path but /health.
func (f *Fleet) Handler(node string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.wait(r, node) {
			return
		}
		text, err := f.Page(node, f.now())
		switch {
		case errors.Is(err, ErrRateLimit):
			http.Error(w, "Too Many Requests", http.StatusTooManyRequests)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text)
		}
	})
}

// wait lets the time of slow_page pass, and reports whether the client is still there.
func (f *Fleet) wait(r *http.Request, node string) bool {
	f.mu.Lock()
	var delay time.Duration
	if h := f.host(node); h != nil {
		if x := h.on(SlowPage, -1, f.now()); x != nil {
			if delay = time.Duration(x.Delay); delay == 0 {
				delay = 20 * time.Second
			}
		}
	}
	f.mu.Unlock()
	if delay == 0 {
		return true
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// TruthAt is the truth at a time.
func (f *Fleet) TruthAt(now time.Time) Truth {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := Truth{Time: now}
	for _, h := range f.hosts {
		n := NodeTruth{Name: h.Name, Vendor: h.model.Vendor, Model: h.Model}
		for _, k := range kinds {
			if h.on(k, -1, now) != nil {
				n.Faults = append(n.Faults, k)
			}
		}
		for _, s := range h.at(f.start, now) {
			n.Devices = append(n.Devices, devices(h, s, now)...)
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t
}

// Kubelet is what a node's device plugin announces at a time, and who was given it.
func (f *Fleet) Kubelet(node string, now time.Time) (announced map[string][]string, grants []Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.host(node); h != nil {
		return granted(h, h.at(f.start, now))
	}
	return nil, nil
}

// Sysfs are the files of a node's sysfs that join the ids of device plugins to devices,
// by their path below its root.
func (f *Fleet) Sysfs(node string, now time.Time) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.host(node); h != nil {
		return sysfs(h, h.at(f.start, now))
	}
	return nil
}

// WriteSysfs writes the tree of a node into a folder, in place of what was there.
func (f *Fleet) WriteSysfs(node, root string, now time.Time) error {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	for name, content := range f.Sysfs(node, now) {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
