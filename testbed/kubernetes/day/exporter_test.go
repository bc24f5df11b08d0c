// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// serveExporter puts a server in front of a node's exporter that notes, before
// and after each page, what the devices do: pods come and go by the millisecond,
// and a page is right if it is what was true while it was made. It returns its
// port.
func (w *world) serveExporter(n *member) int {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	note := func() map[string]ownership.Reading {
		now := time.Now()
		var noted map[string]ownership.Reading
		for _, truth := range n.Fleet().TruthAt(now).Nodes {
			noted = readings(truth.Devices)
			w.chronicle.Note(n.Name(), now, noted)
		}
		return noted
	}
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		before := note()
		for try := 1; ; try++ {
			page, text := fetch(r.Context(), client, n.ExporterURL())
			after := note()
			// While several devices change, a page may have one change without the other,
			// which neither note has.
			if !maps.EqualFunc(before, after, maps.Equal) && try < 5 {
				before = after
				continue
			}
			rw.Header().Set("Content-Type", page.Header.Get("Content-Type"))
			rw.WriteHeader(page.StatusCode)
			_, _ = rw.Write(text)
			return
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with Close
	}()
	w.t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}

// fetch ends the request as an exporter that is down does if there is no page.
func fetch(ctx context.Context, client *http.Client, url string) (*http.Response, []byte) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	page, err := client.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return page, text
}
