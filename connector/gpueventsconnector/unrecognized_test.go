// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// An exporter that renamed its fields is reported, and no GPU of it is lost: neither one of
// which other points are left, nor one that has none.
func TestAnExporterWithUnknownFields(t *testing.T) {
	counted := map[*names.Metric]float64{&names.GPUXIDLast: 0}
	for name, renamed := range map[string][]gpu{
		"no point is left of one": {{id: gpuA, blank: true, values: counted}},
		"a few are left of each":  {{id: gpuA, blank: true, values: counted}, {id: gpuB, blank: true}},
		"none is left":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				b := d.boot(t, deviceSet)
				defer func() { b.stop() }()
				run := func(n int, p page) (all []occurred) {
					for range n {
						p.at, p.node = time.Now(), "n1"
						all = append(all, b.feed(scrape(p))...)
						all = append(all, b.wait(interval)...)
					}
					return all
				}
				well := page{gpus: []gpu{{id: gpuA}, {id: gpuB}}}
				require.Empty(t, run(4, well))
				events := run(12, page{unrecognized: true, gpus: renamed})
				require.Equal(t, []string{"gpu.exporter.down raised unrecognized"}, brief(events))
				require.Equal(t, "The exporter at 10.0.0.1:9400 on node n1 answers with fields that are not known: none of its page has the utilization, memory or power of a GPU. Its version may be newer than that of otelcol-gpu.", events[0].body)
				b.stop()
				b = d.boot(t, deviceSet)
				require.Empty(t, run(8, page{unrecognized: true, gpus: renamed}))
				require.Equal(t, []string{"gpu.exporter.down cleared"}, brief(run(3, well)))
			})
		})
	}
}

// The health of a GPU is unknown while the fields of its exporter are not known, whatever the
// fields that are left; a reason that is active stands.
func TestHealthOfUnknownFields(t *testing.T) {
	withPatient(t, func(p patient, w *ward) {
		left := func(failure float64) []gpu {
			return []gpu{{id: gpuA, blank: true, values: map[*names.Metric]float64{&names.GPUXIDLast: 0, &names.GPURowRemapFailure: failure}}}
		}
		for range 3 {
			p.see(page{unrecognized: true, gpus: left(0)})
		}
		require.Empty(t, live(&names.HwStatus, w.AllMetrics()), "after a start")
		p.see(page{gpus: left(0)})
		require.Equal(t, map[string]string{gpuA: "ok"}, live(&names.HwStatus, w.AllMetrics()))
		p.see(page{unrecognized: true, gpus: left(0)})
		require.Empty(t, live(&names.HwStatus, w.AllMetrics()))
		p.see(page{unrecognized: true, gpus: left(1)})
		require.Equal(t, map[string]string{gpuA: "failed"}, live(&names.HwStatus, w.AllMetrics()))
		require.Equal(t, map[string]string{"n1": "failed"}, live(&names.GPUNodeStatus, w.AllMetrics()))
		p.see(page{unrecognized: true, gpus: []gpu{{id: gpuA, blank: true}}})
		require.Empty(t, live(&names.HwStatus, w.AllMetrics()), "nothing of it is read")
		require.Empty(t, live(&names.GPUNodeStatus, w.AllMetrics()))
	})
}
