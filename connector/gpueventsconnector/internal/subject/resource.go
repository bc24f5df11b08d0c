// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Resource is the identity that a resource of metrics gives to its points.
type Resource struct {
	Device  DeviceID
	Facts   Facts
	Start   string // k8s.pod.start_time of the owner
	NotGPU  bool   // hw.type is another kind of hardware
	Replica bool   // of a shared device: it comes and goes with its owner
}

// Read reads the attributes of a resource into an empty Resource.
func (r *Resource) Read(attrs pcommon.Map) {
	r.Facts.Index = -1
	for k, v := range attrs.All() {
		if v.Type() == pcommon.ValueTypeInt && k == names.GPUIndex {
			r.Facts.Index = v.Int()
		}
		if v.Type() != pcommon.ValueTypeStr {
			continue
		}
		to := (*string)(nil)
		switch k {
		case names.HwID:
			to = &r.Device.ID
		case names.K8sClusterName:
			to = &r.Device.Cluster
		case names.K8sNodeName:
			to = &r.Facts.Node
		case names.HostName:
			to = &r.Facts.Host
		case names.HwParent:
			to = &r.Facts.Parent
		case names.HwModel:
			to = &r.Facts.Model
		case names.GPUPCIAddress:
			to = &r.Facts.PCI
		case names.HwDriverVersion:
			to = &r.Facts.Driver
		case names.K8sNamespaceName:
			to = &r.Facts.Owner.Namespace
		case names.K8sPodName:
			to = &r.Facts.Owner.Pod
		case names.K8sContainerName:
			to = &r.Facts.Owner.Container
		case names.K8sPodStartTime:
			to = &r.Start
		case names.ServiceName:
			to = &r.Facts.Owner.Service
		case names.HwType:
			r.NotGPU = v.Str() != names.HwTypeGPU && v.Str() != ""
		default:
			to = r.Facts.Owner.Job.Text(k)
		}
		if to != nil {
			*to = event.Bounded(v.Str())
		}
	}
	if r.Facts.Owner.Job.ID == "" {
		r.Facts.Owner.Job = Job{}
	}
	_, replica := deviceid.CutReplica(r.Device.ID)
	r.Replica = replica != ""
}
