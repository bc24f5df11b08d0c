// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity decides who owns a device, from what is named on its resource, from
// gpu.allocation and from the exporter's labels, and writes it to the resource.
package identity

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/serviceidentity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Policy is what the configuration has about the exporter's labels.
type Policy struct {
	IgnoreLabels      bool // they name no owner, and are taken off
	ServiceFromLabels bool // service.name is computed from the pod labels among them
	// SlurmCluster is slurm.cluster.name of the jobs that they name; "": they own nothing.
	SlurmCluster string
}

// Join joins devices with gpu.allocation.
type Join struct {
	Memory *ownership.Memory
	Policy Policy
}

// Reading is what the attributes of a device's resource state.
type Reading struct {
	Labels Labels
	Device ownership.Device // without the owner that the labels name
	Named  owner.Owner      // in k8s.* and slurm.* already
	// The exporter's list of several owners; the zero Slice if absent. It is taken
	// here because a key can be on a resource more than once, and with another type.
	List  pcommon.Slice
	Has   points.Contents // its points
	strip bool            // there are labels to be taken off
	// service.name, if it is there already.
	Service string
}

// Read fills r in one walk over attrs.
func (r *Reading) Read(attrs pcommon.Map) {
	*r = Reading{}
	d := &r.Device
	job := false
	for key, value := range attrs.All() {
		switch value.Type() {
		case pcommon.ValueTypeStr:
			if value.Str() == "" {
				r.strip = r.strip || Consumed(key)
				continue
			}
			switch key {
			case names.ServiceName:
				r.Service = value.Str()
			case names.HwID:
				d.ID = value.Str()
			case names.HwModel:
				d.Model = value.Str()
			case names.HwParent:
				d.Parent = value.Str()
			case names.GPUIndex:
				d.Index = value.Str()
			case names.GPUMinor:
				d.Minor = value.Str()
			case names.GPUMIGInstanceID:
				d.Instance = value.Str()
			case names.GPUMIGProfile:
				d.Profile = migprofile.Normal(value.Str())
			case names.GPUMIGUUID:
				d.MIGUUID = value.Str()
			case names.K8sClusterName:
				d.Node.Cluster = value.Str()
			case names.K8sNodeName:
				d.Node.Name = value.Str()
			case names.K8sNamespaceName:
				r.Named.Namespace = value.Str()
			case names.K8sPodName:
				r.Named.Pod = value.Str()
			case names.K8sContainerName:
				r.Named.Container = value.Str()
			case names.SlurmJobID:
				job = true
			default:
				r.strip = r.Labels.read(key, value) || r.strip
			}
		case pcommon.ValueTypeInt:
			switch key {
			case names.GPUIndex:
				d.Index = strconv.FormatInt(value.Int(), 10)
			case names.GPUMinor:
				d.Minor = strconv.FormatInt(value.Int(), 10)
			case names.GPUMIGInstanceID:
				d.Instance = strconv.FormatInt(value.Int(), 10)
			default:
				r.strip = r.strip || Consumed(key)
			}
		case pcommon.ValueTypeSlice:
			if isList(key) {
				r.List, r.strip = value.Slice(), true
			}
			r.strip = r.strip || Consumed(key)
		default:
			r.strip = r.strip || Consumed(key)
		}
	}
	if job {
		r.Named.Job = owner.Of(attrs).Job
	}
}

// NamedAlready reports whether the resource names the owner.
func (r *Reading) NamedAlready() bool { return r.Named.Pod != "" || r.Named.IsJob() }

// isList reports whether an attribute is an exporter's list of several owners, of any receiver.
func isList(key string) bool { return key == names.ExporterHolders || key == names.DeviceHolders }

// Shared reports whether the exporter lists several owners.
func (r *Reading) Shared() bool { return r.List != (pcommon.Slice{}) }

// ByLabels is the owner that the exporter's labels name.
func (r *Reading) ByLabels(p Policy) (owner.Owner, Source) {
	switch {
	case p.IgnoreLabels:
		return owner.Owner{}, SourceNone
	case r.Shared():
		return owner.Owner{}, SourceShared
	}
	return r.Labels.OwnerOn(r.Device.ID, p)
}

// OwnerOn is the owner of the device id according to l: the pod, else the job.
func (l *Labels) OwnerOn(id string, p Policy) (owner.Owner, Source) {
	who, from := l.Owner()
	if from == SourceNone && p.SlurmCluster != "" {
		if job := l.Job(id); job != "" {
			return owner.OfJob(owner.Job{Cluster: p.SlurmCluster, ID: job}), SourceLabels
		}
	}
	return who, from
}

// NamesOwner reports whether the exporter's labels name an owner, or several.
func (r *Reading) NamesOwner() bool {
	_, from := r.Labels.Owner()
	return r.Shared() || from == SourceLabels
}

