// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ports "github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const imageUser = 65532

// Without an engine the image cannot be run, but what it consists of can: the
// binary of the same command, the configurations and an empty state directory in a
// folder of their own, with nothing else of a system in it, as the image's user.
// /etc/hosts is what every engine mounts.
func TestRunsWithNothingElse(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("chroot needs root on Linux")
	}
	folder := t.TempDir()
	// The test's own folders are for root alone.
	for dir := folder; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	put := func(source, target string, mode os.FileMode) {
		content, err := os.ReadFile(filepath.Join(root, source))
		require.NoError(t, err, "run make build")
		target = filepath.Join(folder, target)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, content, mode))
	}
	put("bin/otelcol-gpu", "usr/local/bin/otelcol-gpu", 0o755)
	configurations, err := filepath.Glob(filepath.Join(root, "config", "*.yaml"))
	require.NoError(t, err)
	for _, c := range configurations {
		put("config/"+filepath.Base(c), "etc/otelcol-gpu/"+filepath.Base(c), 0o644)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "etc", "hosts"), []byte("127.0.0.1\tlocalhost\n::1\tlocalhost\n"), 0o644))
	state := filepath.Join(folder, "var", "lib", "otelcol-gpu")
	require.NoError(t, os.MkdirAll(state, 0o755))
	require.NoError(t, os.Chown(state, imageUser, imageUser))

	health := free(t)
	local := func(port int) string { return fmt.Sprintf("localhost:%d", port) }
	type m = map[string]any
	moved, err := json.Marshal(m{
		"receivers":  m{"otlp": m{"protocols": m{"grpc": m{"endpoint": local(free(t))}, "http": m{"endpoint": local(free(t))}}}},
		"exporters":  m{"prometheus": m{"endpoint": local(free(t))}},
		"extensions": m{"health_check": m{"endpoint": local(health)}, "gpu_store": m{"api": m{"endpoint": ""}}, "gpu_console": m{"endpoint": local(free(t))}},
		"service":    m{"telemetry": m{"metrics": m{"level": "none", "readers": []any{}}}},
	})
	require.NoError(t, err)
	var log bytes.Buffer
	command := &exec.Cmd{
		Path: "/usr/local/bin/otelcol-gpu",
		Args: []string{"otelcol-gpu", "--config", "/etc/otelcol-gpu/standalone.yaml", "--config", "yaml:" + string(moved)},
		Env:  []string{"STATE_DIRECTORY=/var/lib/otelcol-gpu", "PATH=/usr/local/bin"},
		Dir:  "/", Stdout: &log, Stderr: &log,
		SysProcAttr: &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}, Pdeathsig: syscall.SIGKILL},
	}
	require.NoError(t, command.Start())
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	healthy := func() bool {
		resp, err := http.Get("http://" + local(health) + "/")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}
	deadline := time.Now().Add(3 * time.Minute)
	for !healthy() {
		select {
		case err := <-exited:
			require.FailNow(t, "it ended", "%v\n%s", err, log.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = command.Process.Kill()
			<-exited
			require.FailNow(t, "it is not healthy", log.String())
		}
	}
	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-exited:
		require.NoError(t, err, log.String())
	case <-time.After(3 * time.Minute):
		_ = command.Process.Kill()
		<-exited
		require.FailNow(t, "it does not end", log.String())
	}
	info, err := os.Stat(filepath.Join(state, "store", "metrics", "wal"))
	require.NoError(t, err, "the store is in the state directory")
	assert.Equal(t, uint32(imageUser), info.Sys().(*syscall.Stat_t).Uid)
}

// free is an unused port of loopback.
func free(t *testing.T) int {
	t.Helper()
	found, err := ports.Free(1)
	require.NoError(t, err)
	return found[0]
}
