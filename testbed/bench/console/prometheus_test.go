// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
)

const root = "../../.."

// build builds the Prometheus server of testbed/go.mod into bin/.
var build = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(root, "bin", "prometheus"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-tags", "remove_all_sd,enable_kubernetes_sd,enable_dns_sd", "-trimpath", "-ldflags", "-s -w",
		"-o", path, "github.com/prometheus/prometheus/cmd/prometheus")
	cmd.Dir = filepath.Join(root, "testbed", "store")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// prometheus is a running server without targets.
type prometheus struct {
	url string
	pid int
}

// startPrometheus starts a server on a directory of data.
func startPrometheus(tb testing.TB, data string) *prometheus {
	tb.Helper()
	binary, err := build()
	require.NoError(tb, err)
	config := filepath.Join(tb.TempDir(), "prometheus.yml")
	require.NoError(tb, os.WriteFile(config, []byte("storage: {tsdb: {out_of_order_time_window: 10m}}\n"), 0o600))
	address := free(tb)
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=48h",
		"--web.listen-address="+address, "--web.enable-remote-write-receiver", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	ended := make(chan error, 1)
	require.NoError(tb, child.Start(cmd, func(err error) { ended <- err }))
	tb.Cleanup(func() {
		require.NoError(tb, cmd.Process.Signal(syscall.SIGTERM))
		<-ended
		if tb.Failed() {
			tb.Log(log.String())
		}
	})
	p := &prometheus{url: "http://" + address, pid: cmd.Process.Pid}
	require.Eventually(tb, func() bool {
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
	return p
}

// write stores series by remote write, so many in a request as
// prometheusremotewrite would send.
func (p *prometheus) write(series []store.Series) error {
	for part := range slices.Chunk(series, 5000) {
		request := &prompb.WriteRequest{Timeseries: make([]prompb.TimeSeries, 0, len(part))}
		for _, s := range part {
			ts := prompb.TimeSeries{Labels: make([]prompb.Label, 0, s.Labels.Len()), Samples: make([]prompb.Sample, 0, len(s.Samples))}
			s.Labels.Range(func(l labels.Label) {
				ts.Labels = append(ts.Labels, prompb.Label{Name: l.Name, Value: l.Value})
			})
			for _, sample := range s.Samples {
				ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: sample.Time, Value: sample.Value})
			}
			request.Timeseries = append(request.Timeseries, ts)
		}
		raw, err := request.Marshal()
		if err != nil {
			return err
		}
		r, err := http.NewRequest(http.MethodPost, p.url+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, raw)))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Encoding", "snappy")
		r.Header.Set("Content-Type", "application/x-protobuf")
		r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			return fmt.Errorf("remote write: %s: %s", answer.Status, text)
		}
	}
	return nil
}

// free is an address on which nothing listens.
func free(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().String()
}
