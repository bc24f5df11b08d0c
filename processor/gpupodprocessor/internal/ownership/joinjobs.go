// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// IndexOrder is how Slurm counts the devices of a node.
type IndexOrder string

const (
	// IndexUnknown: an index of Slurm means no device.
	IndexUnknown IndexOrder = ""
	// IndexPCI is the order of PCI addresses, which gpu.index is in too.
	IndexPCI IndexOrder = "pci"
	// IndexMinor is the number in the name of the device file, which gpu.minor is.
	IndexMinor IndexOrder = "minor"
)

// bySlurmIndex is the device that has an index of Slurm. Where there are MIG instances, Slurm
// counts them and not the GPUs: then it is none.
func (j *joiner) bySlurmIndex(index string) *sighting {
	if j.order == IndexUnknown || slices.ContainsFunc(j.seen, func(s *sighting) bool { return parentOf(s) != "" && j.live(s) }) {
		return nil
	}
	return j.one(func(s *sighting) bool {
		number := s.Index
		if j.order == IndexMinor {
			number = s.Minor
		}
		return number == index && j.onNode(s)
	})
}

// onNode reports whether the device is on the node for certain.
func (j *joiner) onNode(s *sighting) bool { return s.Node.Name != "" || j.alone }

func (j *joiner) live(s *sighting) bool { return j.all.fresh(&s.last, j.now) }

// byJob joins the unresolved devices of a job with those on which the exporter names it
// (hpc_job), by hw.id. All of them are the job's, so which is which has no meaning. Where the
// exporter names it on more devices than the job has, some of the names are wrong, and it is
// not known which. claims are those of devices that are known.
func (j *joiner) byJob(unjoined []*listed, claims map[string][]claim) map[*listed]string {
	given := map[string][]*listed{}
	for _, t := range unjoined {
		if id := t.jobID(); id != "" {
			given[id] = append(given[id], t)
		}
	}
	if len(given) == 0 {
		return nil
	}
	boards := map[string]bool{} // jobs have their instances
	for _, s := range j.seen {
		boards[parentOf(s)] = true
	}
	named := map[string][]*sighting{}
	for _, s := range j.seen {
		id := s.Label.TheJob().ID
		if given[id] != nil && !boards[s.ID] && claims[s.ID] == nil && j.onNode(s) && j.live(s) {
			named[id] = append(named[id], s)
		}
	}
	joined := map[*listed]string{}
	for id, devices := range named {
		of := given[id]
		if len(devices) > len(of) {
			continue
		}
		slices.SortFunc(devices, func(a, b *sighting) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortFunc(of, func(a, b *listed) int { return cmp.Compare(a.Device, b.Device) })
		for i, s := range devices {
			if parent := of[i].parent; parent == "" || parent == deviceid.Parent(s.ID) {
				joined[of[i]] = s.ID
			}
		}
	}
	return joined
}

// jobID is the id of the job that has the device; "" where it is not one job.
func (t *listed) jobID() string {
	if len(t.claims) == 0 {
		return ""
	}
	id := t.claims[0].owner.TheJob().ID
	for _, c := range t.claims[1:] {
		if c.owner.TheJob().ID != id {
			return ""
		}
	}
	return id
}
