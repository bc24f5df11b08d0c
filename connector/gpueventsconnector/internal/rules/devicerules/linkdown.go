// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// LinkDown is gpu.link.down. Ports to the network are left out: what is behind them is
// switched off for many reasons.
var LinkDown = Rule{
	Rule: rule.Rule{
		Event: names.EventLinkDown, Set: rule.Device,
		Reads: []rule.Input{{
			Metric: &names.GPULinkUp, Links: true, Flag: true, Where: &rule.Where{Attribute: names.GPULinkKind, Not: []string{names.LinkExternal}},
		}},
		Keys: []rule.Key{rule.Duration("for", time.Minute, 0, rule.MaxFor)},
		Doc: rule.Doc{
			Raised:  "`gpu.link.up` of a port to another GPU is 0 `for` 1m, after it was 1",
			Cleared: "all ports that had a link have one", Severity: "ERROR", Key: perDevice,
		},
	},
	Conditions: func(s rule.Settings) []Condition {
		lasts := s.Duration("for")
		return []Condition{{
			Spec: condition.Once(plog.SeverityNumberError),
			Judge: func(_ *subject.Device, r Readings) condition.Verdict {
				if r.Ports == nil || !r.Ports.fresh {
					return condition.Verdict{}
				}
				v := condition.Verdict{Known: true, Over: len(r.Ports.down) == 0}
				if len(r.Ports.DownFor(lasts)) > 0 {
					v.Met = 1
				}
				return v
			},
			Describe: func(d *subject.Device, r Readings, ev *event.Event) {
				if ev.Cleared() {
					d.Describe(ev, " has all its links to other GPUs again")
					return
				}
				down := r.Ports.DownFor(lasts)
				shown := event.Names(slices.Clone(down))
				which := "the link of port " + strings.Join(shown, ", ")
				switch {
				case slices.Equal(down, []string{""}):
					which, shown = "a link", nil
				case len(down) > 1:
					which = fmt.Sprintf("the links of %d ports (%s)", len(down), strings.Join(shown, ", "))
				}
				d.Describe(ev, " lost "+which+" to other GPUs")
				ev.Add(func(attrs pcommon.Map) { event.PutList(attrs, names.GPULinkIndexes, shown) })
			},
		}}
	},
}

// MaxPorts is how many ports of one device are kept.
const MaxPorts = 128

// maxPort is the longest name of a port, in bytes.
const maxPort = 32

// Link is the state of a port on a page.
type Link struct {
	Port string
	Up   bool
}

// AddLink adds a point of gpu.link.up to those of one time. A duplicate port is up where
// either point is; a device may report all of its ports as one without a name. It reports
// whether the point is valid, and whether there was room for it.
func AddLink(links []Link, v float64, port string) (all []Link, valid, room bool) {
	if len(port) > maxPort {
		return links, false, true
	}
	if i := slices.IndexFunc(links, func(l Link) bool { return l.Port == port }); i >= 0 {
		links[i].Up = links[i].Up || v > 0
		return links, true, true
	}
	if len(links) >= MaxPorts {
		return links, true, false
	}
	return append(links, Link{strings.Clone(port), v > 0}), true, true
}

// Ports are the ports of a device that had a link.
type Ports struct {
	Seen  []string // in ascending order
	down  map[string]pcommon.Timestamp
	at    pcommon.Timestamp // of the last page with a port; 0: none, or before a restart
	fresh bool              // the last page had one
}

// Take takes the ports on the page of a time. It reports whether a port is new.
func (p *Ports) Take(links []Link, at pcommon.Timestamp) (changed bool) {
	if p.fresh = len(links) > 0; !p.fresh {
		return false
	}
	if at < p.at || at.AsTime().Sub(p.at.AsTime()) > condition.MaxGap {
		for port := range p.down {
			p.down[port] = at // what happened in between is not known
		}
	}
	p.at = at
	for _, l := range links {
		i, seen := slices.BinarySearch(p.Seen, l.Port)
		switch {
		case l.Up:
			delete(p.down, l.Port)
			if !seen && len(p.Seen) < MaxPorts {
				p.Seen, changed = slices.Insert(p.Seen, i, l.Port), true
			}
		case seen:
			if p.down == nil {
				p.down = map[string]pcommon.Timestamp{}
			}
			if p.down[l.Port] == 0 {
				p.down[l.Port] = at
			}
		}
	}
	return changed
}

// DownFor are the ports without a link for at least that long, in ascending order.
func (p *Ports) DownFor(lasts time.Duration) (ports []string) {
	for port, since := range p.down {
		if p.at >= since+pcommon.Timestamp(lasts) {
			ports = append(ports, port)
		}
	}
	slices.SortFunc(ports, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // most names are numbers
		}
		return strings.Compare(a, b)
	})
	return ports
}
