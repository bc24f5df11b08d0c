// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// world is a configuration and what happens in it, in order.
type world struct {
	cfg   summary.Config
	facts []fact
}

// fact is one thing that happens: exactly one of its fields besides at is set.
type fact struct {
	at           at
	point        *point
	announcement *announcement
	pods         *[]podFact
	step         at // the wall clock is set
	evaluate     bool
}

// pod is the pod that the fact is about, the zero key if it is about none or all.
func (f fact) pod() podKey {
	switch {
	case f.point != nil:
		return f.point.pod
	case f.announcement != nil:
		return f.announcement.pod
	}
	return podKey{}
}

// device is the hw.id that the fact is about, "" if none.
func (f fact) device() string {
	switch {
	case f.point != nil:
		return f.point.device
	case f.announcement != nil:
		return f.announcement.device
	}
	return ""
}

// without is the world without the facts that drop names.
func (w world) without(drop func(fact) bool) world {
	out := world{cfg: w.cfg}
	for _, f := range w.facts {
		if !drop(f) {
			out.facts = append(out.facts, f)
		}
	}
	return out
}

// withoutPod is the world without one pod.
func (w world) withoutPod(k podKey) world {
	out := w.without(func(f fact) bool { return f.pod() == k })
	for i, f := range out.facts {
		if f.pods == nil {
			continue
		}
		pods := []podFact{}
		for _, p := range *f.pods {
			if p.pod != k {
				pods = append(pods, p)
			}
		}
		out.facts[i].pods = &pods
	}
	return out
}

// String is the world as text.
func (w world) String() string {
	var b strings.Builder
	c := w.cfg
	source := map[summary.Source]string{summary.Seen: "seen", summary.Allocation: "allocation", summary.Kubernetes: "kubernetes"}
	fmt.Fprintf(&b, "expected_pods %s, staleness %s, initial_interval %s, warmup %s, allocation_ttl %s, service_ttl %s, partial_threshold %v, idle below %v for %s\n",
		source[c.Expected], c.Staleness, c.InitialInterval, c.Warmup, c.AllocationTTL, c.ServiceTTL, c.PartialThreshold, c.IdleThreshold, c.IdleFor)
	for _, f := range w.facts {
		fmt.Fprintf(&b, "%8s  ", f.at)
		switch {
		case f.point != nil:
			p := f.point
			fmt.Fprintf(&b, "%s of service %s%s on %q: %s of %s at %s is ", p.pod, p.service, uidSuffix(p.uid), p.node, p.field, p.device, p.stamp)
			if p.end {
				b.WriteString("ended\n")
			} else {
				fmt.Fprintf(&b, "%v\n", p.value)
			}
		case f.announcement != nil:
			a := f.announcement
			fmt.Fprintf(&b, "%s container %s of service %q%s: allocation of %s (resolved %t) at %s", a.pod, a.container, a.service, uidSuffix(a.uid), a.device, a.resolved, a.stamp)
			if a.end {
				b.WriteString(" is ended")
			}
			b.WriteString("\n")
		case f.pods != nil:
			b.WriteString("Kubernetes has")
			for _, p := range *f.pods {
				fmt.Fprintf(&b, " [%s%s service %s node %q running %t deleted %t up %t started %s last run %s devices %d]",
					p.pod, uidSuffix(p.uid), p.service, p.node, p.running, p.deleted, p.up, p.started, p.lastRun, p.devices)
			}
			b.WriteString("\n")
		case f.step != 0:
			fmt.Fprintf(&b, "the wall clock is set by %s\n", f.step)
		default:
			b.WriteString("evaluation\n")
		}
	}
	return b.String()
}

func (k podKey) String() string {
	return strings.TrimPrefix(k.cluster+":"+k.namespace+"/"+k.name, ":")
}

func uidSuffix(uid string) string {
	if uid == "" {
		return ""
	}
	return " uid " + uid
}

func (f field) String() string {
	return [numSamples + 1]string{"utilization", "sm", "dram", "tensor", "fp16", "fp32", "memory usage", "memory limit", "power", "suspended", "frozen"}[f]
}

const second = at(time.Second)
