// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// deviceShown is what the console's API has of a device, but for times.
type deviceShown struct {
	ID      string  `json:"id"`
	Index   *string `json:"index"`
	Model   *string `json:"model"`
	Profile *string `json:"mig_profile"`
	State   string  `json:"state"`
	Holders []struct {
		Namespace, Pod, Source string
		Service, Container     *string
	} `json:"holders"`
	Idle              *bool               `json:"idle"`
	Values            map[string]*float64 `json:"values"`
	Temperature       *float64            `json:"temperature"`
	MemoryTemperature *float64            `json:"memory_temperature"`
	Throttle          []string            `json:"throttle"`
	XID               *int                `json:"xid"`
	Health            *struct {
		State   string                  `json:"state"`
		Reasons []struct{ Name string } `json:"reasons"`
	} `json:"health"`
}

type nodeShown struct {
	Node     string              `json:"node"`
	State    string              `json:"state"`
	Exporter string              `json:"exporter"`
	Counts   map[string]int      `json:"counts"`
	Values   map[string]*float64 `json:"values"`
	Devices  []deviceShown       `json:"devices"`
}

type serviceShown struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	Values    map[string]*float64 `json:"values"`
}

// shown is what the API and the Prometheus exporter of a collector have of the demo's fleet.
type shown struct {
	nodes    []nodeShown
	services []serviceShown
	energy   map[string]float64
}

// The console is the same whether the exporters are of the versions in the demo or of 4.9,
// which prints other names and units. The fleet's time stands still.
func TestDemoWithNewExporters(t *testing.T) {
	t.Parallel()
	outputs := map[string]func() (shown, error){}
	for _, version := range []string{"", "4.9"} {
		cfg := gpusim.Demo(gpusim.Times{NewPod: 20 * time.Second, XID: 40 * time.Second, Down: time.Hour, DownFor: time.Second})
		if version != "" {
			require.NoError(t, cfg.SetExporter(version))
		}
		outputs[version] = show(t, cfg)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		was, err := outputs[""]()
		require.NoError(c, err)
		is, err := outputs["4.9"]()
		require.NoError(c, err)
		devices, measured, held := 0, 0, 0
		for _, n := range was.nodes {
			assert.Equal(c, "up", n.Exporter)
			for _, d := range n.Devices {
				devices++
				if d.Values["utilization"] != nil {
					measured++
				}
				if len(d.Holders) > 0 {
					held++
				}
			}
		}
		require.Len(c, was.nodes, 4)
		require.Equal(c, []int{18 + 4, 18 + 3, 12 + 1}, []int{devices, measured, held}, "with four instances, whose board has no utilization; whisper is there")
		require.Len(c, was.services, 5)
		assert.Equal(c, was.nodes, is.nodes)
		assert.Equal(c, was.services, is.services)
		require.Len(c, was.energy, 18)
		assert.InDeltaMapValues(c, was.energy, is.energy, 1, "4.9 prints joules, others millijoules")
	}, patience, time.Second)
}

// show serves a fleet at one moment to a collector with standalone.yaml, and returns how to
// read what that shows.
func show(t *testing.T, cfg gpusim.Config) func() (shown, error) {
	base := time.Now()
	var since atomic.Int64
	clock := func() time.Time { return base.Add(time.Duration(since.Load())) }
	sim, err := gpusim.New(cfg, clock)
	require.NoError(t, err)
	server, err := exporters.Serve(sim, collector.Loopback, 0)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	since.Store(int64(55 * time.Second))
	sockets, err := os.MkdirTemp("", "kubelets")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	kubelets, err := simkubelet.Start(sim, sockets, clock)
	require.NoError(t, err)
	t.Cleanup(kubelets.Stop)

	receivers, names, endpoints := m{}, []string{"dcgm"}, []string{}
	for _, node := range sim.Nodes() {
		endpoints = append(endpoints, server.URL(node))
		name := "gpu_allocation/" + node
		names = append(names, name)
		receivers[name] = m{
			"node_name": node, "socket": filepath.Join(sockets, node+".sock"), "auth_type": "none", "optional": true,
			"poll_interval": "1s", "collection_interval": "1s", "timeout": "1s",
		}
	}
	receivers["dcgm"] = m{"endpoints": endpoints, "collection_interval": "1s", "exporter_interval": "5m"} // its values stand still
	c := start(t, m{
		"receivers":  receivers,
		"processors": m{"gpu_summary": m{"interval": "2s", "initial_interval": "1s"}},
		"extensions": m{"gpu_console": m{"refresh": "1s"}},
		"service":    m{"pipelines": m{"metrics": m{"receivers": names}}},
	}, nil, config("standalone.yaml"))
	return func() (s shown, err error) {
		var nodes struct {
			Nodes []nodeShown `json:"nodes"`
		}
		if err := getJSON(t.Context(), fmt.Sprintf("http://%s/api/v1/nodes", collector.Address(c.Ports.Console)), &nodes); err != nil {
			return s, err
		}
		var services struct {
			Services []serviceShown `json:"services"`
		}
		if err := getJSON(t.Context(), fmt.Sprintf("http://%s/api/v1/services", collector.Address(c.Ports.Console)), &services); err != nil {
			return s, err
		}
		families, err := c.Metrics(t.Context())
		if err != nil {
			return s, err
		}
		s = shown{nodes: nodes.Nodes, services: services.Services, energy: map[string]float64{}}
		for _, one := range families["hw_energy_joules_total"].GetMetric() {
			s.energy[collector.Label(one, "hw_id")] = collector.Value(one)
		}
		return s, nil
	}
}

func getJSON(ctx context.Context, url string, into any) error {
	status, body, err := get(ctx, url)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d", url, status)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
