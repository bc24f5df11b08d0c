// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/serviceidentity"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// keeper takes of an object what is needed.
type keeper struct {
	resources *resourcenames.Matcher
	claims    *Claims // nil: not read
}

// keptPod is a pod with what its requests ask for, and how it uses claims.
type keptPod struct {
	pod        summary.Pod // Up, Started, LastRun and Devices come from resolve
	containers []container // with requests for an accelerator or a claim
	uses       []use
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
	if !ok || sharing.IsReservation(p) {
		return keptPod{}, false
	}
	out := keptPod{}
	claims := k.claimsOf(p)
	add := func(c *corev1.Container, status []corev1.ContainerStatus) {
		has := container{requests: k.requests(c)}
		uses := k.uses(p, c, claims, len(out.containers))
		if has.requests == 0 && len(uses) == 0 {
			return
		}
		has.run(c.Name, status)
		out.containers = append(out.containers, has)
		out.uses = append(out.uses, uses...)
	}
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
	if len(out.containers) == 0 {
		return keptPod{}, false
	}
	out.pod = summary.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		Service: serviceOf(p),
		Running: p.Status.Phase == corev1.PodRunning,
		Deleted: p.DeletionTimestamp != nil,
	}
	if len(out.uses) == 0 { // claims add nothing
		return keptPod{pod: out.resolve(nil)}, true
	}
	return out, true
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
			n += int(max(0, quantity.Value()))
		}
	}
	return n
}

// claimsOf are the pod's ResourceClaims by their name in the pod. One that was not
// generated yet, or need not be, is left out.
func (k *keeper) claimsOf(p *corev1.Pod) map[string]string {
	if k.claims == nil || len(p.Spec.ResourceClaims) == 0 {
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
	if k.claims == nil {
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

// keptClaim is how many GPUs each request of a claim asks for or has.
type keptClaim map[string]int

func (k *keeper) claim(obj any) (keptClaim, bool) {
	c, ok := obj.(*resourcev1.ResourceClaim)
	if !ok {
		return nil, false
	}
	out := keptClaim{}
	if a := c.Status.Allocation; a != nil {
		for _, r := range a.Devices.Results {
			if k.claims.Drivers[r.Driver] && (r.AdminAccess == nil || !*r.AdminAccess) {
				request, _, _ := strings.Cut(r.Request, "/") // of several that would do, the one that was taken
				out[request]++
			}
		}
		return out, len(out) > 0
	}
	for _, r := range c.Spec.Devices.Requests {
		switch {
		case r.Exactly != nil:
			if k.claims.Classes[r.Exactly.DeviceClassName] && (r.Exactly.AdminAccess == nil || !*r.Exactly.AdminAccess) {
				out[r.Name] = int(max(1, r.Exactly.Count))
			}
		case len(r.FirstAvailable) > 0:
			if first := r.FirstAvailable[0]; k.claims.Classes[first.DeviceClassName] {
				out[r.Name] = int(max(1, first.Count))
			}
		}
	}
	return out, len(out) > 0
}

// resolve returns a pod with its claims. It has no Devices where it asks for none.
func (p *keptPod) resolve(claims map[types.NamespacedName]keptClaim) summary.Pod {
	pod := p.pod
	if len(p.containers) == 0 {
		return pod // complete already
	}
	type request struct{ claim, request string }
	counted := map[request]bool{} // containers may share a request
	has := make([]bool, len(p.containers))
	for i, c := range p.containers {
		pod.Devices += c.requests
		has[i] = c.requests > 0
	}
	for _, u := range p.uses {
		for r, n := range claims[types.NamespacedName{Namespace: pod.Namespace, Name: u.claim}] {
			if u.request != "" && u.request != r {
				continue
			}
			has[u.container] = true
			if key := (request{u.claim, r}); !counted[key] {
				counted[key] = true
				pod.Devices += n
			}
		}
	}
	pod.Up, pod.LastRun = true, -1
	for i, c := range p.containers {
		switch {
		case !has[i]:
		case !c.up:
			pod.Up = false
		case c.started.After(pod.Started):
			pod.Started, pod.LastRun = c.started, c.lastRun
		}
	}
	return pod
}
