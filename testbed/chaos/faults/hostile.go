// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/hostile"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// hostileKinds are what any client of a port can send. None of it may
// disturb anything.
func hostileKinds() []*Kind {
	nothing := func() error { return nil }
	return []*Kind{
		{name: "otlp_garbage", place: onNothing, recovery: soon, begin: func(s *Scene, f *Fault) (func() error, error) {
			var all sync.WaitGroup
			for _, p := range s.Collectors.All() {
				seed := f.rand.Uint64()
				all.Go(func() { sendGarbage(s, p, seed) })
			}
			all.Wait()
			return nothing, nil
		}},
		{name: "otlp_hostile", place: onNothing, recovery: soon, counts: counter{name: "otelcol_gpu_summary_points_refused"}, begin: func(s *Scene, _ *Fault) (func() error, error) {
			metrics, err := pmetricotlp.NewExportRequestFromMetrics(hostile.Metrics()).MarshalProto()
			if err != nil {
				return nil, err
			}
			logs, err := plogotlp.NewExportRequestFromLogs(hostile.Logs()).MarshalProto()
			if err != nil {
				return nil, err
			}
			for _, p := range s.Collectors.All() {
				post(p, "metrics", metrics)
				post(p, "logs", logs)
			}
			return nothing, nil
		}},
		{name: "otlp_times", place: onNothing, recovery: soon, counts: counter{name: "otelcol_gpu_summary_points_future"}, begin: func(s *Scene, _ *Fault) (func() error, error) {
			metrics, err := pmetricotlp.NewExportRequestFromMetrics(hostile.Timeless(time.Now())).MarshalProto()
			if err != nil {
				return nil, err
			}
			post(s.Collectors.Gateway, "metrics", metrics)
			return nothing, nil
		}},
	}
}

// post sends a body to a collector's OTLP/HTTP port and returns the status of the
// answer, 0 if there is none: it may not run.
func post(p *process.Process, signal string, body []byte) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+collector.Address(p.Ports.OTLPHTTP)+"/v1/"+signal, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := process.Client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
	return resp.StatusCode
}

// sendGarbage sends what is no request, and invalid requests, to
// every port that a collector listens on.
func sendGarbage(s *Scene, p *process.Process, seed uint64) {
	ports := []int{p.Ports.OTLPGRPC, p.Ports.OTLPHTTP, p.Ports.Own, p.Ports.Health, p.Pprof}
	if p == s.Collectors.Gateway {
		ports = append(ports, p.Ports.Prometheus, p.Ports.Store, p.Ports.Console)
	}
	for i, port := range ports {
		for _, body := range hostile.Requests(seed + uint64(i)) {
			answer := hostile.Send(port, body)
			// What is no OTLP is refused.
			if port == p.Ports.OTLPHTTP && bytes.HasPrefix(body, []byte("POST /v1/")) && strings.HasPrefix(answer, "HTTP/1.1 2") {
				s.Verdict.Violate("answers", "%s answers %.30q to %.60q", p.Name, answer, body)
			}
		}
	}
}
