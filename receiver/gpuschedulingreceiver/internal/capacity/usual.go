// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
)

// usual knows the pods that there were in a window: what CPU and memory go with a device,
// and how many devices a pod requests.
type usual struct {
	window time.Duration
	max    int
	pods   map[string]asked // by UID
}

// asked is what a pod requests.
type asked struct {
	alive    time.Time // when it was last seen, or created
	requests []gpupods.Request
	gpupods.Amount
}

// over reports whether the pod has ended and requests nothing any more.
func over(p *gpupods.Pod) bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// note takes in the pods of now and forgets those of before the window. It returns how many
// were forgotten within it, since there are more than max.
func (u *usual) note(now time.Time, pods []*gpupods.Pod) (forgotten int) {
	for _, p := range pods {
		if p.Scheduling == nil || len(p.Scheduling.Requests) == 0 {
			continue // what it asks for is not known
		}
		alive := now
		if over(p) {
			if _, known := u.pods[p.UID]; known {
				continue
			}
			alive = p.Scheduling.Created
		}
		u.pods[p.UID] = asked{alive, p.Scheduling.Requests, p.Scheduling.Amount}
	}
	maps.DeleteFunc(u.pods, func(_ string, a asked) bool { return now.Sub(a.alive) > u.window })
	if len(u.pods) <= u.max {
		return 0
	}
	oldest := slices.SortedFunc(maps.Keys(u.pods), func(a, b string) int {
		return cmp.Or(u.pods[a].alive.Compare(u.pods[b].alive), cmp.Compare(a, b))
	})
	// Some room is made, so that this is not done each time.
	forgotten = len(u.pods) - u.max + u.max/20
	for _, uid := range oldest[:forgotten] {
		delete(u.pods, uid)
	}
	return forgotten
}

// share is an amount for a number of devices, as an exact fraction. The zero value limits
// nothing.
type share struct {
	amount  int64
	devices int
}

// shareOf bounds amounts and devices, by what gpupods has as limits of both, so that products fit
// into 64 bits.
func shareOf(amount int64, devices int) share {
	return share{min(max(0, amount), 1<<48), min(devices, 1<<14)}
}

func (s share) compare(than share) int {
	return cmp.Compare(s.amount*int64(than.devices), than.amount*int64(s.devices))
}

// enough is for how many devices an amount is enough, at most limit.
func (s share) enough(amount int64, limit int) int {
	if s.amount <= 0 {
		return limit
	}
	return int(min(int64(limit), shareOf(amount, 1).amount*int64(s.devices)/s.amount))
}

// custom is what is usual for a resource.
type custom struct {
	cpu, memory share
	sizes       []size // by devices
	devices     int    // of all requests
}

// size is a size of requests: how many devices one has, and how many have it.
type size struct{ devices, requests int }

// customs are what is usual, by resource. Requests of more devices than the largest node has are
// none: no arrangement of the free devices would serve them, so that they say nothing of it.
func (u *usual) customs(largest map[string]int) map[string]custom {
	type counts struct {
		cpu, memory map[share]int
		sizes       map[int]int
	}
	all := map[string]*counts{}
	for _, p := range u.pods {
		for _, r := range byResource(p.requests) {
			if r.Count <= 0 || r.Count > largest[r.Resource] {
				continue
			}
			c := all[r.Resource]
			if c == nil {
				c = &counts{map[share]int{}, map[share]int{}, map[int]int{}}
				all[r.Resource] = c
			}
			c.cpu[shareOf(p.CPU, r.Count)]++
			c.memory[shareOf(p.Memory, r.Count)]++
			c.sizes[r.Count]++
		}
	}
	out := make(map[string]custom, len(all))
	for resource, c := range all {
		is := custom{cpu: median(c.cpu), memory: median(c.memory)}
		for _, devices := range slices.Sorted(maps.Keys(c.sizes)) {
			is.sizes = append(is.sizes, size{devices, c.sizes[devices]})
			is.devices += devices * c.sizes[devices]
		}
		out[resource] = is
	}
	return out
}

// byResource are the requests with each resource once: those of several claims are added.
func byResource(requests []gpupods.Request) []gpupods.Request {
	if len(requests) < 2 {
		return requests
	}
	var out []gpupods.Request
	for _, r := range requests {
		if i := slices.IndexFunc(out, func(is gpupods.Request) bool { return is.Resource == r.Resource }); i >= 0 {
			out[i].Count += r.Count
		} else {
			out = append(out, r)
		}
	}
	return out
}

// median is the smaller of the two in the middle where there is no middle: a share that a
// pod really has.
func median(counts map[share]int) share {
	n := 0
	for _, count := range counts {
		n += count
	}
	for _, s := range slices.SortedFunc(maps.Keys(counts), share.compare) {
		if n -= 2 * counts[s]; n <= 0 {
			return s
		}
	}
	return share{}
}
