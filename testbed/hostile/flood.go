// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// floodSeries is how many series a metric with a request's id as label makes in
// some ten seconds, in requests of 10,000.
const floodSeries, floodRequest = 600_000, 10_000

// pour sends the flood to a collector's OTLP port. What is refused is part of
// the attack; that none arrives is not.
func pour(ctx context.Context, to *process, series, request int) (accepted int, err error) {
	for i := range series / request {
		status, err := post(ctx, to.ports.http, "metrics", flood(fmt.Sprint("f", i), request), nil)
		if err != nil {
			return accepted, err
		}
		if status == http.StatusOK {
			accepted++
		}
	}
	if accepted == 0 {
		return 0, errors.New("not one request of the flood was accepted")
	}
	return accepted, nil
}

func floodGateway(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := pour(ctx, c.agent, floodSeries, floodRequest); err != nil {
		return nil, err
	}
	// What is in the agent's queue still arrives.
	if err := sleep(ctx, 6*time.Second); err != nil {
		return nil, err
	}
	achieved := c.gateway.blind(ctx)
	for p, limit := range map[*process]float64{c.agent: agentMiB, c.gateway: gatewayMiB} {
		achieved = append(achieved, p.overMiB(limit)...)
	}
	return achieved, nil
}

func floodStandalone(ctx context.Context, l *lab) ([]string, error) {
	s, _, err := l.standalone(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err := pour(ctx, s, floodSeries, floodRequest); err != nil {
		return nil, err
	}
	return append(s.overMiB(standaloneMiB), s.blind(ctx)...), nil
}

// fillStore sends more series than the store takes; then a new pod gets a GPU,
// and must be in the console.
func fillStore(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := pour(ctx, c.agent, 110_000, floodRequest); err != nil {
		return nil, err
	}
	if err := sleep(ctx, 6*time.Second); err != nil { // the agent's queue
		return nil, err
	}
	pod := newcomer
	if _, err := c.fleet.StartFault(gpusim.Fault{Node: nodeName, Kind: gpusim.NewPod, Pod: &pod}); err != nil {
		return nil, err
	}
	// The control: it is in Prometheus.
	if err := until(ctx, "the new service in Prometheus", func() (bool, error) {
		f, err := c.gateway.Metrics(ctx)
		for _, series := range f["gpu_service_pods"].GetMetric() {
			if collector.Label(series, "k8s_namespace_name") == "newteam" {
				return true, nil
			}
		}
		return false, err
	}); err != nil {
		return nil, err
	}
	var last error
	if err := until(ctx, "the new service in the console", func() (bool, error) {
		all, err := c.gateway.services(ctx)
		for _, s := range all {
			if s.Namespace == "newteam" {
				return true, nil
			}
		}
		last = err
		return false, err
	}); err != nil {
		return []string{fmt.Sprintf("the console does not know of the new service (%v)", last)}, nil
	}
	return nil, nil
}

// largeBodies sends 16 requests at once of 60 KB that become 19 MiB, and then many
// that are as large as they may be.
func largeBodies(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}
	answered := 0
	for _, size := range []struct{ bytes, requests int }{{19 << 20, 16}, {19 << 20, 16}, {1<<20 - 1<<10, 64}} {
		body := large(size.bytes)
		var all sync.WaitGroup
		var mu sync.Mutex
		for range size.requests {
			all.Go(func() {
				if _, err := post(ctx, c.agent.ports.http, "metrics", body, headers); err == nil {
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	if answered == 0 {
		return nil, errors.New("not one request was answered")
	}
	return append(c.agent.overMiB(agentMiB), c.gateway.blind(ctx)...), nil
}

// emptyExemplars sends requests, eight at once, with as many exemplars without content as fit: two
// bytes each when they are unpacked, and a hundred in memory.
func emptyExemplars(ctx context.Context, l *lab) ([]string, error) {
	s, _, err := l.standalone(ctx, nil)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
	answered := atomic.Int64{}
	for _, size := range []int{2<<20 - 1<<10, 1<<20 - 1<<10} {
		body := exemplars(size / 2)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := post(ctx, s.ports.http, "metrics", body, headers); err == nil {
					answered.Add(1)
				}
			})
		}
		all.Wait()
	}
	if answered.Load() == 0 {
		return nil, errors.New("not one request was answered")
	}
	return append(s.overMiB(standaloneMiB), s.blind(ctx)...), nil
}

// fillAgentLog sends small requests while there is no way on for them.
func fillAgentLog(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	agent, err := c.startAgent(ctx, "agent-without-way", "1", "127.0.0.1:1")
	if err != nil {
		return nil, err
	}
	before, err := agent.logged()
	if err != nil {
		return nil, err
	}
	body := flood("x", 2000)
	const requests = 2000
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range requests / 8 {
				_, _ = post(ctx, agent.ports.http, "metrics", body, nil)
			}
		})
	}
	all.Wait()
	after, err := agent.logged()
	if err != nil {
		return nil, err
	}
	// Kubernetes keeps 50 MB of a container.
	if grown := after - before; grown > 256<<10 {
		return []string{fmt.Sprintf("%d requests made the agent log %d bytes", requests, grown)}, nil
	}
	return nil, nil
}

// fillGatewayLog sends what the prometheus exporter cannot show and logs instead,
// with the sender's own words, at every scrape: metrics that become one name, types
// that change, invalid labels.
func fillGatewayLog(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	var metrics []metric
	for i := range 1000 {
		labels := map[string]string{"i": fmt.Sprint(i)}
		name := fmt.Sprintf("lines.%d", i)
		metrics = append(metrics, metric{name: "foo.bar", labels: labels}, metric{name: "foo_bar", labels: labels},
			metric{name: name, labels: labels}, metric{name: name, kind: pmetric.MetricTypeHistogram},
			metric{name: name + ".a", labels: map[string]string{"__": "x"}}, metric{name: name + ".b", labels: map[string]string{"a.b": "x", "a_b": "y"}},
			metric{name: name + ".c", labels: map[string]string{"a": "\xff"}})
	}
	if status, err := post(ctx, c.agent.ports.http, "metrics", request(nil, metrics...), nil); err != nil || status != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("the agent answers %d", status))
	}
	if err := until(ctx, "the application's metric", func() (bool, error) {
		f, err := collector.Scrape(ctx, at(c.gateway.ports.appsPrometheus, "/metrics"))
		return len(f["foo_bar"].GetMetric()) > 0 && len(f["lines_999"].GetMetric()) > 0, err
	}); err != nil {
		return nil, err
	}
	before, err := c.gateway.logged()
	if err != nil {
		return nil, err
	}
	const scrapes = 10
	for range scrapes {
		for _, port := range []int{c.gateway.ports.prometheus, c.gateway.ports.appsPrometheus} {
			if _, err := collector.Scrape(ctx, at(port, "/metrics")); err != nil {
				return nil, err
			}
		}
	}
	after, err := c.gateway.logged()
	if err != nil {
		return nil, err
	}
	if grown := after - before; grown > scrapes*16<<10 {
		return []string{fmt.Sprintf("%d scrapes made the gateway log %d bytes", scrapes, grown)}, nil
	}
	return c.gateway.blind(ctx), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
