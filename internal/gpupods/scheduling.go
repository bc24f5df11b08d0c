// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// maxMessage bounds what the scheduler writes about a pod. What it has to say of a node is
// a count of nodes, so that few messages are longer.
const maxMessage = 4096

// requested is what the scheduler counts for a pod: with its overhead, and what it is
// resized from and to.
func requested(p *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// servedByClaim are the extended resources of a pod that no device plugin serves, but devices of a
// ResourceClaim that the scheduler made for the pod: what counts is what that claim holds.
func servedByClaim(p *corev1.Pod) map[string]bool {
	status := p.Status.ExtendedResourceClaimStatus
	if status == nil {
		return nil
	}
	served := map[string]bool{}
	for _, m := range status.RequestMappings {
		served[m.ResourceName] = true
	}
	return served
}

// extended is the name under which devices of an extended resource are requested; false for one
// that is no accelerator. Each device class is an extended resource, with a prefix.
func (k *keeper) extended(resource string) (string, bool) {
	if class, ok := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); ok && k.classes[class] {
		return class, true
	}
	return resource, k.resources.Match(resource)
}

// schedulingOf is what the scheduler sees of p, and notes the claims in has; nil where it
// is not needed, or p has neither devices nor claims.
func (k *keeper) schedulingOf(p *corev1.Pod, claims map[string]string, has *claiming) *Scheduling {
	if !k.scheduling {
		return nil
	}
	asked := requested(p)
	served := servedByClaim(p)
	s := &Scheduling{Created: p.CreationTimestamp.Time, Amount: AmountOf(asked)}
	for _, resource := range slices.Sorted(maps.Keys(asked)) {
		name, known := k.extended(string(resource))
		if n := devices(asked[resource]); n != 0 && known && !served[string(resource)] {
			s.Requests = append(s.Requests, request(name, "", n))
		}
	}
	if k.drivers != nil {
		has.claims = slices.Sorted(maps.Values(claims))
		if len(served) > 0 {
			has.claims = append(has.claims, p.Status.ExtendedResourceClaimStatus.ResourceClaimName)
		}
	}
	if len(s.Requests) == 0 && len(has.claims) == 0 && len(has.containers) == 0 {
		return nil
	}
	s.Queue = queueOf(p.Labels, p.Annotations, k.queueLabels)
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		switch {
		case c.Type != corev1.PodScheduled:
		case c.Status == corev1.ConditionTrue:
			s.Scheduled = c.LastTransitionTime.Time
		default:
			s.Reason, s.Message = c.Reason, safetext.Strip(c.Message, maxMessage)
		}
	}
	return s
}

// with is s with the devices of claims.
func (s *Scheduling) with(namespace string, of []string, claims map[types.NamespacedName]keptClaim) *Scheduling {
	all := *s
	all.Requests = slices.Clone(s.Requests)
	for _, name := range of {
		// A claim has few requests; those of one resource are one.
		at := len(all.Requests)
		for _, r := range claims[types.NamespacedName{Namespace: namespace, Name: name}] {
			if i := slices.IndexFunc(all.Requests[at:], func(is Request) bool { return is.Resource == r.Resource }); i >= 0 {
				all.Requests[at+i].Count += r.Count
				all.Requests[at+i].Absurd = all.Requests[at+i].Absurd || r.Absurd
			} else {
				all.Requests = append(all.Requests, r)
			}
		}
		slices.SortFunc(all.Requests[at:], func(a, b Request) int { return cmp.Or(strings.Compare(a.Resource, b.Resource), a.Count-b.Count) })
	}
	return &all
}
