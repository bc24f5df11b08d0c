// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package breakable

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

func freePort(t *testing.T) int {
	t.Helper()
	ports, err := collector.Free(1)
	require.NoError(t, err)
	return ports[0]
}

// get is a page, or "" where there is no answer in time.
func get(t *testing.T, url string, patience time.Duration) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", 0
	}
	return string(body), response.StatusCode
}

func TestExporterModes(t *testing.T) {
	fleet, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{{Name: "a", Version: "4.6", Model: "H100", Devices: 2}}}, time.Now)
	require.NoError(t, err)
	e, err := NewExporter(fleet, "a", freePort(t), time.Second, 1)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	url := "http://" + e.Addr() + "/metrics"
	page, status := get(t, url, time.Minute)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "DCGM_FI_DEV_GPU_UTIL{")
	for mode, check := range map[PageMode]func(text string, status int) bool{
		PageDown:       func(text string, status int) bool { return status == 0 },
		PageHang:       func(text string, status int) bool { return status == 0 },
		PageDrip:       func(text string, status int) bool { return status == 0 },
		PageSlow:       func(text string, status int) bool { return strings.Contains(text, "GPU_UTIL") },
		PageError:      func(text string, status int) bool { return status == http.StatusInternalServerError },
		PageGarbage:    func(text string, status int) bool { return !strings.Contains(text, "GPU_UTIL") && len(text) > 1000 },
		PageHTML:       func(text string, status int) bool { return strings.HasPrefix(text, "<!doctype") },
		PageCut:        func(text string, status int) bool { return status == 0 },
		PageHuge:       func(text string, status int) bool { return len(text) > 16_000_000 },
		PageBomb:       func(text string, status int) bool { return len(text) > 60_000_000 },
		PageDuplicates: func(text string, status int) bool { return strings.Count(text, "GPU_UTIL{") == 4 },
		PageHostile:    func(text string, status int) bool { return strings.Contains(text, "HOSTILE_199") },
		PageReset: func(text string, status int) bool {
			return strings.Contains(text, "ENERGY") && len(text) <= len(page)+100
		},
		PageWell: func(text string, status int) bool { return strings.Count(text, "GPU_UTIL{") == 2 },
	} {
		t.Run(string(mode), func(t *testing.T) {
			require.NoError(t, e.Set(mode))
			patience := time.Minute
			if mode == PageHang || mode == PageDrip {
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
	l, err := net.Listen("tcp", collector.Address(0))
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
func through(l *Link, bytes int, patience time.Duration) int {
	c, err := net.Dial("tcp", l.Addr())
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
	l, err := NewLink(freePort(t), echo(t))
	require.NoError(t, err)
	t.Cleanup(l.Close)
	const all = 100_000
	assert.Equal(t, all, through(l, all, time.Minute))
	require.NoError(t, l.Set(LinkRefuse))
	assert.Equal(t, -1, through(l, all, time.Second))
	require.NoError(t, l.Set(LinkHang))
	assert.Zero(t, through(l, all, 200*time.Millisecond))
	require.NoError(t, l.Set(LinkCut))
	n := through(l, all, time.Minute)
	assert.Less(t, n, all, "cut in mid-stream")
	require.NoError(t, l.Set(LinkSlow))
	assert.Equal(t, 10, through(l, 10, time.Minute))
	require.NoError(t, l.Set(LinkReset))
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	assert.Error(t, err, "it does not live long")
	require.NoError(t, l.Set(LinkWell))
	assert.Equal(t, all, through(l, all, time.Minute))
}

// A connection that was made before a hang goes on after it.
func TestLinkHangEnds(t *testing.T) {
	l, err := NewLink(freePort(t), echo(t))
	require.NoError(t, err)
	t.Cleanup(l.Close)
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	exchange := func(patience time.Duration) string {
		_, err := io.WriteString(c, "hello\n")
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(patience))
		line, _ := in.ReadString('\n')
		return line
	}
	require.Equal(t, "hello\n", exchange(time.Minute))
	require.NoError(t, l.Set(LinkHang))
	assert.Empty(t, exchange(300*time.Millisecond))
	require.NoError(t, l.Set(LinkWell))
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
}

func TestHostileRows(t *testing.T) {
	fleet, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{{Name: "a", Version: "4.6", Model: "H100", Devices: 1}}}, time.Now)
	require.NoError(t, err)
	page, err := fleet.Page("a", time.Now())
	require.NoError(t, err)
	assert.Greater(t, strings.Count(string(hostileRows(page)), "\n"), 200)
	assert.Empty(t, hostileRows(nil))
}
