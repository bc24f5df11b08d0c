// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const tags = "remove_all_sd,enable_kubernetes_sd,enable_dns_sd"

var (
	building sync.Mutex
	built    = map[string]error{}
)

// program builds a program of this module's go.mod into bin/ and returns its
// path. What is up to date there is left as it is.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	require.NoError(t, err)
	building.Lock()
	defer building.Unlock()
	if _, done := built[name]; !done {
		build := exec.Command("go", "build", "-tags", tags, "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/prometheus/prometheus/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		out, err := build.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		built[name] = err
	}
	require.NoError(t, built[name])
	return path
}

// prometheus is a running server.
type prometheus struct {
	url string
	pid int
}

// startPrometheus starts a server without targets that takes remote write and has
// the limits of storetest.
func startPrometheus(t testing.TB) *prometheus {
	t.Helper()
	binary := program(t, "prometheus")
	directory := t.TempDir()
	config := filepath.Join(directory, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("storage: {tsdb: {out_of_order_time_window: 10m}}\n"), 0o600))
	free, err := collector.Free(1)
	require.NoError(t, err)
	address := net.JoinHostPort(collector.Loopback, strconv.Itoa(free[0]))

	var log bytes.Buffer
	cmd := exec.Command(binary,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(directory, "data"), "--web.listen-address="+address,
		"--web.enable-remote-write-receiver", "--log.level=warn",
		fmt.Sprintf("--query.max-samples=%d", storetest.MaxSamples), "--query.timeout="+storetest.Timeout.String())
	cmd.Stdout, cmd.Stderr = &log, &log
	ended := make(chan error, 1)
	require.NoError(t, child.Start(cmd, func(err error) { ended <- err }))
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			require.NoError(t, cmd.Process.Kill())
			<-ended
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	p := &prometheus{url: "http://" + address, pid: cmd.Process.Pid}
	require.Eventually(t, func() bool {
		status, _, err := ask(t.Context(), http.MethodGet, p.url+"/-/ready", nil, nil)
		return err == nil && status == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
	return p
}

// ask makes a request and reads the answer.
func ask(ctx context.Context, method, url string, body []byte, header map[string]string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for key, value := range header {
		r.Header.Set(key, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode, text, err
}

// write stores series by remote write.
func (p *prometheus) write(t testing.TB, series ...store.Series) {
	t.Helper()
	request := &prompb.WriteRequest{}
	for _, s := range series {
		ts := prompb.TimeSeries{}
		s.Labels.Range(func(l labels.Label) {
			ts.Labels = append(ts.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		})
		for _, sample := range s.Samples {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: sample.Time, Value: sample.Value})
		}
		for _, h := range s.Histograms {
			ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(h.Time, h.Integer))
		}
		request.Timeseries = append(request.Timeseries, ts)
	}
	raw, err := request.Marshal()
	require.NoError(t, err)
	status, answer, err := ask(t.Context(), http.MethodPost, p.url+"/api/v1/write", snappy.Encode(nil, raw), map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0",
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, status, "%s", answer)
}

// resident is the memory of a process in bytes; 0 where it cannot be known.
func resident(pid int) int64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
