// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"cmp"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/serviceidentity"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

// keeper takes of an object what is needed.
type keeper struct {
	resources        *resourcenames.Matcher
	drivers, classes map[string]bool // nil: claims are not read
	scheduling       bool
	others           bool
	queueLabels      []string
}

func newKeeper(keys *Keys, resources *resourcenames.Matcher, need *Need) *keeper {
	k := &keeper{resources: resources, scheduling: need.Scheduling || need.Others, others: need.Others, queueLabels: need.QueueLabels}
	if keys.DRA.Enabled {
		k.drivers, k.classes = setOf(keys.DRA.Drivers), setOf(keys.DRA.DeviceClasses)
	}
	return k
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// keptPod is what is kept of a pod: one that asks for accelerators, or what another one
// asks for of its node.
type keptPod struct {
	pod *Pod // resolve completes it where there are claims
	*claiming
	other *other
}

// claiming is what claims have a part in.
type claiming struct {
	containers []container // with requests for an accelerator or a claim
	uses       []use
	claims     []string // with Scheduling: all that devices may come from
}

// other is a pod without accelerators on a node.
type other struct {
	node string
	Amount
}

// container is one that may have an accelerator.
type container struct {
	up       bool
	started  time.Time
	lastRun  time.Duration // -1: it never ran before
	requests int           // devices, without those of claims
}

// use is what one container uses of a ResourceClaim: a request, or "" for all.
type use struct {
	claim, request string
	container      int
}

func (k *keeper) pod(obj any) (keptPod, bool) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return keptPod{}, false
	}
	out := k.accelerated(p)
	if out.pod == nil && k.others && p.Spec.NodeName != "" && !ended(p.Status.Phase) {
		out.other = &other{unique.Make(p.Spec.NodeName).Value(), AmountOf(requested(p))}
	}
	return out, out.pod != nil || out.other != nil
}

// ended reports whether a pod asks for nothing any more.
func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// otherOf is a pod that turned out to have claims to no accelerator; nil where it asks for
// nothing of a node.
func otherOf(p *Pod) *other {
	if p.Scheduling == nil || p.Node == "" || ended(p.Phase) {
		return nil
	}
	return &other{p.Node, p.Scheduling.Amount}
}

// accelerated is p where it asks for accelerators or claims.
func (k *keeper) accelerated(p *corev1.Pod) keptPod {
	var has claiming
	claims := k.claimsOf(p)
	add := func(c *corev1.Container, status []corev1.ContainerStatus) {
		is := container{requests: k.requests(c)}
		uses := k.uses(p, c, claims, len(has.containers))
		if is.requests == 0 && len(uses) == 0 {
			return
		}
		is.run(c.Name, status)
		has.containers = append(has.containers, is)
		has.uses = append(has.uses, uses...)
	}
	if !sharing.IsReservation(p) {
		for i := range p.Spec.Containers {
			add(&p.Spec.Containers[i], p.Status.ContainerStatuses)
		}
		// A sidecar runs as long as the pod. Other init containers give their devices
		// back before anyone could look at them.
		for i := range p.Spec.InitContainers {
			if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				add(c, p.Status.InitContainerStatuses)
			}
		}
	}
	scheduling := k.schedulingOf(p, claims, &has)
	if len(has.containers) == 0 && scheduling == nil {
		return keptPod{}
	}
	pod := &Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		Service: serviceOf(p), Phase: p.Status.Phase, Deleted: p.DeletionTimestamp != nil,
		Scheduling: scheduling,
	}
	if len(has.uses) == 0 && len(has.claims) == 0 { // claims add nothing
		has.resolve(pod, nil)
		return keptPod{pod: pod}
	}
	return keptPod{pod: pod, claiming: &has}
}

func serviceOf(p *corev1.Pod) string {
	id := serviceidentity.Pod{Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, Created: p.CreationTimestamp.Time}
	for _, o := range p.OwnerReferences {
		id.Owners = append(id.Owners, serviceidentity.Owner{Kind: o.Kind, Name: o.Name})
	}
	return serviceidentity.FromPod(id)
}

// requests of a container; requests of extended resources equal their limits.
func (k *keeper) requests(c *corev1.Container) int {
	asked := c.Resources.Requests
	if len(asked) == 0 {
		asked = c.Resources.Limits
	}
	n := 0
	for resource, quantity := range asked {
		if k.resources.Match(string(resource)) {
			n += int(min(max(0, devices(quantity)), maxRequest))
		}
	}
	return n
}

// claimsOf are the pod's ResourceClaims by their name in the pod. One that was not
// generated yet, or need not be, is left out.
func (k *keeper) claimsOf(p *corev1.Pod) map[string]string {
	if k.drivers == nil || len(p.Spec.ResourceClaims) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			out[c.Name] = *c.ResourceClaimName
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			out[c.Name] = *c.ResourceClaimName
		}
	}
	return out
}

