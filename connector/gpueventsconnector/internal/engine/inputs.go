// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// kind is what the points of a metric are about.
type kind uint8

const (
	ofDevice kind = iota
	ofExporterUp
	ofExporterFrozen
	ofReconfiguring
	ofSchedulable
	ofNodeInfo
	ofService
)

// kinds are the metrics that are not about a device or a service.
var kinds = map[string]kind{
	names.ExporterUp.Name: ofExporterUp, names.ExporterFrozen.Name: ofExporterFrozen,
	names.GPUNodeMIGReconfiguring.Name: ofReconfiguring, names.GPUNodeSchedulable.Name: ofSchedulable,
	names.GPUNodeInfo.Name: ofNodeInfo,
}

// input is a metric that a rule reads.
type input struct {
	kind     kind
	measured bool // it is a value of the device itself
	reads    []slots
}

// slots are the places of an input's readings among those of a device.
type slots struct {
	rule.Input
	first int // of the first value; two for each value of a count
}

// inputs are the metrics that the rules read.
type inputs struct {
	table names.Table[*input]
	size  int // the number of readings of a device
}

// add adds the inputs of a rule, and returns the places of its readings. Rules that read
// the same share them.
func (in *inputs) add(r *rule.Rule) (places []int) {
	for _, read := range r.Reads {
		metric := read.Metric.Name
		k, special := kinds[metric]
		switch {
		case special:
		case r.Set == rule.Service:
			k = ofService
		default:
			k = ofDevice
		}
		i := in.table.Get(metric)
		if i == nil {
			i = &input{kind: k, measured: isMeasured(metric)}
			in.table.Put(metric, i)
		}
		if k == ofDevice {
			places = append(places, in.place(i, read)...)
		}
	}
	return places
}

func (in *inputs) place(i *input, read rule.Input) (places []int) {
	size := max(1, len(read.Values))
	if read.Count {
		size *= 2
	}
	if read.ByCode {
		size = 0
	}
	at := slices.IndexFunc(i.reads, func(s slots) bool {
		return s.Same(&read)
	})
	if at < 0 {
		at = len(i.reads)
		i.reads = append(i.reads, slots{read, in.size})
		in.size += size
	}
	for n := range size {
		places = append(places, i.reads[at].first+n)
	}
	return places
}
