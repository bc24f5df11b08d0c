// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"
)

// serveExporter puts a server in front of a node's exporter that notes, before
// and after each page, what the devices do: pods come and go by the millisecond,
// and a page is right if it is what was true while it was made. It returns its
// port.
func (w *world) serveExporter(n *member) int {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	note := func() {
		now := time.Now()
		for _, truth := range n.Fleet().TruthAt(now).Nodes {
			w.chronicle.Note(n.Name(), now, readings(truth.Devices))
		}
	}
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		note()
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, n.ExporterURL(), nil)
		if err != nil {
			panic(err)
		}
		page, err := client.Do(request)
		if err != nil {
			panic(http.ErrAbortHandler) // it is down
		}
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		note()
		rw.Header().Set("Content-Type", page.Header.Get("Content-Type"))
		rw.WriteHeader(page.StatusCode)
		_, _ = rw.Write(text)
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