// See notes that telemetry of the device arrived. It reports whether there was room to
// remember the device.
func (j *Join) See(r *Reading, now time.Time) bool {
	if labelled, from := r.ByLabels(j.Policy); from == SourceLabels {
		r.Device.Label = labelled
	}
	if job := r.Labels.Job(r.Device.ID); job != "" && !j.Policy.IgnoreLabels && !r.Shared() {
		r.Device.Label.Job = owner.OfJob(owner.Job{ID: job}).Job
	}
	return j.Memory.See(&r.Device, now)
}

// Identify returns who owns the device: the owner named in k8s.* or slurm.* already; else that
// of gpu.allocation; else, where that cannot be joined to the device, the one that the
// exporter's labels name, unless they name it on more devices than it was given.
func (j *Join) Identify(r *Reading, now time.Time) (owner.Owner, Source, *ownership.Fact) {
	if r.NamedAlready() {
		return r.Named, SourceResource, nil
	}
	f := j.Memory.Lookup(r.Device.ID, now)
	if from := SourceOf(f); from != SourceNone && (from != SourceFree || j.Policy.SlurmCluster == "") {
		return f.Owner, from, f
	}
	who, from := r.ByLabels(j.Policy)
	if who, from, ok := j.free(f, &r.Device, who, from, now); ok {
		return who, from, f
	}
	switch {
	case from == SourceNone && j.Memory.OfWhole(r.Device.ID, now):
		from = SourceBoard
	case from == SourceNone && j.Memory.Unjoined(r.Device.Node, now):
		from = SourceUnresolved
	case from == SourceLabels:
		who, from = j.Checked(&r.Device, who, now)
	}
	return who, from, f
}

// Checked is what remains of the owner that the labels of a device name.
func (j *Join) Checked(d *ownership.Device, who owner.Owner, now time.Time) (owner.Owner, Source) {
	job := who.IsJob()
	who = j.Memory.Checked(d, who, now)
	switch {
	case !who.IsZero():
		return who, SourceLabels
	case job && !j.Memory.Unjoined(d.Node, now):
		return who, SourceNone
	}
	return who, SourceUnresolved
}

// free is the owner of a device that the kubelet has not given away: the job that the exporter's
// labels name, else none. It reports whether the device is such a one.
func (j *Join) free(f *ownership.Fact, d *ownership.Device, labelled owner.Owner, from Source, now time.Time) (owner.Owner, Source, bool) {
	switch {
	case f.State != ownership.Free:
		return owner.Owner{}, SourceNone, false
	case from == SourceLabels && labelled.Pod == "" && !j.Memory.Checked(d, labelled, now).IsZero():
		return labelled, SourceLabels, true
	}
	return owner.Owner{}, SourceFree, true
}

// Write turns the exporter's labels on the resource of a device into the
// owner's k8s.* attributes. Points are left as they are.
func (r *Reading) Write(attrs pcommon.Map, who owner.Owner, from Source, p Policy) {
	service := r.Service
	labelled, _ := r.Labels.Owner()
	// Labels of another pod than the owner's are not about it.
	same := labelled.SamePod(who)
	if from.Owned() && service == "" && p.ServiceFromLabels {
		service = who.Pod
		if same {
			service = ServiceName(who.Pod, attrs)
		}
	}
	if r.strip {
		attrs.RemoveIf(func(key string, _ pcommon.Value) bool {
			return isList(key) || Consumed(key)
		})
	}
	if !from.Owned() {
		return
	}
	uid := ""
	if same && from != SourceResource {
		uid = r.Labels.PodUID()
	}
	if service == r.Service {
		service = "" // it is there
	}
	if from == SourceResource {
		who = owner.Owner{} // and so is he
	}
	Put(attrs, who, uid, service)
}

// OwnerKeys are the attributes that Put writes.
var OwnerKeys = []string{
	names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName, names.K8sPodUID, names.ServiceName,
	names.SlurmClusterName, names.SlurmJobID, names.SlurmJobUser, names.SlurmJobAccount, names.SlurmPartition, names.ServiceNamespace,
}

// Put writes the owner, the pod's uid and the service, as far as they are known.
func Put(attrs pcommon.Map, who owner.Owner, uid, service string) {
	who.Put(attrs)
	if uid != "" {
		attrs.PutStr(names.K8sPodUID, uid)
	}
	if service != "" {
		attrs.PutStr(names.ServiceName, service)
	}
}

// podLabelKeys are the labels of serviceidentity as an exporter prints them: a
// Prometheus label has no dots and slashes.
var podLabelKeys = func() (keys [len(serviceidentity.Labels)]string) {
	for i, label := range serviceidentity.Labels {
		keys[i] = names.ExporterPodLabel + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(label)
	}
	return keys
}()

// ServiceName is the service of the pod, according to the pod labels in attrs.
func ServiceName(pod string, attrs pcommon.Map) string {
	return serviceidentity.FromLabels(pod, func(i int) string { return points.Str(attrs, podLabelKeys[i]) })
}
