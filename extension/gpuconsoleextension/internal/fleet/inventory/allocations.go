// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// putAllocations notes who holds what. What was reported too long ago is unknown.
func (inv builder) putAllocations(a *answers) {
	times := map[model.Fingerprint]time.Time{}
	for _, sample := range *a.allocationTimes {
		times[sample.Metric.Fingerprint()] = ask.Seconds(sample.Value)
	}
	reported := map[*Device][]consoleapi.Holder{}
	unresolved := map[*model.Sample]time.Time{}
	for _, sample := range *a.allocations {
		series := maps.Clone(sample.Metric) // as timestamp() names it
		delete(series, model.MetricNameLabel)
		t := times[series.Fingerprint()]
		inv.seenOfNode(sample.Metric, t)
		if !inv.judge.Fresh(t) {
			continue
		}
		if sample.Metric[queries.Resolved] == "false" {
			unresolved[sample] = t
			continue
		}
		d := inv.device(sample.Metric)
		if d == nil {
			continue
		}
		if d.Identity == nil {
			d.Identity, d.Parent, d.Node = sample.Metric, parentOf(d.ID.Name, sample.Metric), Place{d.ID.Cluster, nodeName(sample.Metric)}
		}
		d.Allocated = t
		reported[d] = append(reported[d], allocated(sample)...)
	}
	for d, owners := range reported {
		d.Owners = nest(owners)
		d.Free = len(owners) == 0
	}
	inv.putUnresolved(unresolved)
}

// nameServices gives owners their services: the kubelet names the pods that own
// devices, and no service.
func (inv builder) nameServices(pods model.Vector) {
	type pod struct {
		of   Key
		name string
	}
	named := func(k Key, name string) pod {
		k.Service = ""
		return pod{k, name}
	}
	services := make(map[pod]model.LabelValue, len(pods))
	for _, sample := range pods {
		m := sample.Metric
		services[named(KeyOf(m), UnitOf(m))] = m[queries.Service]
	}
	for _, d := range inv.Devices {
		for i := range d.Owners {
			if h := &d.Owners[i]; h.Service == nil {
				h.Service = optional.Text(services[named(KeyOfOwner(d.ID.Cluster, h), h.Pod)])
			}
		}
	}
}

// allocated is the owner that gpu.allocation names; none for a free device.
func allocated(sample *model.Sample) []consoleapi.Holder {
	m := sample.Metric
	if sample.Value <= 0 || UnitOf(m) == "" {
		return nil
	}
	source := string(m[queries.Source])
	if source == "" {
		source = "pod_resources"
	}
	h := ownerOf(m, source)
	h.Share = optional.Pointer(min(1, float64(sample.Value)))
	switch s := string(m[queries.Sharing]); s {
	case "none", "time_slicing", "mps", "slurm_shared":
		h.Sharing = &s
	}
	return []consoleapi.Holder{h}
}

// nest gives the pods in which Slurm runs the jobs that own a device within them.
func nest(owners []consoleapi.Holder) []consoleapi.Holder {
	nested := func(h consoleapi.Holder) bool { return h.Job != nil && h.Job.Nested }
	if !slices.ContainsFunc(owners, nested) || !slices.ContainsFunc(owners, func(h consoleapi.Holder) bool { return h.Job == nil }) {
		return owners
	}
	var out []consoleapi.Holder
	for _, pod := range owners {
		if pod.Job != nil {
			if !nested(pod) {
				out = append(out, pod)
			}
			continue
		}
		for _, job := range owners {
			if nested(job) {
				both := pod
				both.Job, both.Share, both.Sharing = job.Job, job.Share, job.Sharing
				out = append(out, both)
			}
		}
	}
	return out
}

// putUnresolved notes devices that the kubelet lists, and that cannot be joined to a device
// in telemetry: only on nodes without any, where nothing is counted twice. Instances of other
// nodes may be known to be free.
func (inv builder) putUnresolved(samples map[*model.Sample]time.Time) {
	telemetry := map[Place]bool{}
	for _, d := range inv.Devices {
		if !d.Seen.IsZero() {
			telemetry[d.Node] = true
		}
	}
	listed := map[Place]map[string]*listing{}
	for sample, t := range samples {
		at := Place{string(sample.Metric[queries.Cluster]), nodeName(sample.Metric)}
		if telemetry[at] {
			if listed[at] == nil {
				listed[at] = map[string]*listing{}
			}
			profile := profileOf(sample.Metric)
			if listed[at][profile] == nil {
				listed[at][profile] = &listing{}
			}
			listed[at][profile].add(t, sample.Value > 0)
			continue
		}
		d := inv.device(sample.Metric)
		if d == nil {
			continue
		}
		// Its id is the node's name and the kubelet's id, which names no parent.
		d.Identity, d.Node, d.Allocated = sample.Metric, at, t
		d.Owners = append(d.Owners, allocated(sample)...)
		d.Free = len(d.Owners) == 0
	}
	for at, profiles := range listed {
		if profiles[""] == nil { // which may be of any profile
			inv.putFree(at, profiles)
		}
	}
}

// listing is the instances of a profile on a node that the kubelet lists, by ids that
// telemetry does not have.
type listing struct {
	held, free int
	at         time.Time // the oldest of them
}

func (l *listing) add(t time.Time, held bool) {
	if held {
		l.held++
	} else {
		l.free++
	}
	if l.at.IsZero() || t.Before(l.at) {
		l.at = t
	}
}

// profileOf returns the profile of an instance that the kubelet lists, empty for none.
func profileOf(m model.Metric) string {
	if profile := m[queries.MIGProfile]; profile != "" {
		return migprofile.Normal(string(profile))
	}
	return migprofile.Resource(string(m[queries.Resource]))
}

// putFree notes the instances of a node that are free, by the rule of gpu_cost: telemetry shows
// as many of the profile without an owner as the kubelet lists as free, and as many with one as
// it lists as held.
func (inv builder) putFree(at Place, profiles map[string]*listing) {
	held, unowned := map[string]int{}, map[string][]*Device{}
	for _, d := range inv.Devices {
		profile := migprofile.Normal(string(d.Identity[queries.MIGProfile]))
		switch {
		case d.Node != at || profiles[profile] == nil || !d.Allocated.IsZero() || !inv.judge.Fresh(d.Seen):
		case len(d.Owners) > 0:
			held[profile]++
		default:
			unowned[profile] = append(unowned[profile], d)
		}
	}
	for profile, l := range profiles {
		if len(unowned[profile]) != l.free || held[profile] != l.held {
			continue
		}
		for _, d := range unowned[profile] {
			d.Free, d.Allocated = true, l.at
		}
	}
}