// uses are the claims of a container. The claim through which an extended resource
// is served stands in the requests already where that resource is known.
func (k *keeper) uses(p *corev1.Pod, c *corev1.Container, claims map[string]string, i int) []use {
	if k.drivers == nil {
		return nil
	}
	var out []use
	for _, r := range c.Resources.Claims {
		if claim := claims[r.Name]; claim != "" {
			out = append(out, use{claim, r.Request, i})
		}
	}
	if ext := p.Status.ExtendedResourceClaimStatus; ext != nil {
		for _, m := range ext.RequestMappings {
			if m.ContainerName == c.Name && !k.resources.Match(m.ResourceName) {
				out = append(out, use{ext.ResourceClaimName, m.RequestName, i})
			}
		}
	}
	return out
}

// run takes from the status whether the container runs, and since when.
func (c *container) run(name string, status []corev1.ContainerStatus) {
	c.lastRun = -1
	for i := range status {
		s := &status[i]
		if s.Name != name {
			continue
		}
		if s.State.Running != nil {
			c.up, c.started = true, s.State.Running.StartedAt.Time
		}
		if last := s.LastTerminationState.Terminated; last != nil {
			c.lastRun = max(0, last.FinishedAt.Sub(last.StartedAt.Time))
		}
	}
}

// keptClaim is what each request of a claim has, or asks for.
type keptClaim map[string]Request

func (k *keeper) claim(obj any) (keptClaim, bool) {
	c, ok := obj.(*resourcev1.ResourceClaim)
	if !ok {
		return nil, false
	}
	out := keptClaim{}
	if a := c.Status.Allocation; a != nil {
		for _, r := range a.Devices.Results {
			if k.drivers[r.Driver] && (r.AdminAccess == nil || !*r.AdminAccess) {
				request, _, _ := strings.Cut(r.Request, "/") // of several that would do, the one that was taken
				out[request] = Request{Resource: r.Driver, Claim: c.Name, Count: out[request].Count + 1, Allocated: true}
			}
		}
		return out, len(out) > 0
	}
	asks := func(name, class string, count int64) {
		if k.classes[class] {
			out[name] = request(class, c.Name, cmp.Or(count, 1))
		}
	}
	for _, r := range c.Spec.Devices.Requests {
		switch {
		case r.Exactly != nil:
			if r.Exactly.AdminAccess == nil || !*r.Exactly.AdminAccess {
				asks(r.Name, r.Exactly.DeviceClassName, r.Exactly.Count)
			}
		case len(r.FirstAvailable) > 0:
			asks(r.Name, r.FirstAvailable[0].DeviceClassName, r.FirstAvailable[0].Count)
		}
	}
	return out, len(out) > 0
}

// resolved is the pod with its claims; nil where it asks for no device.
func (p keptPod) resolved(claims map[types.NamespacedName]keptClaim) *Pod {
	pod := p.pod
	if pod == nil {
		return nil
	}
	if p.claiming != nil {
		with := *pod
		p.resolve(&with, claims)
		pod = &with
	}
	if pod.Devices == 0 && (pod.Scheduling == nil || len(pod.Scheduling.Requests) == 0) {
		return nil
	}
	return pod
}

// resolve completes a pod. It has no Devices where it asks for none.
func (has *claiming) resolve(pod *Pod, claims map[types.NamespacedName]keptClaim) {
	type request struct{ claim, request string }
	counted := map[request]bool{} // containers may share a request
	accelerated := make([]bool, len(has.containers))
	for i, c := range has.containers {
		pod.Devices += c.requests
		accelerated[i] = c.requests > 0
	}
	for _, u := range has.uses {
		for r, n := range claims[types.NamespacedName{Namespace: pod.Namespace, Name: u.claim}] {
			if u.request != "" && u.request != r {
				continue
			}
			accelerated[u.container] = true
			if key := (request{u.claim, r}); !counted[key] {
				counted[key] = true
				pod.Devices += n.Count
			}
		}
	}
	has.run(pod, accelerated)
	if len(has.claims) > 0 {
		pod.Scheduling = pod.Scheduling.with(pod.Namespace, has.claims, claims)
	}
}

// run takes over since when the accelerator containers run.
func (has *claiming) run(pod *Pod, accelerated []bool) {
	pod.Up, pod.LastRun = true, -1
	for i, c := range has.containers {
		switch {
		case !accelerated[i]:
		case !c.up:
			pod.Up = false
		case c.started.After(pod.Started):
			pod.Started, pod.LastRun = c.started, c.lastRun
		}
	}
}
