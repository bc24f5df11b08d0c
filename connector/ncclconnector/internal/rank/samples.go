// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/wire"
)

// keep keeps the samples that most of the other ranks keep too, without a word between them: those
// whose sequence number ends with the most zero bits.
func (r *rank) keep(operation string, is sample, most int) {
	all := r.samples[operation]
	if i := slices.IndexFunc(all, func(o sample) bool { return o.sequence == is.sequence }); i >= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(all, is, order)
	if at >= most {
		return
	}
	all = slices.Insert(all, at, is)
	r.samples[operation] = all[:min(len(all), most)]
}

// order has those first that are kept first. Of as many zeros the bits before them decide in the
// same way, so that ranks whose intervals begin at different moments choose the same ones too.
func order(a, b sample) int {
	return cmp.Compare(bits.Reverse64(a.sequence), bits.Reverse64(b.sequence))
}

// Batches are what the ranks have done since the last call, in a fixed order, by who they are of.
func (s *State) Batches() map[holders.Holder][]wire.Batch {
	all := map[holders.Holder][]wire.Batch{}
	for key, r := range s.ranks {
		if !r.heard {
			continue
		}
		r.heard = false
		alive := wire.Batch{Key: key.comm, Rank: key.rank, Host: r.host, Newest: r.newest}
		if len(r.samples) == 0 {
			all[key.holder] = append(all[key.holder], alive)
			continue
		}
		for operation, samples := range r.samples {
			b := alive
			b.Operation = operation
			for _, one := range samples {
				b.Sequences, b.Durations = append(b.Sequences, one.sequence), append(b.Durations, one.took)
			}
			all[key.holder] = append(all[key.holder], b)
		}
		clear(r.samples)
	}
	for _, of := range all {
		slices.SortFunc(of, func(a, b wire.Batch) int {
			return cmp.Or(cmp.Compare(a.Key.ID, b.Key.ID), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Operation, b.Operation))
		})
	}
	return all
}
