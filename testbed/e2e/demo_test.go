// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// output collects what a program prints while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// interrupt ends a program as Ctrl-C does and expects success.
func interrupt(t *testing.T, cmd *exec.Cmd, out *output) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), out.String())
	assert.True(t, strings.HasSuffix(out.String(), "stopped\n"), out.String())
}

// What `make run` starts shows the whole story and stops on Ctrl-C.
func TestDemo(t *testing.T) {
	t.Parallel()
	out := &output{}
	cmd := exec.Command(binary(t, "demo"), "--free-ports", "--new-pod-at", "3s", "--xid-at", "5s", "--down-at", "30s", "--down-for", "25s")
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for _, text := range []string{
		"collector is running",
		"inference/llama ",
		// The XID in Slack's format: the owner, what it means, what to do.
		"webhook at /slack: ERROR raised: gpu.xid: GPU 2 on gpu-node-b (GPU-",
		"reported XID 94 (",
		"Restart the application",
		"inference/llama is PARTIAL",
		"webhook at /ops: gpu.service.partial raised",
		"audit line: audit_type=webhook_dispatch_succeeded url_host=127.0.0.1 status=200",
		"webhook at /ops: gpu.service.partial cleared",
		"inference/llama is whole again",
	} {
		require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, patience, 200*time.Millisecond,
			"%q is not among:\n%s", text, out)
	}
	engines := enginesOf(t, out.String())
	engines.judge(t)
	judgeCost(t, engines.console)
	interrupt(t, cmd, out)
	isInReadme(t, out.String())
}

// What README shows of the demo is what the demo prints, but for times, figures,
// and the name of this machine.
func isInReadme(t *testing.T, printed string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, sample, found := strings.Cut(string(text), "<!-- demo:")
	require.True(t, found)
	_, sample, _ = strings.Cut(sample, "```\n")
	sample, _, _ = strings.Cut(sample, "```")
	figure, spaces := regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?`), regexp.MustCompile(` +`)
	alike := func(line string) string {
		line = strings.ReplaceAll(line, collector.Loopback, "localhost")
		return spaces.ReplaceAllString(figure.ReplaceAllString(line, "0"), " ")
	}
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, alike(line))
	}
	shown := 0
	for line := range strings.Lines(sample) {
		shown++
		assert.Contains(t, lines, alike(line), "README.md shows a line that the demo does not print")
	}
	assert.Greater(t, shown, 5)
}

// DCGM_EXPORTER=URL scrapes that exporter.
func TestDemoWithARealExporter(t *testing.T) {
	t.Parallel()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	out := &output{}
	cmd := exec.Command(binary(t, "demo"), "--free-ports", "--exporter", endpoints[0])
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "inference/llama ") }, patience, 200*time.Millisecond, "%s", out)
	assert.NotContains(t, out.String(), "simulated")
	interrupt(t, cmd, out)
}

// A taken port is named before anything starts.
func TestDemoNamesATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", collector.Loopback+":9464")
	if err == nil {
		defer l.Close()
	} // else another process has it: as good
	out, err := exec.CommandContext(t.Context(), binary(t, "demo")).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "port 9464 (the collector's Prometheus exporter) cannot be used")
	assert.Contains(t, string(out), "ss -ltnp")
}
