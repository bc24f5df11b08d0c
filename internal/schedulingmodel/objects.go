// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package schedulingmodel

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

const (
	cpu    = corev1.ResourceCPU
	memory = corev1.ResourceMemory
)

// migClass is a DeviceClass of NVIDIA that is not named after its driver.
const migClass = "mig.nvidia.com"

// over is whether a pod gave back what it had.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// amount is what a pod asks for of a resource, in thousandths for CPUs: what its
// containers with its sidecars do, or an init container with the sidecars before it.
func amount(p *corev1.Pod, resource corev1.ResourceName) int64 {
	of := func(c *corev1.Container) int64 {
		q := c.Resources.Requests[resource]
		if resource == cpu {
			return q.MilliValue()
		}
		return q.Value()
	}
	var sidecars, most, together int64
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += of(c)
			most = max(most, sidecars)
		} else {
			most = max(most, sidecars+of(c))
		}
	}
	for i := range p.Spec.Containers {
		together += of(&p.Spec.Containers[i])
	}
	return max(most, together+sidecars)
}

// taken is what the pods of a node ask for.
func taken(o Objects, n *corev1.Node, resource corev1.ResourceName) int64 {
	var sum int64
	for _, p := range o.Pods {
		if p.Spec.NodeName == n.Name && !over(p) {
			sum += amount(p, resource)
		}
	}
	return sum
}

// extended are the devices of a pod but those of claims, which serve some of its resources.
func (m *Model) extended(o Objects, p *corev1.Pod) map[string]int {
	each := map[corev1.ResourceName]int{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for resource := range c.Resources.Requests {
			if n := amount(p, resource); n > 0 && m.Device(string(resource)) {
				each[resource] = int(n)
				if n > absurd {
					each[resource] = 0
				}
			}
		}
	}
	if status := p.Status.ExtendedResourceClaimStatus; status != nil {
		for _, mapping := range status.RequestMappings {
			delete(each, corev1.ResourceName(mapping.ResourceName))
		}
	}
	out := map[string]int{}
	for resource, n := range each {
		out[m.expected(o, p, resource)] += n
	}
	return out
}

// expected is what will serve an extended resource of a pod that waits: the driver of the class
// for it, unless a node has the resource itself.
func (m *Model) expected(o Objects, p *corev1.Pod, resource corev1.ResourceName) string {
	if p.Spec.NodeName != "" || m.Serves == nil {
		return string(resource)
	}
	for _, n := range o.Nodes {
		if q := n.Status.Allocatable[resource]; q.Value() > 0 {
			return string(resource)
		}
	}
	var newest *resourcev1.DeviceClass
	for _, c := range o.Classes {
		if c.Spec.ExtendedResourceName == nil || *c.Spec.ExtendedResourceName != string(resource) || !m.Driver(m.Serves(c.Name)) {
			continue
		}
		if newest == nil || c.CreationTimestamp.After(newest.CreationTimestamp.Time) ||
			c.CreationTimestamp.Equal(&newest.CreationTimestamp) && c.Name < newest.Name {
			newest = c
		}
	}
	if newest == nil {
		return string(resource)
	}
	return m.Serves(newest.Name)
}

func (m *Model) devicesOf(o Objects, p *corev1.Pod) map[string]int {
	out := m.extended(o, p)
	for _, c := range claimsOf(o, p) {
		for resource, n := range m.claimed(o, c) {
			out[resource] += n
		}
	}
	return out
}

// claimsOf are the claims of a pod that are there, each once.
func claimsOf(o Objects, p *corev1.Pod) []*resourcev1.ResourceClaim {
	var out []*resourcev1.ResourceClaim
	for _, c := range o.Claims {
		if c.Namespace != p.Namespace {
			continue
		}
		ext := p.Status.ExtendedResourceClaimStatus
		named := ext != nil && ext.ResourceClaimName == c.Name
		for _, in := range p.Spec.ResourceClaims {
			named = named || in.ResourceClaimName != nil && *in.ResourceClaimName == c.Name
		}
		for _, in := range p.Status.ResourceClaimStatuses {
			named = named || in.ResourceClaimName != nil && *in.ResourceClaimName == c.Name
		}
		if named {
			out = append(out, c)
		}
	}
	return out
}

// claimed are the devices of a claim: those that it got, by driver, else those that it asks for, by
// the driver of their class, or by the class where that is not known.
func (m *Model) claimed(o Objects, c *resourcev1.ResourceClaim) map[string]int {
	out := map[string]int{}
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			if m.Driver(r.Driver) {
				out[r.Driver]++
			}
		}
		return out
	}
	for _, r := range c.Spec.Devices.Requests {
		if r.Exactly == nil || !m.Driver(r.Exactly.DeviceClassName) && r.Exactly.DeviceClassName != migClass {
			continue
		}
		under := r.Exactly.DeviceClassName
		for _, class := range o.Classes {
			if class.Name == under && m.Serves != nil && m.Driver(m.Serves(class.Name)) {
				under = m.Serves(class.Name)
				break
			}
		}
		out[under] += int(max(1, r.Exactly.Count))
	}
	return out
}

