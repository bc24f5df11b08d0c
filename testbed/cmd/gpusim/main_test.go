// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started runs a command until the test has read the lines it prints at its
// start, and ends it with the test.
func started(t *testing.T, lines int, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := command(ctx, args, w, io.Discard)
		_ = w.CloseWithError(err)
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		assert.NoError(t, <-done, "a signal is a clean end")
	})
	scan := bufio.NewScanner(r)
	var out []string
	for range lines {
		if !scan.Scan() {
			t.Fatalf("after %q: %v", out, scan.Err())
		}
		out = append(out, scan.Text())
	}
	return out
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

var anyURL = regexp.MustCompile(`http://[0-9.:]+(/metrics)?`)

func TestRunWithNewExporters(t *testing.T) {
	out := started(t, 1, "run", "--dcgm-version", "4.9", "--base-port", "0", "--sink", "", "--control", "")
	urls := anyURL.FindAllString(out[0], -1)
	require.Len(t, urls, 4)
	for i, u := range urls {
		name := map[bool]string{true: "DCGM_FI_DEV_GPU_UTIL_RATIO{", false: "DCGM_FI_DEV_GPU_UTIL{"}[i < 3]
		assert.Contains(t, fetch(t, u), name, "the last node has an old exporter")
	}
	for _, args := range [][]string{{"run", "--dcgm-version", "9"}, {"run", "--dcgm-version", "4.9", "--vendor", "amd"}} {
		assert.ErrorContains(t, command(t.Context(), args, io.Discard, io.Discard), "--dcgm-version")
	}
}

func TestRunServesTheDemo(t *testing.T) {
	out := started(t, 3, "run", "--demo", "--base-port", "0", "--sink", "127.0.0.1:0", "--control", "127.0.0.1:0", "--down-at", "10m")
	urls := anyURL.FindAllString(out[0], -1)
	require.Len(t, urls, 4)
	for _, u := range urls {
		assert.Contains(t, fetch(t, u), "DCGM_FI_DEV_GPU_UTIL{")
	}
	also := anyURL.FindAllString(out[1], -1)
	require.Len(t, also, 2)
	assert.Equal(t, "[]\n", fetch(t, also[0]+"/received"))
	assert.Contains(t, fetch(t, also[1]+"/truth"), `"name": "llama"`)
	assert.Contains(t, out[2], "exporter_down at 10m0s for 50s (gpu-node-a)")
}

func TestRunServesAConfiguration(t *testing.T) {
	var demo strings.Builder
	require.NoError(t, command(t.Context(), []string{"config"}, &demo, io.Discard))
	file := filepath.Join(t.TempDir(), "fleet.json")
	require.NoError(t, os.WriteFile(file, []byte(demo.String()), 0o600))
	out := started(t, 2, "run", "--config", file, "--base-port", "0", "--sink", "", "--control", "", "--faults=false", "--seed", "9")
	assert.Contains(t, out[0], "4 nodes")
	assert.Equal(t, "gpusim: no scripted faults", out[1])
}

func TestRunServesVendors(t *testing.T) {
	for vendor, family := range map[string]string{"amd": "gpu_used_vram{", "gaudi": "habanalabs_utilization{", "intel": "pci_bdf="} {
		dir, err := os.MkdirTemp("", "k") // short, for a socket
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		out := started(t, 2, "--vendor", vendor, "--base-port", "0", "--sink", "127.0.0.1:0", "--control", "127.0.0.1:0", "--kubelets", dir, "--sysfs", filepath.Join(dir, "sys"))
		urls := anyURL.FindAllString(out[0], -1)
		require.Len(t, urls, 3)
		for _, u := range urls {
			assert.Contains(t, fetch(t, u), family)
		}
		also := anyURL.FindAllString(out[1], -1)
		assert.Contains(t, fetch(t, also[1]+"/truth"), `"vendor": "`+vendor+`"`)
		trees, err := filepath.Glob(filepath.Join(dir, "sys", "*", "bus", "pci", "devices", "*", "vendor"))
		require.NoError(t, err)
		assert.NotEmpty(t, trees)
	}
}

func TestReplayServesFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.prom")
	require.NoError(t, os.WriteFile(file, []byte("x 1\n"), 0o600))
	out := started(t, 2, "replay", "--listen", "127.0.0.1:0", file)
	url := anyURL.FindString(out[0])
	assert.Equal(t, "x 1\n", fetch(t, url+"/metrics"))
	assert.Equal(t, "gpusim:   /page/metrics (and /metrics)", out[1])
}

func TestErrorsNameTheCause(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	bad := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"nodez":1}`), 0o600))
	free := []string{"run", "--base-port", "0", "--sink", "127.0.0.1:0", "--control", "127.0.0.1:0"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--base-port", taken}, "node gpu-node-a: cannot listen on 127.0.0.1:" + taken + ": the port is taken; stop what holds it or choose another (--base-port)"},
		{append(free[:5:5], "--control", l.Addr().String()), "control port: cannot listen"},
		{append(free[:3:3], "--sink", l.Addr().String()), "webhook sink: cannot listen"},
		{[]string{"replay", "--listen", l.Addr().String(), bad}, "(--listen)"},
		{[]string{"replay"}, "at least one file"},
		{[]string{"run", "--demo", "--config", bad}, "exclude each other"},
		{[]string{"run", "--config", bad}, `unknown field "nodez"`},
		{[]string{"run", "--config", "/does/not/exist"}, "no such file"},
		{[]string{"run", "extra"}, "takes no arguments"},
		{append(free[:3:3], "--refresh", "500ms"), "refresh: 500ms has to be whole seconds"},
		{[]string{"run", "--vendor", "amd", "--refresh", "30s"}, "--refresh is not for --vendor"},
		{[]string{"dance"}, `unknown command "dance"`},
		{[]string{"--vendor", "acme"}, `unknown vendor "acme": use amd, gaudi or intel`},
		{[]string{"run", "--sysfs", "/tmp"}, "--sysfs needs --vendor"},
	} {
		assert.ErrorContains(t, command(t.Context(), tc.args, io.Discard, io.Discard), tc.want, tc.args)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		var out strings.Builder
		require.NoError(t, command(t.Context(), args, &out, io.Discard))
		assert.Contains(t, out.String(), "gpusim replay")
	}
	var flags strings.Builder
	require.NoError(t, command(t.Context(), []string{"run", "--help"}, io.Discard, &flags))
	assert.Contains(t, flags.String(), "-base-port")
}
