// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet plays the agents of a large fleet: what a node sends is
// serialised once, and for each request only names and times are put in.
package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Devices are those of a node, each held by a pod of its own.
const Devices = 8

// MaxNodes is what fits into the digits of a name.
const MaxNodes = 99999

// NodesOfService is how many nodes the pods of a service are on.
const NodesOfService = 2

// What stands in the template for what differs: as wide as what replaces it.
const (
	nodeMark    = "~NNN~"
	serviceMark = "~SSS~"
	timeMark    = 0x7E54494D45535421
	width       = len(nodeMark)
)

// Template is a node's request.
type Template struct {
	Points            int // of a request
	text              []byte
	nodes, sets, time []int // offsets
}

// series is one point of a device.
type series struct {
	metric      *names.Metric
	attr, value string
	reading     float64
}

// input is what gpu_summary and the rules of gpu_events on a gateway read.
var input = []series{
	{&names.GPUUtilization, names.HwGPUTask, "general", 0.7},
	{&names.GPUSMActive, "", "", 0.6},
	{&names.GPUDRAMActive, "", "", 0.3},
	{&names.GPUPipeActive, names.GPUPipe, "tensor", 0.2},
	{&names.GPUPipeActive, names.GPUPipe, "fp16", 0.1},
	{&names.GPUPipeActive, names.GPUPipe, "fp32", 0.1},
	{&names.GPUMemoryUsage, "", "", 60e9},
	{&names.GPUMemoryLimit, "", "", 80e9},
	{&names.HwPower, "", "", 480},
}

// rest is what a node sends beside that when nothing is left out: 60 points a
// device in all, the allocation included.
func rest() []series {
	all := []series{
		{&names.GPUMemoryUtilization, "", "", 0.75}, {&names.GPUMemoryReserved, "", "", 6e8}, {&names.GPUMemoryController, "", "", 0.4},
		{&names.GPUPowerLimit, "", "", 700}, {&names.HwEnergy, "", "", 1e9}, {&names.GPUEngineActive, "", "", 0.8},
		{&names.GPUSMOccupancy, "", "", 0.3}, {&names.GPUPCIeReplays, "", "", 0}, {&names.GPURetiredPending, "", "", 0},
		{&names.GPURowRemapFailure, "", "", 0}, {&names.GPUXIDLast, "", "", 0}, {&names.GPUVGPULicensed, "", "", 1},
	}
	several := func(metric *names.Metric, attr string, values int) {
		for i := range values {
			all = append(all, series{metric, attr, fmt.Sprint("value_", i), float64(i)})
		}
	}
	several(&names.HwTemperature, "hw.sensor", 2)
	several(&names.GPUClockFrequency, "gpu.clock", 3)
	several(&names.GPUThrottleActive, "gpu.throttle.reason", 8)
	several(&names.GPUThrottleDuration, "gpu.throttle.reason", 8)
	several(&names.GPUPCIeThroughput, "network.io.direction", 2)
	several(&names.GPUNVLinkThroughput, "network.io.direction", 2)
	several(&names.GPUIO, "network.io.direction", 4)
	several(&names.GPUNVLinkErrors, "gpu.nvlink.error", 4)
	several(&names.HwErrors, "error.type", 2)
	several(&names.GPUECCLifetime, "error.type", 2)
	several(&names.GPURemappedRows, "error.type", 1)
	return all
}

// New makes the request of a node: the summary's input alone, as agents send it
// where raw telemetry goes past the gateway, or everything.
func New(everything bool) (*Template, error) {
	list := input
	if everything {
		list = append(append([]series(nil), input...), rest()...)
	}
	md := pmetric.NewMetrics()
	for device := range Devices {
		addDevice(md, device, list)
	}
	exporter := md.ResourceMetrics().AppendEmpty()
	putNode(exporter.Resource().Attributes())
	exporter.Resource().Attributes().PutStr(names.ServerAddress, "exporter-"+nodeMark)
	exporter.Resource().Attributes().PutInt(names.ServerPort, 9400)
	set(names.ExporterUp.Init(exporter.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty(), 1)

	text, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return nil, err
	}
	mark := binary.LittleEndian.AppendUint64(nil, timeMark)
	return &Template{
		Points: md.DataPointCount(), text: text,
		nodes: offsets(text, []byte(nodeMark)), sets: offsets(text, []byte(serviceMark)), time: offsets(text, mark),
	}, nil
}

func addDevice(md pmetric.Metrics, device int, list []series) {
	id := fmt.Sprintf("GPU-6f3c1a52-0000-4000-8000-0000%s%03d", nodeMark, device)
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	putPod(attrs, device)
	attrs.PutStr(names.HwID, id)
	attrs.PutStr("hw.type", "gpu")
	attrs.PutStr("hw.vendor", "NVIDIA")
	attrs.PutStr("hw.model", "NVIDIA H100 80GB HBM3")
	attrs.PutStr("hw.driver_version", "580.105.08")
	attrs.PutInt("gpu.index", int64(device))
	scope := rm.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName("github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver")
	var last pmetric.NumberDataPointSlice
	var metric *names.Metric
	for _, s := range list {
		if s.metric != metric {
			metric, last = s.metric, s.metric.Init(scope.Metrics().AppendEmpty())
		}
		dp := last.AppendEmpty()
		dp.Attributes().PutStr(names.HwID, id)
		if s.attr != "" {
			dp.Attributes().PutStr(s.attr, s.value)
		}
		set(dp, s.reading)
	}
	held := md.ResourceMetrics().AppendEmpty()
	putPod(held.Resource().Attributes(), device)
	dp := names.GPUAllocation.Init(held.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	dp.Attributes().PutStr(names.HwID, id)
	set(dp, 1)
}

func set(dp pmetric.NumberDataPoint, value float64) {
	dp.SetTimestamp(pcommon.Timestamp(timeMark))
	dp.SetDoubleValue(value)
}

func putNode(attrs pcommon.Map) {
	attrs.PutStr(names.K8sClusterName, "fleet")
	attrs.PutStr(names.K8sNodeName, "node-"+nodeMark)
}

func putPod(attrs pcommon.Map, device int) {
	putNode(attrs)
	pod := fmt.Sprintf("chat-%s-7d9c6b5f4-%s%d", serviceMark, nodeMark, device)
	attrs.PutStr(names.K8sNamespaceName, "inference")
	attrs.PutStr(names.K8sPodName, pod)
	attrs.PutStr(names.K8sContainerName, "main")
	attrs.PutStr("k8s.pod.uid", "5d2c-"+pod)
	attrs.PutStr("k8s.deployment.name", "chat-"+serviceMark)
	attrs.PutStr("k8s.pod.start_time", "2026-01-01T00:00:00Z")
	attrs.PutStr(names.ServiceName, "chat-"+serviceMark)
}

// offsets are where mark stands in text.
func offsets(text, mark []byte) (at []int) {
	for from := 0; ; {
		i := bytes.Index(text[from:], mark)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(mark)
	}
}

// Request is what the node with that number sends at that time, written over buf.
func (t *Template) Request(buf []byte, node int, at time.Time) []byte {
	buf = append(buf[:0], t.text...)
	name, service := fmt.Appendf(nil, "%0*d", width, node), fmt.Appendf(nil, "%0*d", width, node/NodesOfService)
	for _, i := range t.nodes {
		copy(buf[i:], name)
	}
	for _, i := range t.sets {
		copy(buf[i:], service)
	}
	for _, i := range t.time {
		binary.LittleEndian.PutUint64(buf[i:], uint64(at.UnixNano()))
	}
	return buf
}
