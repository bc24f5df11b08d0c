// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// Snapshot is what the Kubernetes API had at one moment. It is immutable, and so are its
// pods.
type Snapshot struct {
	// Pods are those that ask for an accelerator, each namespace and name once, in no order.
	Pods []*Pod
	// Others is what the other pods of each node ask for, those that ended left out; nil
	// unless a member needs it.
	Others map[string]Amount
	// Whole is whether Pods and Others have all pods: MaxPods left none of them out.
	Whole bool
	// Claims is whether all ResourceClaims were read. Otherwise pods may lack devices that they
	// have or ask for through claims. Member.ClaimsAsOf returns how old the claims are.
	Claims bool
}

// SnapshotOf is what a watch with these keys has where the API has these pods and claims.
// The limit of need is not applied.
func SnapshotOf(keys *Keys, need *Need, pods []*corev1.Pod, claims []*resourcev1.ResourceClaim) (*Snapshot, error) {
	resources, err := resourcenames.New(keys.ResourceNames)
	if err != nil {
		return nil, err
	}
	k := newKeeper(keys, resources, need)
	known := map[types.NamespacedName]keptClaim{}
	if keys.DRA.Enabled {
		for _, c := range claims {
			if is, ok := k.claim(c); ok {
				known[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = is
			}
		}
	}
	out := newSnapshot(need.Others)
	out.Whole, out.Claims = true, keys.DRA.Enabled
	for _, p := range pods {
		if is, ok := k.pod(p); ok {
			out.add(is, known)
		}
	}
	return out, nil
}

// With is the snapshot with the requests of its pods that requests returns for each.
func (s *Snapshot) With(requests func(*Pod) []Request) *Snapshot {
	out := *s
	out.Pods = make([]*Pod, len(s.Pods))
	for i, p := range s.Pods {
		out.Pods[i] = p
		if p.Scheduling == nil {
			continue
		}
		if other := requests(p); !slices.Equal(other, p.Scheduling.Requests) {
			scheduling := *p.Scheduling
			scheduling.Requests = other
			with := *p
			with.Scheduling = &scheduling
			out.Pods[i] = &with
		}
	}
	return &out
}

// WithoutClaims is the snapshot without what its pods have or ask for through claims.
func (s *Snapshot) WithoutClaims() *Snapshot {
	return s.With(func(p *Pod) []Request {
		return slices.DeleteFunc(slices.Clone(p.Scheduling.Requests), func(r Request) bool { return r.Claim != "" })
	})
}

func newSnapshot(others bool) *Snapshot {
	if !others {
		return &Snapshot{}
	}
	return &Snapshot{Others: map[string]Amount{}}
}

func (s *Snapshot) add(p keptPod, claims map[types.NamespacedName]keptClaim) {
	if pod := p.resolved(claims); pod != nil {
		s.Pods = append(s.Pods, pod)
		return
	}
	is := p.other
	if is == nil {
		is = otherOf(p.pod)
	}
	if s.Others != nil && is != nil {
		s.Others[is.node] = s.Others[is.node].Plus(is.Amount)
	}
}
