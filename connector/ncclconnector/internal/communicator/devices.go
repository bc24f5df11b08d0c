// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package communicator

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/stall"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

type deviceKey struct{ cluster, id string }

// device is what matters of one: who has it, and why its rank might be late.
type device struct {
	holder              Subject
	held                bool
	seen                time.Time // gpu.allocation
	read                time.Time // the rest
	utilization, tensor float64   // NaN: not known, as nvlink, which is in bytes a second
	nvlink              map[string]float64
	throttled           map[string]bool // by reason
	xid                 int64
}

// How long what is known of a device stands, and below what tensor cores and NVLink do nothing:
// a kernel that waits for other ranks spins without either.
const (
	deviceTTL  = 3 * time.Minute
	spins      = 0.95
	noTensor   = 0.01
	noTransfer = 1e6 // bytes a second
)

// fleet are the devices that are known.
type fleet struct {
	most    int
	all     map[deviceKey]*device
	refused int // points of devices over the limit
}

// observe takes in who has which device, and what state it is in.
func (f *fleet) observe(md pmetric.Metrics, now time.Time) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if read := readers.Get(m.Name()); read != nil {
					dps, _ := points.Numbers(m)
					for _, dp := range dps.All() {
						f.read(read, attrs, dp, now)
					}
				}
			}
		}
	}
}

func (f *fleet) read(read reader, attrs pcommon.Map, dp pmetric.NumberDataPoint, now time.Time) {
	id := points.Str(dp.Attributes(), names.HwID)
	if id == "" {
		id = points.Str(attrs, names.HwID)
	}
	if id == "" {
		return
	}
	key := deviceKey{points.Str(attrs, names.K8sClusterName), id}
	d := f.all[key]
	if d == nil {
		if len(f.all) >= f.most {
			f.refused++
			return
		}
		d = &device{utilization: -1, tensor: -1, nvlink: map[string]float64{}, throttled: map[string]bool{}}
		f.all[key] = d
	}
	read(d, attrs, dp, now)
}

// reader takes a point of a metric. A point without a value is NaN.
type reader func(d *device, attrs pcommon.Map, dp pmetric.NumberDataPoint, now time.Time)

var readers = func() (t names.Table[reader]) {
	of := func(m names.Metric, f func(d *device, attrs pcommon.Map, v float64)) {
		t.Put(m.Name, func(d *device, _ pcommon.Map, dp pmetric.NumberDataPoint, now time.Time) {
			d.read = now
			f(d, dp.Attributes(), points.Value(dp))
		})
	}
	t.Put(names.GPUAllocation.Name, func(d *device, attrs pcommon.Map, dp pmetric.NumberDataPoint, now time.Time) {
		d.holder, d.held, d.seen = subjectOf(attrs), points.Value(dp) > 0, now
	})
	of(names.GPUUtilization, func(d *device, attrs pcommon.Map, v float64) {
		if points.Str(attrs, names.HwGPUTask) == "general" {
			d.utilization = v
		}
	})
	of(names.GPUPipeActive, func(d *device, attrs pcommon.Map, v float64) {
		if points.Str(attrs, names.GPUPipe) == "tensor" {
			d.tensor = v
		}
	})
	of(names.GPUNVLinkThroughput, func(d *device, attrs pcommon.Map, v float64) {
		d.nvlink[points.Str(attrs, names.NetworkDirection)] = v
	})
	of(names.GPUThrottleActive, func(d *device, attrs pcommon.Map, v float64) {
		if len(d.throttled) < maxReasons {
			d.throttled[points.Str(attrs, names.GPUThrottleReason)] = v > 0
		}
	})
	of(names.GPUXIDLast, func(d *device, _ pcommon.Map, v float64) {
		if v >= 0 && v < 1<<16 {
			d.xid = int64(v)
		}
	})
	return t
}()

// maxReasons is of how many reasons of throttling the state of a device is kept.
const maxReasons = 16

// reasons are those for which the clocks of a device are held down now.
func (d *device) reasons() (all []string) {
	for reason, active := range d.throttled {
		if active {
			all = append(all, reason)
		}
	}
	slices.Sort(all)
	return all
}

// spinning reports whether a device is busy and yet moves and computes nothing. It is false where
// that is not known; a device without NVLink has none to look at.
func (d *device) spinning(now time.Time) bool {
	if now.Sub(d.read) > deviceTTL || !(d.utilization >= spins && d.tensor >= 0 && d.tensor < noTensor) {
		return false
	}
	for _, v := range d.nvlink {
		if !(v < noTransfer) {
			return false
		}
	}
	return true
}

// holdings are the devices of all subjects. Devices of which nothing arrives are forgotten.
func (f *fleet) holdings(now time.Time) map[Subject]stall.Devices {
	all := map[Subject]stall.Devices{}
	for key, d := range f.all {
		if now.Sub(d.seen) > deviceTTL && now.Sub(d.read) > deviceTTL {
			delete(f.all, key)
			continue
		}
		if !d.held || now.Sub(d.seen) > deviceTTL {
			continue
		}
		has := all[d.holder]
		has.Held++
		if d.spinning(now) {
			has.Spinning++
		}
		all[d.holder] = has
	}
	return all
}
