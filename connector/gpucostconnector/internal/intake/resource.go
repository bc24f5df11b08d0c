// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// resource is the resource of the points that are read. Its texts are those of the batch.
type resource struct {
	rm    pmetric.ResourceMetrics
	attrs pcommon.Map
	what  uint8
	other bool // hw.type is another kind of hardware

	cluster, node, host            string
	namespace, pod, container, uid string
	slurm                          string // the cluster of the job that is the owner
	service                        string
	device, parent, model, profile string // profile is that of an instance or of a partition

	on    *node  // of the last point of gpu.allocation
	owner *owner // of all of them
	// The board of the device that was seen last.
	seen   *board
	seenID string
	seenAt int64
}

func (r *resource) read(rm pmetric.ResourceMetrics, what uint8) {
	r.rm, r.attrs, r.what = rm, rm.Resource().Attributes(), what
	for k, v := range r.attrs.All() {
		switch k { // what is no text is an empty one
		case names.K8sClusterName:
			r.cluster = v.Str()
		case names.K8sNodeName:
			r.node = v.Str()
		case names.HostName:
			r.host = v.Str()
		case names.K8sNamespaceName:
			r.namespace = v.Str()
		case names.K8sPodName:
			r.pod = v.Str()
		case names.K8sContainerName:
			r.container = v.Str()
		case names.K8sPodUID:
			r.uid = v.Str()
		case names.ServiceName:
			r.service = v.Str()
		case names.HwID:
			r.device = v.Str()
		case names.HwParent:
			r.parent = v.Str()
		case names.HwModel:
			r.model = v.Str()
		case names.GPUMIGProfile, names.GPUPartitionProfile:
			r.profile = v.Str()
		case names.HwType:
			r.other = v.Str() != names.HwTypeGPU && v.Str() != ""
		}
	}
	r.nameJob()
	// A tile is never held apart from its GPU, which has its figures.
	r.other = r.other || r.parent != "" && deviceid.MakeOf(r.device) == deviceid.MakeIntelGPU && !isReplica(r.device)
}

// tooLong reports whether a text is longer than an identity can be.
func tooLong(texts ...string) bool {
	for _, s := range texts {
		if len(s) > maxID {
			return true
		}
	}
	return false
}

// text is a text from telemetry as rows have it: bounded, in memory of its own, and without
// characters that mislead a reader. Different long texts stay different.
func text(s string) string { return clean(strings.Clone(s)) }

// clean is text for what is in memory of its own already.
func clean(s string) string { return safetext.Strip(safetext.Shorten(s, maxID), maxID) }

// place is the board and the part of it that an hw.id names.
type place struct {
	board, part string
	device      string // what the part is a replica of, else empty
}

// placeOf reads an hw.id. parent is the hw.parent beside it, which ids of other vendors than
// NVIDIA need.
func placeOf(id, parent string) place {
	device, replica := id, ""
	if strings.IndexByte(id, ':') >= 0 { // most ids have none
		device, replica = deviceid.CutReplica(id)
	}
	p := place{board: device, part: id}
	if replica != "" {
		p.device = device
	}
	switch {
	case deviceid.HasGPU(device):
		p.board, _, _ = strings.Cut(device, "/")
	case parent != "":
		if above, _ := deviceid.CutReplica(parent); above != device {
			p.board = above
		}
	}
	return p
}
