// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// One device is one series: while the exporter's pod is replaced, a second exporter
// prints the same devices, two GPUs change their indexes and a MIG instance gets
// another profile, each output adds up to the power that is drawn.
func TestOneDeviceIsOneSeries(t *testing.T) {
	t.Parallel()
	f, server, endpoints := fleet(t, gpusim.Config{Seed: 1, Nodes: []gpusim.Node{{
		Name: "gpu-node-a", Version: "4.5", Model: "A100-SXM4-40GB", Devices: 3, MIG: map[string][]string{"2": {"2g.10gb", "1g.5gb"}},
	}}})
	ports, err := collector.Free(2)
	require.NoError(t, err)
	for _, port := range ports {
		endpoints = append(endpoints, fmt.Sprintf("http://%s:%d/metrics", collector.Loopback, port))
	}
	c := start(t, m{
		"receivers": m{"dcgm": m{"endpoints": endpoints, "collection_interval": "3s", "names": "both"}},
	}, nil, config("standalone.yaml"))
	store := fmt.Sprintf("http://%s:%d", collector.Loopback, c.Ports.Store)

	// What one output has of the GPUs: sum and number of a metric.
	const otel, dcgm = "hw_power_watts", "DCGM_FI_DEV_POWER_USAGE"
	page := func(name string) (sum float64, n int) {
		families, err := c.Metrics(t.Context())
		require.NoError(t, err)
		for _, metric := range find(families[name], "hw_parent", "") {
			sum, n = sum+collector.Value(metric), n+1
		}
		return sum, n
	}
	// The stock prometheus exporter takes a batch series by series, ends before what
	// replaces them, and a page that is read meanwhile lacks some. Such a gap closes with
	// the batch: a device that the batch lacks is missing until the next, an interval
	// later. A device too many is one in any page.
	shown := func(name string, want int) (sum float64, n int) {
		for begun := time.Now(); ; {
			if sum, n = page(name); n >= want || time.Since(begun) > 2*time.Second {
				return sum, n
			}
		}
	}
	stored := func(name string, _ int) (sum float64, n int) {
		found, err := samples(t.Context(), store, name+`{hw_parent=""}`)
		require.NoError(t, err)
		for _, v := range found {
			sum, n = sum+v, n+1
		}
		return sum, n
	}
	// The devices do nothing: their power is the same within the noise.
	check := func(step string) bool {
		truth, devices := 0.0, map[string]bool{}
		for _, d := range f.TruthAt(time.Now()).Nodes[0].Devices {
			if !devices[d.UUID] {
				truth, devices[d.UUID] = truth+d.PowerWatts, true
			}
		}
		good := true
		for output, read := range map[string]func(string, int) (float64, int){"prometheus": shown, "gpu_store": stored} {
			for name, want := range map[string]int{otel: 3, dcgm: 2} { // DCGM's name is on the MIG instances
				sum, n := read(name, want)
				good = assert.Equal(t, want, n, "%s: %s of %s", step, name, output) && good
				if name == otel {
					good = assert.InDelta(t, truth, sum, truth/20, "%s: %s of %s", step, name, output) && good
				}
			}
		}
		return good
	}
	eventually(t, c, "all devices are there", func(map[string]*dto.MetricFamily) bool {
		_, a := page(otel)
		_, b := stored(otel, 3)
		return a == 3 && b == 3
	})

	truth := f.TruthAt(time.Now()).Nodes[0].Devices
	for _, change := range []struct {
		gpusim.Fault
		metric        string
		begins, ended []string // labels, as the change leads to them; nil is nothing to wait for
	}{
		{gpusim.Fault{Kind: gpusim.ExporterTwice, Host: "second", Port: ports[0]}, otel, nil, nil},
		{gpusim.Fault{Kind: gpusim.ExporterReplaced, Host: "other", Port: ports[1]}, otel, nil, []string{"host_name", "gpu-node-a"}},
		{
			gpusim.Fault{Kind: gpusim.IndexChange, Device: "0", Index: 1}, otel,
			[]string{"hw_id", truth[0].ID, "gpu_index", "1"}, []string{"hw_id", truth[0].ID, "gpu_index", "0"},
		},
		{
			gpusim.Fault{Kind: gpusim.MIGReprofile, Device: "2:1", Profile: "1g.10gb"}, "hw_gpu_memory_usage_bytes",
			[]string{"hw_id", truth[3].ID, "gpu_mig_profile", "1g.10gb"}, []string{"hw_id", truth[3].ID, "gpu_mig_profile", "1g.5gb"},
		},
	} {
		change.Node = "gpu-node-a"
		_, err := f.StartFault(change.Fault)
		require.NoError(t, err)
		server.Reconcile()
		begun := time.Now()
		require.Eventually(t, func() bool { // and two scrapes at least
			families, err := c.Metrics(t.Context())
			return err == nil && check(string(change.Kind)) && time.Since(begun) > 7500*time.Millisecond &&
				len(find(families[change.metric], change.begins...)) > 0 &&
				(change.ended == nil || len(find(families[change.metric], change.ended...)) == 0)
		}, patience, 50*time.Millisecond, "%s is not to be seen", change.Kind)
		require.False(t, t.Failed())
	}
	warnings := lines(log(t, c), "two exporters report the same devices")
	if assert.NotEmpty(t, warnings) {
		assert.Contains(t, warnings[0], address(t, endpoints[0]))
		assert.Contains(t, warnings[0], address(t, endpoints[1]))
	}
}

func address(t *testing.T, endpoint string) string {
	t.Helper()
	u, err := url.Parse(endpoint)
	require.NoError(t, err)
	return u.Host
}
