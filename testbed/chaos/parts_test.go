// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

func freePort(t *testing.T) int {
	t.Helper()
	ports, err := delivery.FreePorts(1)
	require.NoError(t, err)
	return ports[0]
}

// get is a page, or "" where there is no answer in time.
func get(t *testing.T, url string, patience time.Duration) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, status, err := fetch(ctx, url)
	if err != nil {
		return "", 0
	}
	return body, status
}

func TestExporterModes(t *testing.T) {
	fleet, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{{Name: "a", Version: "4.6", Model: "H100", Devices: 2}}}, time.Now)
	require.NoError(t, err)
	e, err := newExporter(fleet, "a", freePort(t), 1)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	url := "http://" + e.addr + "/metrics"
	page, status := get(t, url, time.Minute)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "DCGM_FI_DEV_GPU_UTIL{")
	for mode, check := range map[pageMode]func(text string, status int) bool{
		pageDown:       func(text string, status int) bool { return status == 0 },
		pageHang:       func(text string, status int) bool { return status == 0 },
		pageDrip:       func(text string, status int) bool { return status == 0 },
		pageSlow:       func(text string, status int) bool { return strings.Contains(text, "GPU_UTIL") },
		pageError:      func(text string, status int) bool { return status == http.StatusInternalServerError },
		pageGarbage:    func(text string, status int) bool { return !strings.Contains(text, "GPU_UTIL") && len(text) > 1000 },
		pageHTML:       func(text string, status int) bool { return strings.HasPrefix(text, "<!doctype") },
		pageCut:        func(text string, status int) bool { return status == 0 },
		pageHuge:       func(text string, status int) bool { return len(text) > 16_000_000 },
		pageBomb:       func(text string, status int) bool { return len(text) > 60_000_000 },
		pageDuplicates: func(text string, status int) bool { return strings.Count(text, "GPU_UTIL{") == 4 },
		pageHostile:    func(text string, status int) bool { return strings.Contains(text, "HOSTILE_199") },
		pageReset: func(text string, status int) bool {
			return strings.Contains(text, "ENERGY") && len(text) <= len(page)+100
		},
		pageWell: func(text string, status int) bool { return strings.Count(text, "GPU_UTIL{") == 2 },
	} {
		t.Run(string(mode), func(t *testing.T) {
			require.NoError(t, e.Set(mode))
			patience := time.Minute
			if mode == pageHang || mode == pageDrip {
				patience = time.Second
			}
			text, status := get(t, url, patience)
			assert.True(t, check(text, status), "%d: %.300s", status, text)
		})
	}
}

// echo answers every line on a port with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", address(0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

// through sends bytes through a link and returns how many came back.
func through(l *link, bytes int, patience time.Duration) int {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return -1
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	go func() { _, _ = c.Write(make([]byte, bytes)) }()
	n, _ := io.CopyN(io.Discard, c, int64(bytes))
	return int(n)
}

func TestLinkModes(t *testing.T) {
	l, err := newLink(freePort(t), echo(t))
	require.NoError(t, err)
	t.Cleanup(l.Close)
	const all = 100_000
	assert.Equal(t, all, through(l, all, time.Minute))
	require.NoError(t, l.Set(linkRefuse))
	assert.Equal(t, -1, through(l, all, time.Second))
	require.NoError(t, l.Set(linkHang))
	assert.Zero(t, through(l, all, 200*time.Millisecond))
	require.NoError(t, l.Set(linkCut))
	n := through(l, all, time.Minute)
	assert.Less(t, n, all, "cut in mid-stream")
	require.NoError(t, l.Set(linkSlow))
	assert.Equal(t, 10, through(l, 10, time.Minute))
	require.NoError(t, l.Set(linkReset))
	c, err := net.Dial("tcp", l.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	assert.Error(t, err, "it does not live long")
	require.NoError(t, l.Set(linkWell))
	assert.Equal(t, all, through(l, all, time.Minute))
}

// A connection that was made before a hang goes on after it.
func TestLinkHangEnds(t *testing.T) {
	l, err := newLink(freePort(t), echo(t))
	require.NoError(t, err)
	t.Cleanup(l.Close)
	c, err := net.Dial("tcp", l.addr)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	say := func() string {
		_, err := io.WriteString(c, "hello\n")
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		line, _ := in.ReadString('\n')
		return line
	}
	require.Eventually(t, func() bool { return say() == "hello\n" }, time.Minute, time.Millisecond)
	require.NoError(t, l.Set(linkHang))
	assert.Empty(t, say())
	require.NoError(t, l.Set(linkWell))
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
}

// What is sent to the ports is hostile and, where it says so, well-formed.
func TestHostile(t *testing.T) {
	md := hostileMetrics()
	assert.Equal(t, len(hostileValues), md.ResourceMetrics().Len())
	assert.Greater(t, md.DataPointCount(), 100)
	assert.Equal(t, 2*len(hostileValues), hostileLogs().LogRecordCount())
	assert.Equal(t, 16, timelessMetrics(time.Now()).DataPointCount())
	assert.Equal(t, garbageRequests(1), garbageRequests(1))
	assert.NotEqual(t, garbageRequests(1)[0], garbageRequests(2)[0])
	// Noise that begins with } is a request to some.
	const seed = 700
	require.NoError(t, plogotlp.NewExportRequest().UnmarshalJSON(garbage(seed, 5000)), "no such noise")
	found := 0
	for _, body := range garbageRequests(seed) {
		if _, noise, ok := bytes.Cut(body, []byte("/json\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n")); ok {
			found++
			require.Error(t, plogotlp.NewExportRequest().UnmarshalJSON(noise))
		}
	}
	assert.Equal(t, 3, found)
	fleet, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{{Name: "a", Version: "4.6", Model: "H100", Devices: 1}}}, time.Now)
	require.NoError(t, err)
	page, err := fleet.Page("a", time.Now())
	require.NoError(t, err)
	assert.Greater(t, strings.Count(string(hostileRows(page)), "\n"), 200)
	assert.Empty(t, hostileRows(nil))
}

// A log with a panic in it is told, whichever life it was.
func TestOutcry(t *testing.T) {
	p := &process{name: "x", dir: t.TempDir(), lives: 2}
	require.NoError(t, os.WriteFile(p.log(1), []byte("well\n"), 0o600))
	require.NoError(t, os.WriteFile(p.log(2), []byte("well\ngoroutine 7: panic: no\nwell\n"), 0o600))
	line, err := p.outcry(1)
	require.NoError(t, err)
	assert.Contains(t, line, "x-2.log: goroutine 7: panic: no")
	p.lives = 1
	line, err = p.outcry(1)
	require.NoError(t, err)
	assert.Empty(t, line)
	p.lives = 3
	_, err = p.outcry(3)
	assert.Error(t, err, "a log that is not there")
}
