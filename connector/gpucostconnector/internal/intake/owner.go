// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
)

// ownerKey is which container, pod, job or, without Kubernetes, service an owner is. Its texts
// are as telemetry has them.
type ownerKey struct{ cluster, slurm, namespace, pod, container, service string }

// owners are those that are known. They are found by the name of the pod or the service,
// which is much faster than by the whole key.
type owners struct {
	named map[string]*owner
	count int
}

func (k *ownerKey) name() string { return cmp.Or(k.pod, k.service, k.container) }

func (s *owners) get(key *ownerKey) *owner {
	o := s.named[key.name()]
	for o != nil && o.key != *key {
		o = o.next
	}
	return o
}

func (s *owners) add(o *owner) {
	name := o.key.name()
	o.next, s.named[name] = s.named[name], o
	s.count++
}

// forget removes those that were not seen since a time.
func (s *owners) forget(since int64) {
	for name, o := range s.named {
		var kept *owner
		for next := o; next != nil; {
			o, next = next, next.next
			if o.seen < since {
				s.count--
				continue
			}
			o.next, kept = kept, o
		}
		if kept == nil {
			delete(s.named, name)
		} else {
			s.named[name] = kept
		}
	}
}

// owner is an owner as it was seen last.
type owner struct {
	key  ownerKey
	next *owner // of the same name
	// is never changes: what differs is another one.
	is   *ledger.Owner
	uid  string
	seen int64
	// named is what gpu.allocation and what telemetry have beside the name.
	named [2]described
	// partitions are the ids of its parts of boards that software divides.
	partitions map[string]string
}

// described is the service and the tenant of an owner, as one kind of points has them.
type described struct {
	service, tenant string
	rank            int // of the key that the tenant comes from; the lower one counts
}

const (
	byAllocation = iota
	byTelemetry
)

// ownerOf is the owner that a resource names, nil for none.
func (x *fleet) ownerOf(r *resource, by int) *owner {
	key := ownerKey{r.cluster, r.slurm, r.namespace, r.pod, r.container, ""}
	switch {
	case r.pod != "" && r.namespace != "", r.slurm != "":
	case r.pod == "" && r.namespace == "" && r.service != "":
		key.service = r.service
	default:
		return nil
	}
	o := x.owners.get(&key)
	if o == nil {
		if o = x.newOwner(key); o == nil {
			return nil
		}
	}
	o.seen = x.now
	o.describe(r, &x.tenants, by, x.now)
	if by == byAllocation && o.is.Service == "" && r.pod != "" && r.container != "" {
		// Telemetry of a device that several containers have names the pod alone.
		key.container = ""
		if whole := x.owners.get(&key); whole != nil && whole.is.Service != "" {
			o.named[byTelemetry].service = whole.named[byTelemetry].service
			o.make()
		}
	}
	return o
}

func (x *fleet) newOwner(key ownerKey) *owner {
	if x.owners.count >= 4*x.cfg.MaxDevices {
		x.counts.Refused++
		return nil
	}
	if tooLong(key.cluster, key.slurm, key.namespace, key.pod, key.container, key.service) {
		x.counts.Invalid++
		return nil
	}
	key = ownerKey{
		strings.Clone(key.cluster), strings.Clone(key.slurm), strings.Clone(key.namespace), strings.Clone(key.pod), strings.Clone(key.container), strings.Clone(key.service),
	}
	o := &owner{key: key, is: &ledger.Owner{Namespace: clean(key.namespace), Pod: clean(key.pod), Container: clean(key.container), SlurmCluster: clean(key.slurm)}}
	x.owners.add(o)
	return o
}

// describe takes note of what a resource has beside the name.
func (o *owner) describe(r *resource, tenants *tenantKeys, by int, now int64) {
	tenant, rank := tenants.of(r.attrs, now)
	d, other := &o.named[by], &o.named[1-by]
	// Names are added by other components, which begin later than the points: what is
	// absent together with the uid is not known yet, and what is known stays.
	complete := r.uid != "" || o.uid == ""
	changed := false
	if r.uid != "" && r.uid != o.uid {
		o.uid, changed = strings.Clone(r.uid), true
	}
	if r.service != "" && r.service != d.service {
		d.service, changed = own(r.service, other.service), true
	}
	if (complete || rank <= d.rank) && (tenant != d.tenant || rank != d.rank) {
		d.tenant, d.rank, changed = own(tenant, other.tenant), rank, true
	}
	if changed {
		o.make()
	}
}

// own is a text in memory of its own: that of an equal one, if it is.
func own(s, equal string) string {
	if s == equal {
		return equal
	}
	return strings.Clone(s)
}

// make makes the owner from what is known of it.
func (o *owner) make() {
	a, t := &o.named[byAllocation], &o.named[byTelemetry]
	is := ledger.Owner{
		Namespace: o.is.Namespace, Pod: o.is.Pod, Container: o.is.Container, UID: clean(o.uid),
		Service: clean(a.service), Tenant: clean(a.tenant), SlurmCluster: o.is.SlurmCluster,
	}
	if is.Service == "" {
		is.Service = clean(t.service)
	}
	if is.Tenant == "" || t.tenant != "" && t.rank < a.rank {
		is.Tenant = clean(t.tenant)
	}
	if *o.is != is {
		o.is = &is
	}
}

// partition is the id of the owner's part of a board that software divides.
func (o *owner) partition(board string) string {
	id := o.partitions[board]
	if id == "" {
		id = board + "#" + strings.Join([]string{o.is.Namespace, o.is.Pod, o.is.Container}, "/")
		if o.is.SlurmCluster != "" {
			id += " on " + o.is.SlurmCluster
		}
		if o.partitions == nil {
			o.partitions = map[string]string{}
		}
		o.partitions[strings.Clone(board)] = id
	}
	return id
}
