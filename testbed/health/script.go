// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

// Families that the reasons are read from.
const (
	recoveryField = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
	watchField    = "DCGM_EXP_GPU_HEALTH_STATUS"
	pathField     = "DCGM_EXP_P2P_STATUS"
	device        = "the device itself"
	nodeInfo      = "gpu.node.info" // of gpu_allocation
)

// A script is what happens to a node with two boards.
type script struct {
	name string
	// raises are the reasons that must be seen on the metrics of device 1 (the node's,
	// for count), and that must be over at the end unless stays.
	raises []string
	stays  bool
	never  bool // nothing is raised at all
	// inputs are families of the page, one of which is enough to judge; without all of
	// them nothing of it is raised.
	inputs   []string
	model    string        // default H100
	interval time.Duration // of the pages; default 15 s
	lasts    time.Duration
	slack    time.Duration // more, about what is judged by minutes
	pods     []gpusim.Pod
	faults   []gpusim.Fault  // of device 1 unless they name one
	kills    []time.Duration // of the agent
	states   []string        // that must be seen beside
	expected int             // boards of such a node
	late     time.Duration   // by which gpu_allocation is later than the first page after the first boot
}

const (
	nodeName = "n1"
	hostType = "a-type"
	s        = gpusim.Duration(time.Second)
	m        = gpusim.Duration(time.Minute)
	h        = gpusim.Duration(time.Hour)
)

// result is what a script has shown.
type result struct {
	checks int
	raised map[string]bool // reasons that were active on the metrics of device 1
	states map[string]bool // of it
	last   string          // its verdict at the end
	wrong  []string
}

// play plays a script with pages without some families.
func (sc *script) play(t *testing.T, without ...string) *result {
	t.Helper()
	interval := sc.interval
	if interval == 0 {
		interval = 15 * time.Second
	}
	var clock atomic.Int64
	clock.Store(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()) // when a bubble begins
	fleet, err := gpusim.New(sc.fleet(without), func() time.Time { return time.Unix(0, clock.Load()).UTC() })
	require.NoError(t, err)
	// An open connection would stop the fake clock.
	server := httptest.NewUnstartedServer(exporters.Handler(fleet, nodeName, "", func() {}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	defer server.Close()
	out := &result{raised: map[string]bool{}, states: map[string]bool{}}
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, fleet.Start().UnixNano(), time.Now().UnixNano())
		into, d := newReported(), disk.New()
		receiver := map[string]any{
			"endpoints": []any{server.URL + "/metrics"}, "collection_interval": every(interval), "node_name": nodeName,
			"exporter_interval": every(2 * interval),
		}
		events := map[string]any{
			"rules": []any{"device"}, "storage": disk.ID.String(), "staleness": every(3 * interval),
			"events": map[string]any{names.EventHealth: map[string]any{"enabled": true}},
		}
		if sc.expected > 0 {
			events["health"] = map[string]any{"expected": map[string]any{hostType: sc.expected}}
		}
		a := start(t, d, into, receiver, events)
		kills := slices.Clone(sc.kills)
		for at := time.Second; at <= sc.lasts; at += time.Second {
			time.Sleep(time.Second)
			synctest.Wait()
			clock.Store(time.Now().UnixNano())
			if len(kills) > 0 && at >= kills[0] {
				kills = kills[1:]
				a.stop(t, true)
				a = start(t, d, into, receiver, events)
			}
			if at%interval == 0 {
				if !slices.Contains(without, nodeInfo) && !sc.boots(at) {
					require.NoError(t, a.take(t.Context(), info(fleet, clock.Load())))
				}
				synctest.Wait()
				sc.check(t, fleet, into, out, at, interval)
			}
		}
		a.stop(t, false)
		out.wrong = append(out.wrong, into.wrong...)
	})
	return out
}

// boots reports whether the node boots, or gpu_allocation has not read it since.
func (sc *script) boots(at time.Duration) bool {
	late := sc.late
	for _, f := range sc.faults {
		if f.Kind != gpusim.Reboot {
			continue
		}
		if from := time.Duration(f.After); at >= from && at < from+time.Duration(f.For)+late {
			return true
		}
		late = 0
	}
	return false
}

