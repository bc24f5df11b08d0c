// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// buildPrometheus builds the server that testbed/go.mod pins into bin/, where what
// is up to date is left as it is.
var buildPrometheus = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(root, "bin", "prometheus"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-tags", "remove_all_sd,enable_kubernetes_sd,enable_dns_sd", "-trimpath", "-ldflags", "-s -w",
		"-o", path, "github.com/prometheus/prometheus/cmd/prometheus")
	build.Dir = filepath.Join(root, "testbed", "store")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// startPrometheus runs a real Prometheus server that takes remote write, until
// the test ends, and returns its address.
func startPrometheus(t *testing.T, config string, flags ...string) string {
	t.Helper()
	binary, err := buildPrometheus()
	require.NoError(t, err)
	directory := t.TempDir()
	file := filepath.Join(directory, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	ports, err := collector.Free(1)
	require.NoError(t, err)
	address := fmt.Sprintf("%s:%d", collector.Loopback, ports[0])

	var log bytes.Buffer
	cmd := exec.Command(binary, append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(directory, "data"), "--web.listen-address=" + address,
		"--web.enable-remote-write-receiver", "--log.level=warn",
	}, flags...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	ended := make(chan error, 1)
	require.NoError(t, child.Start(cmd, func(err error) { ended <- err }))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	server := "http://" + address
	require.Eventually(t, func() bool {
		status, _, err := get(t.Context(), server+"/-/ready")
		return err == nil && status == http.StatusOK
	}, patience, 50*time.Millisecond)
	return server
}

func get(ctx context.Context, url string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// instant asks a Prometheus API for a vector at this moment.
func instant(ctx context.Context, server, query string) (model.Vector, error) {
	status, body, err := get(ctx, server+"/api/v1/query?query="+url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result model.Vector }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%d: %w", status, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%d: %s", status, answer.Error)
	}
	return answer.Data.Result, nil
}

// samples are the samples of a query by their series.
func samples(ctx context.Context, server, query string) (map[string]float64, error) {
	vector, err := instant(ctx, server, query)
	all := map[string]float64{}
	for _, s := range vector {
		all[s.Metric.String()] = float64(s.Value)
	}
	return all, err
}
