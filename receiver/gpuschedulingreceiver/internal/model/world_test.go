// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/schedulingmodel"
)

const driver = "gpu.nvidia.com"

// world is a cluster in which anything happens at any time: no scheduler keeps it sane.
type world struct {
	*rand.Rand
	schedulingmodel.Objects
	now  time.Time
	made int
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 23)), now: time.Unix(1_800_000_000, 0)}
	for range 3 {
		w.addNode()
	}
	w.addClasses()
	return w
}

func pick[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

// chance is true once in n.
func (w *world) chance(n int) bool { return w.IntN(n) == 0 }

func (w *world) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s-%d", kind, w.made)
}

// step does one thing.
func (w *world) step() string {
	w.now = w.now.Add(pick(w, 0, time.Second, 15*time.Second, time.Minute, 10*time.Minute, 3*time.Hour))
	steps := []struct {
		weight int
		name   string
		do     func()
	}{
		{12, "pod", w.addPod},
		{10, "bind", w.bind},
		{4, "ends", func() { w.pod(func(p *corev1.Pod) { p.Status.Phase = pick(w, corev1.PodSucceeded, corev1.PodFailed) }) }},
		{4, "runs", func() {
			w.pod(func(p *corev1.Pod) {
				if p.Spec.NodeName != "" {
					p.Status.Phase = corev1.PodRunning
				}
			})
		}},
		{5, "pod goes", w.removePod},
		{3, "pod is deleted", func() { w.pod(func(p *corev1.Pod) { at := metav1.NewTime(w.now); p.DeletionTimestamp = &at }) }},
		{6, "why", func() { w.pod(w.why) }},
		{1, "node", w.addNode},
		{1, "node goes", w.removeNode},
		{3, "cordon", func() { w.node(func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }) }},
		{2, "ready", func() { w.node(w.ready) }},
		{3, "taint", func() { w.node(w.taint) }},
		{2, "capacity", func() { w.node(w.capacity) }},
		{3, "claim", w.addClaim},
		{3, "allocated", w.allocate},
		{1, "claim goes", func() { w.Claims = w.without(w.Claims) }},
		{2, "class", w.class},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	at := w.IntN(total)
	for _, s := range steps {
		if at -= s.weight; at < 0 {
			s.do()
			return s.name
		}
	}
	return ""
}

func (w *world) without(claims []*resourcev1.ResourceClaim) []*resourcev1.ResourceClaim {
	if len(claims) == 0 {
		return claims
	}
	i := w.IntN(len(claims))
	return slices.Delete(slices.Clone(claims), i, i+1)
}

func (w *world) addNode() {
	if len(w.Nodes) > 6 {
		return
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name("node"), Labels: map[string]string{}}}
	if product := pick(w, "", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB-SHARED", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"); product != "" {
		n.Labels["nvidia.com/gpu.product"] = product
	}
	w.capacity(n)
	w.ready(n)
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	w.Nodes = append(w.Nodes, n)
	if w.chance(3) {
		w.addSlice(n.Name)
	}
}

// addSlice gives a node devices that claims can have.
func (w *world) addSlice(node string) {
	product := pick(w, "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB")
	devices := make([]resourcev1.Device, w.IntN(9))
	for i := range devices {
		devices[i].Name = fmt.Sprintf("gpu-%d", i)
		if w.chance(20) {
			product = "NVIDIA L4"
		}
		if product := product; !w.chance(30) {
			devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &product}}
		}
	}
	w.Slices = append(w.Slices, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: w.name("slice")},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: pick(w, driver, driver, "nic.example.com"), NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: pick[int64](w, 1, 1, 1, 1, 2)},
		},
	})
}

func (w *world) capacity(n *corev1.Node) {
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(pick[int64](w, 0, 4000, 31500, 96000), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(pick[int64](w, 0, 16, 250, 1000)<<30, resource.BinarySI),
	}
	w.set(n.Status.Allocatable, []int64{0, 1, 4, 7, 8, 8}, []int64{0, 0, 0, 7}, []int64{0, 0, 0, 8}, []int64{0, 2})
}

// set gives each extended resource one of its numbers; what is 0 is left out half of the
// time.
func (w *world) set(list corev1.ResourceList, numbers ...[]int64) {
	for i, name := range []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "example.com/fpga"} {
		if n := pick(w, numbers[i]...); n > 0 || w.chance(2) {
			list[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
}

func (w *world) ready(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: pick(w, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown),
	}}
}

func (w *world) taint(n *corev1.Node) {
	n.Spec.Taints = nil
	for range w.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key:    pick(w, "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.deleting", "dedicated", "node.kubernetes.io/unreachable"),
			Effect: pick(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		})
	}
}

func (w *world) removeNode() {
	if len(w.Nodes) < 2 {
		return
	}
	i := w.IntN(len(w.Nodes))
	gone := w.Nodes[i].Name
	w.Nodes = slices.Delete(w.Nodes, i, i+1)
	w.Slices = slices.DeleteFunc(w.Slices, func(s *resourcev1.ResourceSlice) bool { return *s.Spec.NodeName == gone })
}

