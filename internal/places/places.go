// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package places bounds the pairs of namespace and queue for which there are series.
package places // import "github.com/otelcol-gpu/otelcol-gpu/internal/places"

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Place is where a pod waits or waited. Queue is "" for a pair beyond the limit, and so is Namespace
// where there is no room for one without a queue.
type Place struct{ Namespace, Queue string }

// Compare orders places by namespace, and then by queue.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Namespace, o.Namespace), cmp.Compare(p.Queue, o.Queue))
}

// Put writes p to the attributes of a point.
func (p Place) Put(attrs pcommon.Map) {
	attrs.EnsureCapacity(4)
	if p.Namespace != "" {
		attrs.PutStr(names.K8sNamespaceName, p.Namespace)
	}
	if p.Queue != "" {
		attrs.PutStr(names.GPUQueueName, p.Queue)
	}
}

// keep is for how long a pair that no pod has stays.
const keep = 24 * time.Hour

// Set are the pairs that have series. It is not safe for concurrent use.
type Set struct {
	max     int
	last    map[Place]time.Time
	queues  map[string]int // of last, by namespace
	refused int
}

// share is the part of the limit that the queues of one namespace have at most: who makes pods names
// their queues, and takes no room from other namespaces.
const share = 10

// New returns a Set of at most limit pairs.
func New(limit int) *Set {
	return &Set{max: limit, last: map[Place]time.Time{}, queues: map[string]int{}}
}

// Admit returns p. Where there is no room for another pair it returns p without its queue, and
// the zero Place where there is none for that either: what is summed stays complete.
func (s *Set) Admit(p Place, now time.Time) Place {
	if !s.fits(p) {
		s.refused++
		if p.Queue = ""; !s.fits(p) {
			return Place{}
		}
	}
	if _, known := s.last[p]; !known && p.Queue != "" {
		s.queues[p.Namespace]++
	}
	s.last[p] = now
	return p
}

func (s *Set) fits(p Place) bool {
	if _, known := s.last[p]; known {
		return true
	}
	return len(s.last) < s.max && (p.Queue == "" || s.queues[p.Namespace] < max(1, s.max/share))
}

// Expire forgets the pairs that were not admitted for a day and returns them.
func (s *Set) Expire(now time.Time) (gone []Place) {
	for p, at := range s.last {
		if now.Sub(at) > keep {
			delete(s.last, p)
			if p.Queue != "" {
				s.queues[p.Namespace]--
			}
			if s.queues[p.Namespace] == 0 {
				delete(s.queues, p.Namespace)
			}
			gone = append(gone, p)
		}
	}
	return gone
}

// Refused returns how many pods were refused since the last call.
func (s *Set) Refused() int {
	n := s.refused
	s.refused = 0
	return n
}
