// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// NodeLost is gpu.node.lost. It is raised by silence: every metric of GPUs is a sign of
// life, and the one that it reads decides whether the node was expected to go.
var NodeLost = rule.Rule{
	Event: names.EventNodeLost, Set: rule.Service,
	Reads: []rule.Input{{Metric: &names.GPUNodeSchedulable}},
	Keys:  []rule.Key{lostAfter},
	Doc: rule.Doc{
		Raised:  "no telemetry of a node for `lost_after` (2m; 3m after a restart), which was not cordoned before",
		Cleared: "telemetry of it", Severity: "ERROR", Key: "cluster/node",
		Chart: "Empty: 3 times collectionInterval, at least 2m.",
	},
}

var lostAfter = func() rule.Key {
	k := rule.Duration("lost_after", 2*time.Minute, 30*time.Second, rule.MaxFor)
	k.FromInterval = true
	return k
}()

// NodeLostSpec is the condition of NodeLost.
var NodeLostSpec = condition.Once(plog.SeverityNumberError)

// reconnect is for how long after a restart an agent may still wait before its next
// attempt to connect: gRPC's longest wait, and what it adds by chance. It is above the
// 160 s of docs/decisions/0015.
const reconnect = 3 * time.Minute

// LostAfter is for how long a node is silent until it is lost. restored is whether there
// was no telemetry of it since a restart: then its agent has the time to connect again.
func LostAfter(s rule.Settings, restored bool) time.Duration {
	if after := s.Duration("lost_after"); !restored || after > reconnect {
		return after
	}
	return reconnect
}

// DescribeNodeLost completes the event about a node that was silent for that long; the
// devices and services are those that were on it.
func DescribeNodeLost(n subject.Node, silence time.Duration, devices, services []string, ev *event.Event) {
	n.About(ev)
	deviceCount, serviceCount := len(devices), len(services)
	devices, services = event.Names(devices), event.Names(services)
	ev.Body = fmt.Sprintf("%s is lost: nothing was received from it for %s. It has %s and %s%s.", n, event.InWords(silence),
		event.Plural(deviceCount, "GPU"), event.Plural(serviceCount, "service"), event.InBrackets(services, serviceCount))
	ev.Add(func(attrs pcommon.Map) {
		event.PutList(attrs, names.GPUNodeDevices, devices)
		attrs.PutInt(names.GPUNodeDeviceCount, int64(deviceCount))
		event.PutList(attrs, names.GPUNodeServices, services)
		attrs.PutInt(names.GPUNodeServiceCount, int64(serviceCount))
	})
}

// DescribeNodeBack completes the event about a node that was lost.
func DescribeNodeBack(n subject.Node, ev *event.Event) {
	n.About(ev)
	ev.Body = n.String() + " reports again."
}
