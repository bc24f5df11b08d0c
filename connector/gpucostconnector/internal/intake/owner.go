// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
)

// ownerKey is which container, pod or, without Kubernetes, service an owner is. Its texts
// are as telemetry has them.
type ownerKey struct{ cluster, namespace, pod, container, service string }

// owner is an owner as it was seen last.
type owner struct {
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
func (x *Intake) ownerOf(r *resource, by int) *owner {
	key := ownerKey{r.cluster, r.namespace, r.pod, r.container, ""}
	switch {
	case r.pod != "" && r.namespace != "":
	case r.pod == "" && r.namespace == "" && r.service != "":
		key.service = r.service
	default:
		return nil
	}
	o := x.owners[key]
	if o == nil {
		if o = x.newOwner(key); o == nil {
			return nil
		}
	}
	o.seen = x.now
	o.describe(r, &x.tenants, by, x.now)
	if by == byAllocation && o.is.Service == "" && r.container != "" {
		// Telemetry of a device that several containers have names the pod alone.
		key.container = ""
		if whole := x.owners[key]; whole != nil && whole.is.Service != "" {
			o.named[byTelemetry].service = whole.named[byTelemetry].service
			o.make(r)
		}
	}
	return o
}

func (x *Intake) newOwner(key ownerKey) *owner {
	if len(x.owners) >= 4*x.cfg.MaxDevices {
		x.counts.Refused++
		return nil
	}
	if tooLong(key.cluster, key.namespace, key.pod, key.container, key.service) {
		x.counts.Invalid++
		return nil
	}
	o := &owner{}
	x.owners[ownerKey{
		strings.Clone(key.cluster), strings.Clone(key.namespace), strings.Clone(key.pod), strings.Clone(key.container), strings.Clone(key.service),
	}] = o
	return o
}

// describe takes note of what a resource has beside the name.
func (o *owner) describe(r *resource, tenants *tenantKeys, by int, now int64) {
	tenant, rank := tenants.of(r.attrs, now)
	d := &o.named[by]
	// Names are added by other components, which begin later than the points: what is
	// absent together with the uid is not known yet, and what is known stays.
	complete := r.uid != "" || o.uid == ""
	changed := o.is == nil
	if r.uid != "" && r.uid != o.uid {
		o.uid, changed = strings.Clone(r.uid), true
	}
	if r.service != "" && r.service != d.service {
		d.service, changed = strings.Clone(r.service), true
	}
	if (complete || rank <= d.rank) && (tenant != d.tenant || rank != d.rank) {
		d.tenant, d.rank, changed = strings.Clone(tenant), rank, true
	}
	if changed {
		o.make(r)
	}
}

// make makes the owner from what is known of it.
func (o *owner) make(r *resource) {
	a, t := &o.named[byAllocation], &o.named[byTelemetry]
	is := ledger.Owner{
		Namespace: text(r.namespace), Pod: text(r.pod), Container: text(r.container), UID: text(o.uid),
		Service: text(a.service), Tenant: text(a.tenant),
	}
	if is.Service == "" {
		is.Service = text(t.service)
	}
	if is.Tenant == "" || t.tenant != "" && t.rank < a.rank {
		is.Tenant = text(t.tenant)
	}
	if o.is == nil || *o.is != is {
		o.is = &is
	}
}

// partition is the id of the owner's part of a board that software divides.
func (o *owner) partition(board string) string {
	id := o.partitions[board]
	if id == "" {
		id = board + "#" + strings.Join([]string{o.is.Namespace, o.is.Pod, o.is.Container}, "/")
		if o.partitions == nil {
			o.partitions = map[string]string{}
		}
		o.partitions[strings.Clone(board)] = id
	}
	return id
}
