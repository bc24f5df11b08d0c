// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Node is what is known of a node.
type Node struct {
	ID               Place
	seen             time.Time // newest telemetry of its devices
	Allocated        time.Time // newest word of the kubelet
	Exporter         consoleapi.ExporterState
	exporterSeen     time.Time
	FrozenSince      time.Time // of its exporter
	suspect          bool      // an exporter is down that may be its own
	Schedulable      *bool
	MIGReconfiguring *bool
	Devices          []*Device
}

func (inv builder) seenOfNode(m model.Metric, t time.Time) {
	if name := nodeName(m); name != "" {
		n := inv.Node(Place{string(m[queries.Cluster]), name})
		if t.After(n.Allocated) {
			n.Allocated = t
		}
	}
}

// putNodes notes the states of nodes and gives them their exporters.
func (inv builder) putNodes(a *answers) {
	for _, sample := range *a.nodeTimes {
		inv.seenOfNode(sample.Metric, ask.Seconds(sample.Value))
	}
	for _, sample := range *a.exporters {
		m, on := sample.Metric, optional.Pointer(sample.Value != 0)
		name := string(m[model.MetricNameLabel])
		if name != queries.Schedulable && name != queries.Reconfiguring || nodeName(m) == "" {
			continue
		}
		n := inv.Node(Place{string(m[queries.Cluster]), nodeName(m)})
		if name == queries.Schedulable {
			n.Schedulable = on
		} else {
			n.MIGReconfiguring = on
		}
	}
	for _, d := range inv.Devices {
		if n := inv.Node(d.Node); d.Seen.After(n.seen) {
			n.seen = d.Seen
		}
	}
}

// State is that of the node.
func (n *Node) State(j *age.Judge) consoleapi.NodeState {
	switch {
	case !j.Fresh(n.seen) && !j.Fresh(n.Allocated) && !j.Fresh(n.exporterSeen):
		if j.Unstored.Excuses(n.NewestWord()) {
			return consoleapi.NodeUnknown
		}
		return consoleapi.NodeLost
	case n.Exporter == consoleapi.ExporterDown || n.suspect && !j.Fresh(n.seen):
		return consoleapi.NodeExporterDown
	case n.Exporter == consoleapi.ExporterFrozen:
		return consoleapi.NodeExporterFrozen
	case n.Exporter == consoleapi.ExporterUnrecognized:
		return consoleapi.NodeExporterUnrecognized
	default:
		return consoleapi.NodeOK
	}
}

// NewestWord is when a node was last seen by any source.
func (n *Node) NewestWord() time.Time {
	t := n.seen
	for _, other := range []time.Time{n.Allocated, n.exporterSeen} {
		if other.After(t) {
			t = other
		}
	}
	return t
}

// DataTime is that of the newest telemetry of its devices; without any, of what
// else names the node.
func (n *Node) DataTime() time.Time {
	for _, t := range []time.Time{n.seen, n.Allocated} {
		if !t.IsZero() {
			return t
		}
	}
	return n.exporterSeen
}

// Counts are a node's physical devices by state.
func (n *Node) Counts() consoleapi.NodeCounts {
	var c consoleapi.NodeCounts
	for _, d := range n.Devices {
		if d.Parent != "" {
			continue
		}
		c.Devices++
		switch d.overall() {
		case consoleapi.DeviceFree:
			c.Free++
		case consoleapi.DeviceIdle:
			c.Idle++
			c.Held++
		case consoleapi.DeviceHeld:
			c.Held++
		case consoleapi.DeviceLost:
			c.Lost++
		default:
			c.Unknown++
		}
	}
	return c
}

// CompareDevices orders by index, then id; parts stand behind their device.
func CompareDevices(a, b *Device) int {
	index := func(d *Device) int {
		i, err := strconv.Atoi(string(d.Identity[queries.Index]))
		if err != nil {
			return 1 << 30
		}
		return i
	}
	root := func(d *Device) string {
		gpu, _, _ := strings.Cut(d.ID.Name, "::")
		gpu, _, _ = strings.Cut(gpu, "/")
		return gpu
	}
	return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(root(a), root(b)), CompareNatural(a.ID.Name, b.ID.Name))
}

// CompareNatural compares texts that may end in numbers.
func CompareNatural(a, b string) int {
	number := func(s string) (string, int) {
		i := len(s)
		for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
		n, err := strconv.Atoi(s[i:])
		if err != nil {
			return s, 0
		}
		return s[:i], n
	}
	textA, numberA := number(a)
	textB, numberB := number(b)
	return cmp.Or(cmp.Compare(textA, textB), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}
