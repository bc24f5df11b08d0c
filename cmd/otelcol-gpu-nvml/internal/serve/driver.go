// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve answers the nvml receiver's requests with what the driver's library gives:
// a thread for the library as a whole, one for each board, and one for each board's events.
// A call that hangs holds its own thread alone.
package serve

import (
	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Library is the driver's library, once it is loaded.
type Library interface {
	// Caller returns what calls the library from one thread. Without announce, its calls are
	// not announced.
	Caller(announce nvml.Announce) Caller
}

// Caller is what serve needs of nvml.Caller.
type Caller interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	ErrorString(r nvml.Return) string
	Driver() (string, nvml.Return)
	NVML() (string, nvml.Return)
	Count() (int, nvml.Return)

	ByPCI(address string) (nvml.Device, nvml.Return)
	ByIndex(index int) (nvml.Device, nvml.Return)
	Identify(d nvml.Device, board *nvmlproto.Board) nvml.Return
	MIG(d nvml.Device) (*nvmlproto.MIG, nvml.Return)
	Instances(d nvml.Device) ([]nvml.Instance, []nvmlproto.Refused, nvml.Return)
	Forget(d nvml.Device)
	Read(d nvml.Device, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused)
	Processes(d nvml.Device) (*nvmlproto.Processes, []nvmlproto.Refused, nvml.Return)

	GPMSupport(d nvml.Device) (bool, nvml.Return)
	SampleAlloc() (nvml.Sample, nvml.Return)
	SampleGet(d nvml.Device, s nvml.Sample) nvml.Return
	MigSampleGet(parent nvml.Device, gi int, s nvml.Sample) nvml.Return
	Metrics(first, second nvml.Sample, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused, nvml.Return)
	SampleFree(s nvml.Sample) nvml.Return

	EventSet() (nvml.Set, nvml.Return)
	EventTypes(d nvml.Device) (uint64, nvml.Return)
	Register(d nvml.Device, types uint64, s nvml.Set) nvml.Return
	Wait(s nvml.Set, milliseconds uint32) (nvml.Event, nvml.Return)
	FreeSet(s nvml.Set) nvml.Return
}
