// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
)

// Class is what is kept of a DeviceClass.
type Class struct {
	name, driver string
	extended     string // the extended resource that it serves, "" for none
	created      time.Time
}

// ClassKeeper takes of a DeviceClass what is needed.
type ClassKeeper struct{ Drivers map[string]bool }

// ofDriver finds the drivers in a selector of a DeviceClass: device.driver == "gpu.nvidia.com".
var ofDriver = regexp.MustCompile(`\bdevice\.driver\s*==\s*["']([^"']+)["']`)

// Keep is the class as far as it is needed. Classes of other drivers are left out, and those of
// which the selectors name no driver, or several.
func (k *ClassKeeper) Keep(obj any) (Class, bool) {
	c, ok := obj.(*resourcev1.DeviceClass)
	if !ok {
		return Class{}, false
	}
	out := Class{name: c.Name, created: c.CreationTimestamp.Time}
	if c.Spec.ExtendedResourceName != nil {
		out.extended = *c.Spec.ExtendedResourceName
	}
	for _, s := range c.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		for _, match := range ofDriver.FindAllStringSubmatch(s.CEL.Expression, -1) {
			if out.driver != "" && out.driver != match[1] {
				return Class{}, false
			}
			out.driver = match[1]
		}
	}
	return out, k.Drivers[out.driver]
}

// Served are the drivers of DeviceClasses, by the names under which pods request their devices:
// those of the classes, and of the extended resources that they serve.
type Served map[string]string

// ServedBy maps names to drivers. Of several classes that serve an extended resource the newest
// does, as for the scheduler, and of those the first by name.
func ServedBy(classes []Class) Served {
	out := Served{}
	slices.SortFunc(classes, func(a, b Class) int { return cmp.Or(a.created.Compare(b.created), -cmp.Compare(a.name, b.name)) })
	for _, c := range classes {
		out[c.name] = c.driver
		if c.extended != "" {
			out[c.extended] = c.driver
		}
	}
	return out
}

// Requests are pods with what they request under the driver that will serve it, since its devices
// are counted there. An extended resource stays what it is on a node, where a device plugin serves
// it, and where a node has it from a device plugin, which may serve it as well.
func (s Served) Requests(pods *gpupods.Snapshot, nodes []*capacity.Node) *gpupods.Snapshot {
	if len(s) == 0 {
		return pods
	}
	plugin := map[string]bool{}
	for _, n := range nodes {
		for _, d := range n.Devices {
			plugin[d.Resource] = plugin[d.Resource] || d.Allocatable > 0
		}
	}
	driver := func(p *gpupods.Pod, r gpupods.Request) string {
		if r.Allocated || r.Claim == "" && (p.Node != "" || plugin[r.Resource]) {
			return r.Resource
		}
		return cmp.Or(s[r.Resource], r.Resource)
	}
	return pods.With(func(p *gpupods.Pod) []gpupods.Request {
		if !slices.ContainsFunc(p.Scheduling.Requests, func(r gpupods.Request) bool { return driver(p, r) != r.Resource }) {
			return p.Scheduling.Requests
		}
		var out []gpupods.Request
		for _, r := range p.Scheduling.Requests {
			r.Resource = driver(p, r)
			// The requests of one claim may be of several classes of a driver.
			if i := slices.IndexFunc(out, func(o gpupods.Request) bool { return o.Resource == r.Resource && o.Claim == r.Claim }); i >= 0 {
				out[i].Count += r.Count
				out[i].Absurd = out[i].Absurd || r.Absurd
			} else {
				out = append(out, r)
			}
		}
		return out
	})
}
