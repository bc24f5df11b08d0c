// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
)

// page is what a page has: values by the name of the metric, with the value of its
// attribute behind a slash.
type page map[string]float64

// readings are a page as the reasons read it.
func readings(p page) (values []float64, places *Places) {
	read := func(inputs []rule.Input) (at []int) {
		for _, in := range inputs {
			of := in.Values
			if len(of) == 0 {
				of = []string{""}
			}
			for _, value := range of {
				key := in.Metric.Name
				if value != "" {
					key += "/" + value
				}
				if in.Where != nil && in.Where.Is != nil {
					key += " of " + in.Where.Is[0]
				}
				v, on := p[key]
				if !on {
					v = math.NaN()
				}
				at = append(at, len(values))
				values = append(values, v)
				if in.Count {
					at = append(at, len(values))
					values = append(values, math.NaN())
				}
			}
		}
		return at
	}
	places = &Places{}
	for _, r := range Reasons {
		places.Reasons = append(places.Reasons, read(r.Reads))
	}
	places.Counters = read(Counters[:])
	return values, places
}

// watch is a board with a clock.
type watch struct {
	Board
	now   time.Time
	every time.Duration // between two pages
}

func newWatch() *watch {
	w := &watch{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), every: 15 * time.Second}
	w.Kind = NVIDIA
	return w
}

func (w *watch) at() pcommon.Timestamp { return pcommon.NewTimestampFromTime(w.now) }

// see takes one page after the other for a while.
func (w *watch) see(p page, lasts time.Duration) *watch {
	for end := w.now.Add(lasts); !w.now.After(end); w.now = w.now.Add(w.every) {
		values, places := readings(p)
		w.Take(values, places, w.at())
	}
	return w
}

// rise is see with a count that rises by so much a page.
func (w *watch) rise(p page, name string, by float64, lasts time.Duration) *watch {
	for end := w.now.Add(lasts); !w.now.After(end); w.now = w.now.Add(w.every) {
		p[name] += by
		values, places := readings(p)
		w.Take(values, places, w.at())
	}
	return w
}

// riseSlowly is rise where the exporter reads the board for every fourth page.
func (w *watch) riseSlowly(p page, name string, by float64) {
	for range 5 {
		w.rise(p, name, by, 0).see(p, 2*w.every)
	}
}

func (w *watch) xid(code int) *watch {
	w.XID(code, XIDOf(code), w.at())
	w.now = w.now.Add(w.every)
	return w
}

// xidNow is an XID that the page of the same time has too.
func (w *watch) xidNow(code int) *watch {
	values, places := readings(asks(0))
	w.XID(code, XIDOf(code), w.at())
	w.Take(values, places, w.at())
	w.now = w.now.Add(w.every)
	return w
}

// other makes it a board of another vendor.
func (w *watch) other() *watch {
	w.Kind = OwnHealth
	return w
}

// ras is a fatal error code of an AMD board.
func (w *watch) ras(code int) *watch {
	e, _ := ras.Lookup(code, ras.Fatal)
	w.RAS(code, e.Action, w.at())
	w.now = w.now.Add(w.every)
	return w
}

func (w *watch) xids(codes ...int) *watch {
	for _, code := range codes {
		w.xid(code)
	}
	return w
}

// asks is a page with a recovery action.
func asks(action float64) page { return page{"gpu.recovery.action": action} }

// recover is a failure of which the driver recovers after a reset.
func (w *watch) recover() *watch { return w.see(asks(1), 0).seen(Reset).see(asks(0), 0) }

func (w *watch) fault(code int, owner string) *watch {
	w.Fault(code, owner, w.at())
	return w.xid(code)
}

func (w *watch) lose() *watch { return w.set(Lost, true) }
func (w *watch) back() *watch { return w.set(Lost, false) }

func (w *watch) set(name string, active bool) *watch {
	w.Set(name, active, w.at())
	w.now = w.now.Add(w.every)
	return w
}

// flap has NVLink errors so often, ten minutes apart.
func (w *watch) flap(times int) *watch {
	p := page{"hw.errors/uncorrected": 0, "gpu.nvlink.errors/replay": 0}
	w.see(p, 0)
	for range times {
		w.see(p, 11*time.Minute)
		w.rise(p, "gpu.nvlink.errors/replay", 1, 0)
	}
	return w
}

func (w *watch) seen(e Evidence) *watch {
	w.Seen(e, w.at())
	w.now = w.now.Add(w.every)
	return w
}

// String is the verdict in a line.
func (w *watch) String() string {
	v := w.Verdict()
	if !v.Known {
		return "unknown"
	}
	out := []string{v.State.String()}
	for _, a := range v.Reasons {
		out = append(out, a.Reason.Name)
	}
	if v.Action != health.None {
		out = append(out, "→", v.Action.String())
	}
	return strings.Join(out, " ")
}
