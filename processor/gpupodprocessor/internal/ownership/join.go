// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"time"
	"unique"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// joiner finds the device that an unresolved allocation of one node means among
// the devices of telemetry. Where several may be meant, none is.
type joiner struct {
	all   *sightings
	node  *node
	now   time.Time
	order IndexOrder
	alone bool        // its manager has no other node
	seen  []*sighting // on the node, or on an unknown one
	// How many unresolved allocations have this profile on this GPU.
	profiles map[[2]string]int
	// The pods that the exporter names on a device that its node's kubelet,
	// counting minors, gives to another pod.
	misplaced map[owner.Owner]bool
}

func newJoiner(m *Memory, n *node, now time.Time) *joiner {
	seen := &m.seen
	j := &joiner{all: seen, node: n, now: now, order: m.SlurmIndex, alone: m.only[n.key.Manager].Load() == n}
	for _, t := range n.listed {
		if t.resolved {
			continue
		}
		if j.profiles == nil {
			j.profiles = map[[2]string]int{}
		}
		j.profiles[[2]string{t.parent, t.profile}]++
	}
	add := func(of map[string]*sighting) {
		for _, s := range of {
			if s.Node.Name == "" || s.Node.may(n.key.Node) {
				j.seen = append(j.seen, s)
			}
		}
	}
	add(seen.byNode[n.key.Name])
	if n.key.Name != "" && len(j.profiles) > 0 {
		add(seen.byNode[""])
	}
	j.misplace()
	return j
}

// misplace finds out whom the exporter names where the kubelet does not.
func (j *joiner) misplace() {
	type place struct{ index, instance string }
	given := map[place]*listed{}
	for _, t := range j.node.listed {
		if t.Index != "" && !t.resolved {
			given[place{t.Index, t.Instance}] = t
		}
	}
	if len(given) == 0 {
		return
	}
	j.misplaced = map[owner.Owner]bool{}
	for _, s := range j.seen {
		if s.Node.Name == "" || s.Minor != "" || s.Label.Pod == "" || !j.all.fresh(&s.last, j.now) {
			continue
		}
		if t := given[place{s.Index, s.Instance}]; t != nil && t.contradicts(s.Label) {
			j.misplaced[owner.Owner{Namespace: s.Label.Namespace, Pod: s.Label.Pod}] = true
		}
	}
}

// join is the hw.id of the device that t means, or "".
func (j *joiner) join(t *listed) string {
	if t.MIGUUID != "" {
		if s := j.one(func(s *sighting) bool { return s.MIGUUID == t.MIGUUID }); s != nil {
			return s.ID
		}
	}
	if t.parent != "" && t.profile != "" && j.profiles[[2]string{t.parent, t.profile}] == 1 {
		s := j.one(func(s *sighting) bool { return s.Profile == t.profile && parentOf(s) == t.parent })
		// An instance with an id of its own is another one.
		if s != nil && s.MIGUUID == "" || s != nil && t.MIGUUID == "" {
			return s.ID
		}
	}
	if t.Slurm != "" {
		if s := j.bySlurmIndex(t.Slurm); s != nil {
			return s.ID
		}
	}
	if t.Index != "" {
		s := j.one(func(s *sighting) bool {
			return s.Node.Name != "" && s.number() == t.Index && s.Instance == t.Instance && (parentOf(s) == "") == (t.Instance == "")
		})
		if s != nil && (s.Minor != "" || !j.contradicts(s.Label, t)) {
			return s.ID
		}
	}
	return ""
}

// one is the only device that fits. A device that was replaced is remembered for
// a while: what was seen lately counts before it.
func (j *joiner) one(fits func(*sighting) bool) *sighting {
	var all, fresh []*sighting
	for _, s := range j.seen {
		if !fits(s) {
			continue
		}
		all = append(all, s)
		if j.all.fresh(&s.last, j.now) {
			fresh = append(fresh, s)
		}
	}
	switch {
	case len(fresh) == 1:
		return fresh[0]
	case len(all) == 1:
		return all[0]
	}
	return nil
}

func parentOf(s *sighting) string {
	if s.Parent != "" {
		return s.Parent
	}
	return deviceid.Parent(s.ID)
}

// number is the device's minor, which GKE's ids count; its index where that is not known.
func (s *sighting) number() string { return cmp.Or(s.Minor, s.Index) }

// contradicts reports whether the exporter names an owner that the allocation
// does not, or names the allocation's owner elsewhere. GKE's ids count /dev
// minors, the exporter counts devices: where they differ the labels show it, on
// the device that is held and on the one that is not.
func (j *joiner) contradicts(label owner.Owner, t *listed) bool {
	if label.Pod != "" {
		return t.contradicts(label)
	}
	for _, c := range t.claims {
		if j.misplaced[c.owner.Whole()] {
			return true
		}
	}
	return false
}

// contradicts reports whether t is not the pod's that the label names.
func (t *listed) contradicts(label owner.Owner) bool {
	for _, c := range t.claims {
		if c.owner.SamePod(label) {
			return false
		}
	}
	return true
}

// doubted are the owners that the exporter's labels name on more devices of AMD without a
// fact than the kubelet has given them: which of the labels is wrong cannot be known, as after
// the end of a pod, or where several containers have devices and the exporter knows one of
// them. An owner without container is the pod as a whole.
func (j *joiner) doubted(v *view) map[owner.Owner]bool {
	given, anyContainer := map[owner.Owner]int{}, map[owner.Owner]bool{}
	counts := false
	for _, t := range j.node.listed {
		if !t.counted || v.joined[t.Device] != "" {
			continue
		}
		counts = true
		for _, c := range t.claims {
			given[c.owner.Whole()]++
			if c.owner.Container != "" {
				given[c.owner]++
			} else {
				anyContainer[c.owner] = true
			}
		}
	}
	if !counts {
		return nil
	}
	boards := map[string]bool{} // they have the labels of a partition
	for _, s := range j.seen {
		boards[parentOf(s)] = true
	}
	named := map[owner.Owner]int{}
	for _, s := range j.seen {
		label := s.Label
		label.Job = unique.Handle[owner.Job]{}
		if s.Label.Pod == "" || s.Node.Name == "" || boards[s.ID] || v.facts[s.ID] != nil || deviceid.MakeOf(s.ID) != deviceid.MakeAMD || !j.all.fresh(&s.last, j.now) {
			continue
		}
		named[label.Whole()]++
		if label.Container != "" {
			named[label]++
		}
	}
	out := map[owner.Owner]bool{}
	for who, n := range named {
		if n > given[who] && (who.Container == "" || !anyContainer[who.Whole()]) {
			out[who] = true
		}
	}
	return out
}
