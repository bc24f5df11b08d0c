// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpseeds has OTLP requests that no SDK sends and that any client can:
// keys that repeat, each time with another type of value, types that a key never
// has, values in values. They are seeds for the fuzz tests of the components that
// OTLP reaches. Only tests import it.
package otlpseeds

import (
	"bytes"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Device is the GPU that every request is about.
const Device = "GPU-11111111-2222-3333-4444-555555555555"

// keys are those that components read from attributes, whatever their level.
var keys = []string{
	names.ServiceName, names.HwID, names.HwType, names.HwParent, names.K8sClusterName, names.K8sNodeName, names.HostName,
	names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName, names.K8sPodUID,
	names.GPUIndex, names.GPUMIGInstanceID, names.GPUMIGProfile, names.GPUMIGUUID, names.GPUPartitionID, names.GPUPartitionProfile, names.GPULinkIndex, names.GPURASSeverity, names.GPUSharing, names.GPUAllocationResolved,
	names.GPUAttributionSource, names.GPUValueScope, names.GPUXIDCode, names.GPUXIDDerived, names.HwGPUTask, names.GPUPipe,
	names.ServerAddress, names.ServerPort, names.ExporterHolders, names.DeviceHolders, names.ExporterPod, names.ExporterNamespace, names.ExporterContainer, names.GPUEventID,
}

// values are one of each type, in the order in which they are paired.
var values = []func(v pcommon.Value){
	func(v pcommon.Value) { v.SetStr(Device) },
	func(v pcommon.Value) { v.SetInt(-1 << 63) },
	func(v pcommon.Value) {
		m := v.SetEmptySlice().AppendEmpty().SetEmptyMap()
		m.PutStr(names.ExporterPod, "a")
		m.PutStr(names.ExporterNamespace, "ml")
		m.PutEmptySlice(names.GPUMemoryUsage.Name).AppendEmpty()
	},
	func(v pcommon.Value) { v.SetEmptyMap().PutEmptyMap("a").PutEmptySlice("b").AppendEmpty().SetEmptyMap() },
	func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{0xff, 0}) },
	func(v pcommon.Value) { v.SetDouble(0.5) },
	func(v pcommon.Value) { v.SetBool(true) },
	func(pcommon.Value) {},
	func(v pcommon.Value) {
		for range 50 {
			v = v.SetEmptySlice().AppendEmpty()
		}
	},
}

// twice puts a key under two names, of which rename makes one.
func twice(attrs pcommon.Map, key string, first, second func(pcommon.Value)) {
	first(attrs.PutEmpty(stand(key)))
	second(attrs.PutEmpty(key))
}

// stand is a name of the same length, which no key has.
func stand(key string) string { return key[:len(key)-1] + "\x01" }

func rename(request []byte) []byte {
	for _, key := range keys {
		request = bytes.ReplaceAll(request, []byte(stand(key)), []byte(key))
	}
	return request
}

// each makes a request of every pair of types, with the keys that matter to a
// reader that wants one type, and with all of them.
func each(request func(fill func(attrs pcommon.Map))) {
	for i, first := range values {
		for j, second := range values {
			if i != j {
				request(func(attrs pcommon.Map) {
					for _, key := range keys {
						if _, there := attrs.Get(key); !there {
							twice(attrs, key, first, second)
						}
					}
				})
			}
		}
	}
}

// Metrics are requests with a device that two containers share and with points of
// it, at a time.
func Metrics(at time.Time) (out [][]byte) {
	ts := pcommon.NewTimestampFromTime(at)
	each(func(fill func(pcommon.Map)) {
		md := pmetric.NewMetrics()
		resource := func(attrs ...string) pmetric.ScopeMetrics {
			rm := md.ResourceMetrics().AppendEmpty()
			for i := 0; i < len(attrs); i += 2 {
				rm.Resource().Attributes().PutStr(attrs[i], attrs[i+1])
			}
			return rm.ScopeMetrics().AppendEmpty()
		}
		point := func(sm pmetric.ScopeMetrics, m *names.Metric) pmetric.NumberDataPoint {
			p := m.Init(sm.Metrics().AppendEmpty()).AppendEmpty()
			p.SetTimestamp(ts)
			p.SetDoubleValue(0.5)
			return p
		}
		held := resource(names.K8sNodeName, "n1", names.K8sNamespaceName, "ml", names.K8sPodName, "a", names.K8sContainerName, "c")
		p := point(held, &names.GPUAllocation)
		p.Attributes().PutStr(names.HwID, Device+"::0")
		p.Attributes().PutBool(names.GPUAllocationResolved, true)
		p.Attributes().PutStr(names.GPUSharing, names.SharingTimeSlicing)
		for _, m := range []*names.Metric{&names.GPUAllocation, &names.GPUUtilization, &names.GPUMemoryUsage, &names.GPUXIDErrors, &names.GPURASLast, &names.GPULinkUp} {
			known := resource(names.HwID, Device, names.HwType, names.HwTypeGPU, names.K8sNodeName, "n1")
			fill(md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1).Resource().Attributes())
			fill(point(known, m).Attributes())
			odd := resource()
			fill(md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1).Resource().Attributes())
			fill(point(odd, m).Attributes())
		}
		request, _ := new(pmetric.ProtoMarshaler).MarshalMetrics(md) // it has no way to fail
		out = append(out, rename(request))
	})
	return out
}

// Logs are requests with an event about the device and with a record of anything.
func Logs(at time.Time) (out [][]byte) {
	each(func(fill func(pcommon.Map)) {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		fill(rl.Resource().Attributes())
		for _, event := range []string{names.EventXID, ""} {
			record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			record.SetTimestamp(pcommon.NewTimestampFromTime(at))
			record.SetEventName(event)
			values[8](record.Body())
			fill(record.Attributes())
		}
		request, _ := new(plog.ProtoMarshaler).MarshalLogs(ld)
		out = append(out, rename(request))
	})
	return out
}

// Traces are requests with a span about the device.
func Traces(at time.Time) (out [][]byte) {
	each(func(fill func(pcommon.Map)) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		fill(rs.Resource().Attributes())
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
		fill(span.Attributes())
		request, _ := new(ptrace.ProtoMarshaler).MarshalTraces(td)
		out = append(out, rename(request))
	})
	return out
}