// resources are those that a node has, or that pods have on it.
func (m *Model) resources(o Objects, n *corev1.Node) []string {
	var out []string
	for resource := range n.Status.Allocatable {
		if m.Device(string(resource)) {
			out = append(out, string(resource))
		}
	}
	for _, s := range o.Slices {
		if s.Spec.NodeName != nil && *s.Spec.NodeName == n.Name && m.Driver(s.Spec.Driver) {
			out = append(out, s.Spec.Driver)
		}
	}
	for _, p := range o.Pods {
		if p.Spec.NodeName == n.Name && !over(p) {
			for resource := range m.devicesOf(o, p) {
				out = append(out, resource)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *Model) allocatable(o Objects, n *corev1.Node, resource string) int {
	q := n.Status.Allocatable[corev1.ResourceName(resource)]
	devices := int(q.Value())
	for _, s := range m.slices(o, n, resource) {
		devices += len(s.Spec.Devices)
	}
	return devices
}

// requested are the devices of the pods on a node; pods share those of a claim.
func (m *Model) requested(o Objects, n *corev1.Node, resource string) int {
	sum, counted := 0, map[*resourcev1.ResourceClaim]bool{}
	for _, p := range o.Pods {
		if p.Spec.NodeName != n.Name || over(p) {
			continue
		}
		sum += m.extended(o, p)[resource]
		for _, c := range claimsOf(o, p) {
			if !counted[c] {
				counted[c] = true
				sum += m.claimed(o, c)[resource]
			}
		}
	}
	return sum
}

// models are hw.model by what GPU feature discovery writes into a label for such boards.
var models = map[string]string{
	"NVIDIA-H100-80GB-HBM3":                        "NVIDIA H100 80GB HBM3",
	"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb":            "NVIDIA H100 80GB HBM3",
	"NVIDIA-A100-SXM4-40GB":                        "NVIDIA A100-SXM4-40GB",
	"NVIDIA-A100-SXM4-40GB-SHARED":                 "NVIDIA A100-SXM4-40GB",
	"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}

// hwModel is the model of the devices of a node, "" where it is not known, and for those that
// the node has no more.
func (m *Model) hwModel(o Objects, n *corev1.Node, resource string) string {
	if _, has := n.Status.Allocatable[corev1.ResourceName(resource)]; has && strings.HasPrefix(resource, "nvidia.com/") {
		return models[n.Labels["nvidia.com/gpu.product"]]
	}
	model, first := "", true
	for _, s := range m.slices(o, n, resource) {
		for _, d := range s.Spec.Devices {
			is := ""
			if name := d.Attributes["productName"].StringValue; name != nil {
				is = *name
			}
			if !first && is != model {
				return ""
			}
			model, first = is, false
		}
	}
	return model
}

// slices are those of a driver on a node.
func (m *Model) slices(o Objects, n *corev1.Node, driver string) []*resourcev1.ResourceSlice {
	var out []*resourcev1.ResourceSlice
	for _, s := range o.Slices {
		if s.Spec.NodeName != nil && *s.Spec.NodeName == n.Name && s.Spec.Driver == driver && m.Driver(driver) {
			out = append(out, s)
		}
	}
	return out
}

// unknown is whether a pool of the node is not all there.
func (m *Model) unknown(o Objects, n *corev1.Node, resource string) bool {
	all := m.slices(o, n, resource)
	for _, s := range all {
		of := 0
		for _, other := range all {
			if other.Spec.Pool.Name == s.Spec.Pool.Name {
				of++
			}
		}
		if int64(of) != s.Spec.Pool.ResourceSliceCount {
			return true
		}
	}
	return false
}

// queue is where a pod waits, by the first name that it has of one.
func queue(p *corev1.Pod) string {
	for _, name := range []string{
		p.Labels["kueue.x-k8s.io/cluster-queue-name"], p.Labels["kueue.x-k8s.io/queue-name"], p.Annotations["scheduling.volcano.sh/queue-name"],
		p.Labels["kai.scheduler/queue"], p.Labels["quota.scheduling.koordinator.sh/name"],
	} {
		if name != "" {
			return name
		}
	}
	return ""
}

// Reason is why a pod has no node: of several causes the one about devices, then the others
// in this order.
func (m *Model) Reason(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status == corev1.ConditionTrue {
			continue
		}
		if c.Reason == "SchedulingGated" {
			return "gated"
		}
		if c.Reason == "SchedulerError" {
			return "scheduler_error"
		}
		text, _, _ := strings.Cut(c.Message, "preemption:")
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;", r) })
		for i, w := range words {
			if w == "Insufficient" && i+1 < len(words) && m.Device(strings.TrimSuffix(words[i+1], ".")) {
				return "insufficient_gpu"
			}
		}
		for _, cause := range [][]string{
			{"claim", "cannot allocate all claims", "resourceclaim"},
			{"insufficient_cpu", "Insufficient cpu"}, {"insufficient_memory", "Insufficient memory"},
			{"volume", "volume", "PersistentVolumeClaim"},
			{"affinity", "affinity", "node selector", "topology spread"},
			{"taint", "taint", "were unschedulable"},
		} {
			for _, part := range cause[1:] {
				if strings.Contains(text, part) {
					return cause[0]
				}
			}
		}
		return "other"
	}
	return "not_tried"
}
