// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// unknownOwner is what has a device in a gap with other owners before and after it.
const unknownOwner = "(unknown)"

// oracle computes what must be credited from what gateways were given. It is written for
// whole boards and for gaps that are shorter than those which may be bridged.
type oracle struct {
	polls  map[string][]owned // by device
	meters map[string][]owned // utilizations, those before the first poll as well
	flush  time.Duration
}

// owned is the owner of a device at a poll. Empty: nothing owns it.
type owned struct {
	at      time.Time
	service string
	life    int // of the gateway that was given it
}

func newOracle(flush time.Duration) *oracle {
	return &oracle{polls: map[string][]owned{}, meters: map[string][]owned{}, flush: flush}
}

// given records what a gateway was given.
func (o *oracle) given(md pmetric.Metrics, life int) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				all, ok := points.Numbers(m)
				if !ok {
					continue
				}
				for _, p := range all.All() {
					at := p.Timestamp().AsTime().Truncate(time.Millisecond)
					switch m.Name() {
					case names.GPUAllocation.Name:
						device := points.Str(p.Attributes(), names.HwID)
						o.polls[device] = append(o.polls[device], owned{at, points.Str(rm.Resource().Attributes(), names.ServiceName), life})
					case names.GPUUtilization.Name:
						device := points.Str(rm.Resource().Attributes(), names.HwID)
						if !p.Flags().NoRecordedValue() {
							o.meters[device] = append(o.meters[device], owned{at: at, life: life})
						}
					}
				}
			}
		}
	}
}

// killed forgets what a gateway that was started at a time had not stored when it was
// killed: what came after the last write, and the poll before that, which is not complete
// until the next one.
func (o *oracle) killed(started, at time.Time, life int) {
	stored := started.Add(at.Sub(started).Truncate(o.flush))
	for device, polls := range o.polls {
		n := len(polls)
		for n > 0 && polls[n-1].life == life && polls[n-1].at.After(stored) {
			n--
		}
		if n > 0 && polls[n-1].life == life {
			n--
		}
		o.polls[device] = polls[:n]
	}
}

// interval is a time of a device with one owner.
type interval struct {
	from, to time.Time
	service  string
	life     int // that of its end
}

// intervals are what is credited of a device: to the poll before the last one, since what
// is after that is not complete.
func (o *oracle) intervals(device string) (all []interval) {
	polls := o.polls[device]
	for i := 0; i+2 < len(polls); i++ {
		p, next := polls[i], polls[i+1]
		service := p.service
		if p.life != next.life && p.service != next.service {
			service = unknownOwner
		}
		all = append(all, interval{p.at, next.at, service, next.life})
	}
	return all
}

// held is the time of each owner.
func (o *oracle) held() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for device := range o.polls {
		for _, i := range o.intervals(device) {
			sums[i.service] += i.to.Sub(i.from)
		}
	}
	return sums
}

// unmeasured is the held time of each owner without a utilization that is young enough. A
// gateway does not know those that one before it was given.
func (o *oracle) unmeasured() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for device := range o.polls {
		meters := o.meters[device]
		for _, i := range o.intervals(device) {
			if i.service == "" || i.service == unknownOwner {
				continue
			}
			at := i.from
			for len(meters) > 0 && (meters[0].life < i.life || !meters[0].at.Add(staleness).After(i.from)) {
				meters = meters[1:]
			}
			for _, m := range meters {
				if !m.at.Before(i.to) {
					break
				}
				if m.at.After(at) {
					sums[i.service] += m.at.Sub(at)
				}
				at = later(at, m.at.Add(staleness))
			}
			if at.Before(i.to) {
				sums[i.service] += i.to.Sub(at)
			}
		}
	}
	return sums
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
