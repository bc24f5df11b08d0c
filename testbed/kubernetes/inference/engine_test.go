// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// address is a loopback address of its own for each pod, so that engines can have
// the ports that they have.
func address(pod int) string { return fmt.Sprintf("127.%d.7.%d", 20+os.Getpid()%200, pod+1) }

// engine serves a page of testdata, as its engine would: what counts has grown
// whenever it is asked.
type engine struct {
	page   []byte
	path   string
	asked  atomic.Int64 // for the page
	astray atomic.Int64 // for anything else
}

// counts are the samples that grow; what a gauge reports is not among them.
var counts = regexp.MustCompile(`^([^#\s{]*(?:_total|_bucket|_count|_sum|_success|_us)(?:\{.*\})?) (\S+)$`)

func serveEngine(t *testing.T, pod int, l workload) *engine {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", l.page))
	require.NoError(t, err)
	return serve(t, pod, l, text)
}

func serve(t *testing.T, pod int, l workload, page []byte) *engine {
	t.Helper()
	e := &engine{page: page, path: l.path}
	listener, err := net.Listen("tcp", net.JoinHostPort(address(pod), strconv.Itoa(l.port)))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(e)
	require.NoError(t, s.Listener.Close())
	s.Listener = listener
	if l.tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return e
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != e.path {
		e.astray.Add(1)
		http.NotFound(w, r)
		return
	}
	n := float64(e.asked.Add(1))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	lines := bufio.NewScanner(bytes.NewReader(e.page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if found := counts.FindStringSubmatch(line); found != nil {
			v, err := strconv.ParseFloat(found[2], 64)
			if err != nil {
				panic(err) // a page of testdata is wrong
			}
			line = found[1] + " " + strconv.FormatFloat(v*n, 'g', -1, 64)
		}
		_, _ = fmt.Fprintln(w, line)
	}
}

// families are the names and types on a page of testdata, without what nothing is
// to see.
func families(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", page))
	require.NoError(t, err)
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[1] != "TYPE" {
			continue
		}
		if !regexp.MustCompile(`^(go|python|process)_|_created$|^ray_(component|node)_`).MatchString(f[2]) {
			all[f[2]] = f[3]
		}
	}
	require.NotEmpty(t, all)
	return all
}