func (sc *script) fleet(without []string) gpusim.Config {
	model := sc.model
	if model == "" {
		model = "H100"
	}
	node := gpusim.Node{
		Name: nodeName, Version: "4.6", Model: model, Devices: 2, Fields: "all", PodLabels: true, Pods: sc.pods,
		Without: without,
	}
	for _, family := range []string{recoveryField, watchField, pathField} {
		if slices.Contains(sc.inputs, family) {
			node.With = append(node.With, family)
		}
	}
	cfg := gpusim.Config{Seed: 1, Nodes: []gpusim.Node{node}}
	faults := sc.faults
	if slices.Contains(without, device) {
		faults = append([]gpusim.Fault{{Kind: gpusim.GPULost}}, faults...)
	}
	for _, f := range faults {
		f.Node = nodeName
		switch f.Kind {
		case gpusim.ExporterDown, gpusim.ExporterFrozen, gpusim.PageCut, gpusim.Reboot, gpusim.DriverReload, gpusim.NewPod, gpusim.PodGone:
		default:
			if f.Device == "" {
				f.Device = "1"
			}
		}
		cfg.Faults = append(cfg.Faults, f)
	}
	return cfg
}

// info is gpu.node.info, as gpu_allocation gives it.
func info(fleet *gpusim.Fleet, at int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.K8sNodeName, nodeName)
	p := names.GPUNodeInfo.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at))
	p.SetIntValue(1)
	p.Attributes().PutStr(names.K8sNodeName, nodeName)
	node := fleet.TruthAt(time.Unix(0, at)).Nodes[0]
	p.Attributes().PutStr(names.GPUNodeBootID, node.BootID)
	p.Attributes().PutStr(names.HostType, hostType)
	if node.Cleared != "" {
		p.Attributes().PutStr(names.GPUHealthCleared, node.Cleared)
	}
	return md
}

// check compares what is reported with what is expected now, or was within the time that
// a page takes to be judged.
func (sc *script) check(t *testing.T, fleet *gpusim.Fleet, into *reported, out *result, at, interval time.Duration) {
	t.Helper()
	into.mu.Lock()
	defer into.mu.Unlock()
	lag := 2*interval + 5*time.Second + sc.slack
	node := map[string]bool{}
	expected := make([]map[string]bool, 2) // by device
	events := make([]map[string]bool, 2)
	ids := make([]string, 2)
	for before := time.Duration(0); before <= min(lag, at); before += time.Second {
		of, boards, err := fleet.HealthOf(nodeName, fleet.Start().Add(at-before))
		require.NoError(t, err)
		node[of.State] = true
		for i, b := range boards {
			if expected[i] == nil {
				expected[i], events[i], ids[i] = map[string]bool{}, map[string]bool{}, b.UUID
			}
			if b.UUID != ids[i] {
				continue
			}
			if b.State == unknown {
				expected[i][unknown] = true
			} else {
				expected[i][verdict(b.State, b.Reasons, b.Action)] = true
				events[i][verdict(b.State, b.Reasons, b.Action)] = true
			}
		}
	}
	wrong := func(format string, args ...any) {
		out.wrong = append(out.wrong, fmt.Sprintf("%s, at %v: ", sc.name, at)+fmt.Sprintf(format, args...))
	}
	out.checks++
	for i, id := range ids {
		b := into.board(id)
		now, odd := b.now()
		if odd != "" {
			wrong("device %d: %s", i, odd)
		}
		if settled := at > lag; !expected[i][now] && (settled || now != unknown) {
			wrong("device %d is reported as %q, not as one of %q", i, now, keys(expected[i]))
		}
		// Without data the last event stands.
		event := b.event
		if event == "" {
			event = verdict("ok", nil, "none")
		}
		if len(events[i]) > 0 && !expected[i][unknown] && !events[i][event] {
			wrong("the last event about device %d is %q, not one of %q", i, event, keys(events[i]))
		}
		if i == 1 {
			for name := range b.reasons {
				out.raised[name] = true
			}
			out.states[strings.Fields(now)[0]] = true
			out.last = now
		}
	}
	for name := range into.board("").reasons { // of the node
		out.raised[name] = true
	}
	is, odd := state(into.nodes[nodeName])
	if odd != "" {
		wrong("node: %s", odd)
	}
	if settled := at > lag; !node[is] && (settled || is != unknown) {
		wrong("the node is reported as %q, not as one of %q", is, keys(node))
	}
}

func keys(of map[string]bool) []string {
	var all []string
	for k := range of {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
