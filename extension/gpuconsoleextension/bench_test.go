// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// BenchmarkAPI asks every endpoint about 64, 512 and 4,096 GPUs, 8 a node and a
// service, of which there is an hour of data.
func BenchmarkAPI(b *testing.B) {
	for _, gpus := range []int{64, 512, 4096} {
		w := newWorld(b)
		fill(w, gpus)
		c := serveAPI(b, w.store, w.now, nil)
		service := "namespace=ml&cluster=c1&service=svc-1"
		for _, request := range []string{"status?", "services?trend=true", "service?" + service, "pods?" + service, "nodes?", "range?window=1h&" + service, "range?window=24h&by=pod&" + service} {
			b.Run(fmt.Sprintf("%d/%s", gpus, request), func(b *testing.B) {
				u, err := url.Parse("http://localhost/api/v1/" + request)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					w := &discard{header: http.Header{}}
					c.handler.ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u, Host: "localhost", Header: http.Header{}})
					if w.status != http.StatusOK {
						b.Fatal(w.status)
					}
				}
			})
		}
	}
}

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// fill writes an hour of a fleet.
func fill(w *world, gpus int) {
	w.t.Helper()
	for node := range gpus / 8 {
		name := fmt.Sprintf("node-%d", node)
		w.write(queries.ExporterUp, tags{queries.Cluster: "c1", queries.Node: name, queries.Address: name, queries.Port: "9400"}, time.Hour, 0, constant(1))
		var batch []store.Series
		for g := range 8 {
			owners := held("ml", fmt.Sprintf("svc-%d", node), fmt.Sprintf("svc-%d-%d", node, g))
			id := fmt.Sprintf("GPU-%d-%d", node, g)
			add := func(metric string, l tags, v float64) {
				named := l.with(tags{"__name__": metric})
				s := store.Series{Labels: labels.FromMap(named)}
				for ago := time.Hour; ago >= 0; ago -= interval {
					s.Samples = append(s.Samples, store.Sample{Time: w.now.Add(-ago).UnixMilli(), Value: v})
				}
				batch = append(batch, s)
			}
			for figureName, v := range busy(0.5) {
				metric, more := figure(figureName)
				add(metric, device(name, id, g, owners).with(more), v)
			}
			add(queries.Allocation, allocation(name, id, owners), 1)
			add(queries.HwErrors, device(name, id, g, owners).with(tags{queries.ErrorType: "uncorrected"}), 0)
			add(queries.PodState, tags{queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: owners[queries.Service], queries.Pod: owners[queries.Pod], queries.StateOfPod: "reporting"}, 1)
		}
		if _, err := w.store.Append(w.t.Context(), batch); err != nil {
			w.t.Fatal(err)
		}
		w.service(svc{cluster: "c1", namespace: "ml", name: fmt.Sprintf("svc-%d", node), pods: pods{reporting: 8}, devices: 8, figures: averages(0.5), from: time.Hour})
	}
}
