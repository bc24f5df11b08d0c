// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/storedstate"
)

const root = "../.."

// What the console's API has of the health of a fleet, behind the binary on the shipped
// configuration, is what it is expected to be: after faults, across a kill, and when they
// are over. No event about it happens twice.
func TestBinary(t *testing.T) {
	t.Parallel()
	harm := []gpusim.Fault{
		{Kind: gpusim.RowRemapFailure}, {Kind: gpusim.XID, Code: 119}, {Kind: gpusim.XID, Code: 79}, {Kind: gpusim.Fabric, Mode: "limited"},
		{Kind: gpusim.SRAMExceeded}, {Kind: gpusim.XID, Code: 94}, {Kind: gpusim.RecoveryAction, Code: 4}, {Kind: gpusim.NVLinkErrors},
		{Kind: gpusim.RowRemapPending}, {Kind: gpusim.RemapWorn}, {Kind: gpusim.ExporterDown},
	}
	cfg := gpusim.Config{Seed: 3}
	for i := range harm {
		harm[i].Node = fmt.Sprintf("n%d", i)
		if harm[i].Kind != gpusim.ExporterDown {
			harm[i].Device = "1"
		}
		cfg.Nodes = append(cfg.Nodes, gpusim.Node{Name: harm[i].Node, Version: "4.6", Model: "H100", Devices: 2, Fields: "all"})
		if harm[i].Kind == gpusim.RecoveryAction {
			cfg.Nodes[i].With = []string{recoveryField}
		}
	}
	fleet, err := gpusim.New(cfg, time.Now)
	require.NoError(t, err)
	server, err := exporters.Serve(fleet, collector.Loopback, 0)
	require.NoError(t, err)
	defer server.Close()
	ports, err := collector.FreePorts()
	require.NoError(t, err)
	overlay := ports.Overlay()
	endpoints, silent := make([]string, 0, len(harm)), harm[len(harm)-1].Node
	for _, node := range fleet.Nodes() {
		endpoints = append(endpoints, server.URL(node))
	}
	overlay["receivers"].(map[string]any)["dcgm"] = map[string]any{"endpoints": endpoints, "collection_interval": "1s"}
	overlay["connectors"] = map[string]any{"gpu_events": map[string]any{"staleness": "5s"}}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make build")
	dir := t.TempDir()
	run := func(name string) *collector.Collector {
		c, err := collector.Start(collector.Options{
			Binary: binary, Configs: []string{filepath.Join(root, "config", "standalone.yaml"), "yaml:" + string(text)},
			Env: []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}, LogPath: filepath.Join(dir, name+".log"), Ports: ports,
		})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = c.Stop()
			if log, err := os.ReadFile(c.LogPath); t.Failed() && err == nil {
				t.Log(string(log))
			}
		})
		require.NoError(t, c.WaitReady(t.Context()))
		return c
	}
	// equal waits until the API has what is expected, which is so many boards that are not
	// well. A silent exporter's boards are unknown.
	equal := func(what string, unwell int, silent ...string) {
		t.Helper()
		var want, have []string
		assert.Eventually(t, func() bool {
			want, have = expectedOf(fleet, silent), shown(ports.Console)
			well := func(line string) bool { return strings.HasSuffix(line, verdict("ok", nil, "none")) }
			return slices.Equal(want, have) && len(slices.DeleteFunc(slices.Clone(want), well)) == unwell
		}, 3*time.Minute, 250*time.Millisecond, "%s", what)
		require.Equal(t, want, have, what)
	}
	c := run("first")
	equal("all is well", 0)
	// What rises is known by the count before it: a board counts from its first page on, which
	// is stored within a second or two.
	watched := regexp.MustCompile(fmt.Sprintf(`(?s)("health":\{"since".*){%d}`, 2*len(harm)))
	require.Eventually(t, func() bool {
		stored, err := storedstate.Has(t, filepath.Join(dir, "state", "connector_gpu_events_*"), watched)
		return err == nil && stored
	}, 3*time.Minute, 100*time.Millisecond, "every board is stored")
	ids := make([]string, len(harm))
	for i, f := range harm {
		status, err := fleet.StartFault(f)
		require.NoError(t, err)
		ids[i] = status.ID
	}
	faulty := len(harm) - 1
	equal("faults", faulty+2, silent)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	<-c.Exited()
	c = run("again")
	equal("after a kill", faulty+2, silent)
	// A process that is stopped for long sees nothing, which is no fault of a board.
	before := emitted(t, c)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
	stopped := time.Now()
	require.Eventually(t, func() bool { return time.Since(stopped) > 12*time.Second }, time.Minute, 100*time.Millisecond, "every page is too old")
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGCONT))
	equal("after a pause", faulty+2, silent)
	assert.Equal(t, before, emitted(t, c), "events of a pause")
	for i, f := range harm {
		_, err := fleet.EndFault(ids[i])
		require.NoError(t, err)
		if f.Kind == gpusim.XID {
			_, err = fleet.StartFault(gpusim.Fault{Node: f.Node, Kind: gpusim.GPUReset, Device: "1"})
			require.NoError(t, err)
		}
	}
	// Worn memory stays until the board is replaced, XID 79 until a boot, and a link is watched
	// for ten minutes.
	equal("they are over, and what asks for a reset was reset", 3)
}

// emitted are the events that left, by name and state.
func emitted(t *testing.T, c *collector.Collector) map[string]float64 {
	t.Helper()
	families, err := c.OwnMetrics(t.Context())
	require.NoError(t, err)
	n := map[string]float64{}
	for _, p := range families["otelcol_gpu_events_emitted"].GetMetric() {
		n[collector.Label(p, "event")+" "+collector.Label(p, "state")] = collector.Value(p)
	}
	return n
}

// expectedOf are the boards of a fleet with what they are expected to be. Those of silent
// nodes are unknown, after as long as this collector is configured to wait.
func expectedOf(fleet *gpusim.Fleet, silent []string) (all []string) {
	for _, n := range fleet.TruthAt(time.Now()).Nodes {
		for _, d := range n.Devices {
			if slices.Contains(silent, n.Name) {
				d.Health.State = unknown
			}
			all = append(all, d.ID+" "+verdict(d.Health.State, d.Health.Reasons, d.Health.Action))
		}
	}
	slices.Sort(all)
	return all
}

// shown are the boards in the console's API.
func shown(port int) (all []string) {
	resp, err := http.Get("http://" + collector.Address(port) + "/api/v1/nodes")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var page struct {
		Nodes []consoleapi.Node `json:"nodes"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return nil
	}
	for _, n := range page.Nodes {
		for _, d := range n.Devices {
			if d.Health == nil {
				continue
			}
			action, reasons := "none", []string{}
			if d.Health.Action != nil {
				action = *d.Health.Action
			}
			for _, r := range d.Health.Reasons {
				reasons = append(reasons, r.Name)
			}
			all = append(all, d.ID+" "+verdict(string(d.Health.State), reasons, action))
		}
	}
	slices.Sort(all)
	return all
}