// node and pod change a copy of one: what was listed before stays as it was.
func (w *world) node(change func(*corev1.Node)) {
	if len(w.Nodes) > 0 {
		i := w.IntN(len(w.Nodes))
		w.Nodes[i] = w.Nodes[i].DeepCopy()
		change(w.Nodes[i])
	}
}

func (w *world) pod(change func(*corev1.Pod)) {
	if len(w.Pods) > 0 {
		i := w.IntN(len(w.Pods))
		w.Pods[i] = w.Pods[i].DeepCopy()
		change(w.Pods[i])
	}
}

func (w *world) addPod() {
	if len(w.Pods) > 25 {
		return
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pick(w, "team-a", "team-b"), Name: w.name("pod"), CreationTimestamp: metav1.NewTime(w.now.Add(-pick(w, 0, time.Second, 30*time.Hour))),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	p.UID = types.UID(p.Name)
	for _, label := range []string{"kueue.x-k8s.io/cluster-queue-name", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "quota.scheduling.koordinator.sh/name"} {
		if w.chance(8) {
			p.Labels[label] = pick(w, "gold", "silver")
		}
	}
	if w.chance(8) {
		p.Annotations["scheduling.volcano.sh/queue-name"] = "bronze"
	}
	for range 1 + w.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, w.container())
	}
	for range pick(w, 0, 0, 1, 2) {
		c := w.container()
		if w.chance(2) {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i, claim := range w.Claims {
		if claim.Namespace == p.Namespace && w.chance(2) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: &claim.Name})
		}
	}
	w.why(p)
	w.Pods = append(w.Pods, p)
}

func (w *world) container() corev1.Container {
	list := corev1.ResourceList{}
	if !w.chance(4) {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(pick[int64](w, 0, 100, 1000, 7500, 16000), resource.DecimalSI)
	}
	if !w.chance(4) {
		list[corev1.ResourceMemory] = *resource.NewQuantity(pick[int64](w, 0, 1, 32, 200)<<30, resource.BinarySI)
	}
	w.set(list, []int64{0, 0, 1, 1, 2, 3, 8, 16, 1_000_000}, []int64{0, 0, 0, 0, 0, 1}, []int64{0, 0, 0, 0, 0, 4}, []int64{0, 0, 0, 1})
	return corev1.Container{Name: w.name("c"), Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
}

func (w *world) bind() {
	w.pod(func(p *corev1.Pod) {
		if p.Spec.NodeName != "" {
			return
		}
		if w.chance(3) {
			w.serve(p)
		}
		p.Spec.NodeName = "node-that-went"
		if len(w.Nodes) > 0 && !w.chance(20) {
			p.Spec.NodeName = w.Nodes[w.IntN(len(w.Nodes))].Name
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
	})
}

func (w *world) removePod() {
	if len(w.Pods) > 0 {
		i := w.IntN(len(w.Pods))
		if ext := w.Pods[i].Status.ExtendedResourceClaimStatus; ext != nil {
			w.Claims = slices.DeleteFunc(slices.Clone(w.Claims), func(c *resourcev1.ResourceClaim) bool { return c.Name == ext.ResourceClaimName })
		}
		w.Pods = slices.Delete(slices.Clone(w.Pods), i, i+1)
	}
}

// causes are what kube-scheduler has as the reasons of nodes.
var causes = []string{
	"Insufficient nvidia.com/gpu", "Insufficient amd.com/gpu", "Insufficient cpu", "Insufficient memory", "Insufficient example.com/fpga",
	"node(s) had untolerated taint {dedicated: training}", "node(s) had untolerated taint(s)", "node(s) were unschedulable", "node(s) didn't match Pod's node affinity/selector",
	"node(s) didn't match pod anti-affinity rules", "node(s) didn't match pod topology spread constraints", "node(s) had volume node affinity conflict",
	"cannot allocate all claims", "Too many pods", "node(s) didn't have free ports for the requested pod ports",
}

// why gives a pod without a node a reason.
func (w *world) why(p *corev1.Pod) {
	if p.Spec.NodeName != "" {
		return
	}
	is := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}
	switch w.IntN(8) {
	case 0:
		p.Status.Conditions = nil
		return
	case 1:
		is.Reason, is.Message = corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates"
	case 2:
		is.Reason, is.Message = corev1.PodReasonSchedulerError, "running PreBind plugin: timed out"
	default:
		var parts []string
		for range 1 + w.IntN(3) {
			parts = append(parts, fmt.Sprintf("%d %s", 1+w.IntN(4), pick(w, causes...)))
		}
		is.Reason, is.Message = corev1.PodReasonUnschedulable, "0/9 nodes are available: "+strings.Join(parts, ", ")+"."
		if w.chance(2) {
			is.Message += " preemption: 0/9 nodes are available: 3 No preemption victims found for incoming pod, 2 Insufficient nvidia.com/gpu."
		}
	}
	p.Status.Conditions = []corev1.PodCondition{is}
}
