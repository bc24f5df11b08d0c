// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// reading is what the attributes of a device's resource say.
type reading struct {
	labels labels
	device holders.Device // without the label's holder
	there  owner.Owner    // named in k8s.* already
	// The exporter's list of several owners; the zero Slice is none. It is taken
	// here because a key can be on a resource more than once, and with another type.
	list  pcommon.Slice
	has   contents // its points
	strip bool     // there are labels to be taken off
	// service.name, if it is there already.
	service string
}

// read fills r in one walk over attrs.
func (r *reading) read(attrs pcommon.Map) {
	*r = reading{}
	d := &r.device
	for key, value := range attrs.All() {
		switch value.Type() {
		case pcommon.ValueTypeStr:
			if value.Str() == "" {
				r.strip = r.strip || consumed(key)
				continue
			}
			switch key {
			case names.ServiceName:
				r.service = value.Str()
			case names.HwID:
				d.ID = value.Str()
			case names.HwParent:
				d.Parent = value.Str()
			case names.GPUIndex:
				d.Index = value.Str()
			case names.GPUMIGInstanceID:
				d.Instance = value.Str()
			case names.GPUMIGProfile:
				d.Profile = value.Str()
			case names.GPUMIGUUID:
				d.MIGUUID = value.Str()
			case names.K8sClusterName:
				d.Node.Cluster = value.Str()
			case names.K8sNodeName:
				d.Node.Name = value.Str()
			case names.K8sNamespaceName:
				r.there.Namespace = value.Str()
			case names.K8sPodName:
				r.there.Pod = value.Str()
			case names.K8sContainerName:
				r.there.Container = value.Str()
			default:
				r.strip = r.labels.read(key, value) || r.strip
			}
		case pcommon.ValueTypeInt:
			switch key {
			case names.GPUIndex:
				d.Index = strconv.FormatInt(value.Int(), 10)
			case names.GPUMIGInstanceID:
				d.Instance = strconv.FormatInt(value.Int(), 10)
			default:
				r.strip = r.strip || consumed(key)
			}
		case pcommon.ValueTypeSlice:
			if key == names.ExporterHolders {
				r.list, r.strip = value.Slice(), true
			}
			r.strip = r.strip || consumed(key)
		default:
			r.strip = r.strip || consumed(key)
		}
	}
}

// shared reports whether the exporter lists several owners.
func (r *reading) shared() bool { return r.list != (pcommon.Slice{}) }

// said is the holder that the exporter's labels name.
func (r *reading) said(cfg *Config) (owner.Owner, source) {
	switch {
	case cfg.ExporterLabels == ExporterLabelsIgnore:
		return owner.Owner{}, sourceNone
	case r.shared():
		return owner.Owner{}, sourceShared
	}
	return r.labels.holder()
}

// names reports whether the exporter's labels name an owner, or several.
func (r *reading) names() bool {
	_, from := r.labels.holder()
	return r.shared() || from == sourceLabels
}

// owned reports whether what by prints of the device has the owner that the device
// has already: the labels of another exporter, which goes on, name its owners, and
// those of this one name none.
func (d *device) owned(r *reading, by *exporters.Exporter, now time.Time) bool {
	return d != nil && by != nil && d.namedBy != nil && d.namedBy != by &&
		r.there.Pod == "" && r.service == "" && !r.names() && d.namedBy.Prints(d.namedAt, now)
}

// own gives attrs the owner that the device has.
func (d *device) own(attrs pcommon.Map) {
	for _, key := range []string{names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName, names.K8sPodUID, names.ServiceName} {
		if v, ok := d.identity.attrs.Get(key); ok {
			v.CopyTo(attrs.PutEmpty(key))
		} else {
			attrs.Remove(key)
		}
	}
}

// noteNames notes whether it is by whose labels name the device's owners.
func (d *device) noteNames(r *reading, by *exporters.Exporter, now time.Time) {
	if d != nil && by != nil && (by == d.namedBy || r.names()) {
		d.namedBy, d.namedAt = by, now
	}
}

// see tells what is known about devices that this one was heard of.
func (p *gpuPod) see(r *reading, now time.Time) bool {
	if said, from := r.said(p.cfg); from == sourceLabels {
		r.device.Label = said
	}
	return p.know.See(&r.device, now)
}

// identify says who holds the device: who is named in k8s.* already; else what
// gpu.allocation told; else, where that cannot be joined to the device, whom the
// exporter's labels name.
func (p *gpuPod) identify(r *reading, now time.Time) (owner.Owner, source, *holders.Fact) {
	if r.there.Pod != "" {
		return r.there, sourceResource, nil
	}
	f := p.know.Lookup(r.device.ID, now)
	if from := sourceOf(f); from != sourceNone {
		return f.Holder, from, f
	}
	who, from := r.said(p.cfg)
	if from == sourceNone && p.know.Unjoined(r.device.Node, now) {
		from = sourceUnresolved
	}
	return who, from, f
}

// sourceOf is the source of what gpu.allocation told; sourceNone if that is nothing.
func sourceOf(f *holders.Fact) source {
	switch f.State {
	case holders.Held:
		if f.DRA {
			return sourceDRA
		}
		return sourcePodResources
	case holders.Free:
		return sourceFree
	case holders.Shared:
		return sourceShared
	case holders.Contested:
		return sourceContested
	case holders.Expired:
		return sourceExpired
	case holders.MIGParent:
		return sourceMIGParent
	}
	return sourceNone
}

// write turns the exporter's labels on the resource of a device into the
// holder's k8s.* attributes. Points are left as they are.
func (r *reading) write(attrs pcommon.Map, who owner.Owner, from source, cfg *Config) {
	service := r.service
	said, _ := r.labels.holder()
	// Labels of another pod than the holder's say nothing about it.
	same := said.SamePod(who)
	if from.held() && service == "" && cfg.ServiceName == ServiceNameExporterLabels {
		service = who.Pod
		if same {
			service = serviceName(who.Pod, attrs)
		}
	}
	if r.strip {
		attrs.RemoveIf(func(key string, _ pcommon.Value) bool {
			return key == names.ExporterHolders || consumed(key)
		})
	}
	if !from.held() {
		return
	}
	uid := ""
	if same && from != sourceResource {
		uid = r.labels.podUID()
	}
	if service == r.service {
		service = "" // it is there
	}
	if from == sourceResource {
		who = owner.Owner{} // and so is he
	}
	putIdentity(attrs, who, uid, service)
}
