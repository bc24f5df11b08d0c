// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// readings are the inputs of one time; what is absent is NaN or -1.
type readings struct {
	measured            bool       // there is a value of the device itself
	temperature         [2]float64 // by sensor
	usage, limit, ratio float64    // of the memory
	throttle            int8       // 1: thermal or power-brake, 0: neither
	reasons             uint8      // bits of throttleReasons
	uncorrected         float64
	uncorrectedMore     float64 // since the point before, of one that is a delta
	remapFailure        float64
	xidLast             int64
	xids                []xidCount
}

func (r *readings) clear() {
	nan := math.NaN()
	*r = readings{
		temperature: [2]float64{nan, nan}, usage: nan, limit: nan, ratio: nan, throttle: -1,
		uncorrected: nan, uncorrectedMore: nan, remapFailure: nan, xidLast: -1, xids: r.xids[:0],
	}
}

// greater keeps the greater of two readings, so that their order does not matter.
func greater(dst *float64, v float64) {
	if math.IsNaN(*dst) || v > *dst {
		*dst = v
	}
}

// maxCount is the largest number of events that is believed. A float64 counts no
// further.
const maxCount = 1 << 53

func (e *engine) readDevice(now *readings, in input, p pmetric.NumberDataPoint, v float64, delta bool) {
	switch in {
	case inputTemperature:
		for i, sensor := range sensors {
			if str(p.Attributes(), names.HwSensorLocation) == sensor {
				greater(&now.temperature[i], v)
			}
		}
	case inputUsage:
		greater(&now.usage, v)
	case inputLimit:
		greater(&now.limit, v)
	case inputRatio:
		greater(&now.ratio, v)
	case inputThrottle:
		reason := str(p.Attributes(), names.GPUThrottleReason)
		i := slices.Index(throttleReasons[:], reason)
		if i < 0 {
			return
		}
		now.throttle = max(now.throttle, 0)
		if v > 0 {
			now.throttle = 1
			now.reasons |= 1 << i
		}
	case inputErrors:
		switch {
		case str(p.Attributes(), names.ErrorType) != names.ErrorTypeUncorrected:
		case v < 0 || v > maxCount:
			e.invalid(names.HwErrors.Name)
		case delta:
			greater(&now.uncorrectedMore, v)
		default:
			greater(&now.uncorrected, v)
		}
	case inputRemapFailure:
		greater(&now.remapFailure, v)
	case inputXIDLast:
		if v >= 0 && v <= maxCode {
			now.xidLast = max(now.xidLast, int64(v))
		}
	case inputXIDs:
		code, ok := xidCodeOf(p)
		if !ok || v < 0 || v > maxCount {
			e.invalid(names.GPUXIDErrors.Name)
			return
		}
		n := xidCount{code: code, delta: delta, start: p.StartTimestamp(), count: v}
		if derived, ok := p.Attributes().Get(names.GPUXIDDerived); ok {
			n.derived = derived.AsString() == "true"
		}
		if !now.add(n) {
			e.unwatched("xid")
		}
	}
}

// maxCode is the largest number that can be an XID.
const maxCode = math.MaxInt32

// xidCodeOf reads the code, which is a text where a pipeline made it one.
func xidCodeOf(p pmetric.NumberDataPoint) (int64, bool) {
	v, ok := p.Attributes().Get(names.GPUXIDCode)
	if !ok {
		return 0, false
	}
	code, err := v.Int(), error(nil)
	if v.Type() == pcommon.ValueTypeStr {
		code, err = strconv.ParseInt(v.Str(), 10, 64)
	}
	return code, err == nil && code > 0 && code <= maxCode
}

func (e *engine) readExporter(r *reading, in input, p pmetric.NumberDataPoint, v float64) {
	address := text(names.ServerAddress, r.attrs, p.Attributes())
	port := int64(0)
	for _, attrs := range [...]pcommon.Map{r.attrs, p.Attributes()} {
		if v, ok := attrs.Get(names.ServerPort); ok && v.Type() == pcommon.ValueTypeInt {
			port = v.Int()
		}
	}
	at := r.place(p)
	id := exporterID{cluster: at.cluster, node: at.node, port: port}
	if at.node == "" {
		if address == "" {
			e.invalid(names.ExporterUp.Name)
			return
		}
		id.address = address
	}
	x := e.exporterOf(id)
	if x == nil || !e.openExporter(x, p.Timestamp()) {
		return
	}
	on := int8(0)
	if v > 0 {
		on = 1
	}
	x.answered(address, port, in == inputFrozen, on)
}
