// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// Chronicle is what every device did in the last while.
type Chronicle struct {
	mu     sync.Mutex
	values map[string][]reading // by node/device
}

type reading struct {
	at    time.Time
	truth gpusim.DeviceTruth
}

// remember is how long the chronicle goes back: evaluations are judged late.
const remember = 30 * time.Second

// Watch reads the truth of all nodes until ctx ends.
func (c *Chronicle) Watch(ctx context.Context, nodes []*fleet.Node) {
	for {
		for _, n := range nodes {
			now := time.Now()
			for _, truth := range n.GPUs.TruthAt(now).Nodes {
				c.note(n.Name, now, truth.Devices)
			}
		}
		if !pace.Pause(ctx, pace.Interval/4) {
			return
		}
	}
}

func (c *Chronicle) note(node string, now time.Time, devices []gpusim.DeviceTruth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string][]reading{}
	}
	for _, d := range devices {
		key := node + " " + d.ID
		list := c.values[key]
		for len(list) > 0 && now.Sub(list[0].at) > remember {
			list = list[1:]
		}
		c.values[key] = append(list, reading{now, d})
	}
}

// looked reports whether the truth about all devices of these pods was read
// often enough in a time.
func (c *Chronicle) looked(lives []history.Life, from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lives {
		for _, id := range l.Devices {
			seen := 0
			for _, r := range c.values[l.Node+" "+id] {
				if !r.at.Before(from) && !r.at.After(to) {
					seen++
				}
			}
			if seen < 3*int(to.Sub(from)/pace.Interval) {
				return false
			}
		}
	}
	return len(lives) > 0
}

// bounds are the lowest and the highest that an average can be in a time, each
// pod one vote. some is false where no pod has it.
func (c *Chronicle) bounds(a *average, lives []history.Life, from, to time.Time) (low, high float64, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := 0.
	for i := range lives {
		l := &lives[i]
		var podLow, podHigh, devices float64
		for _, id := range l.Devices {
			if a.has != nil && !a.has(l, id) {
				continue
			}
			least, most := math.Inf(1), math.Inf(-1)
			for j := range c.values[l.Node+" "+id] {
				if r := &c.values[l.Node+" "+id][j]; !r.at.Before(from) && !r.at.After(to) {
					value := a.of(&r.truth)
					least, most = min(least, value), max(most, value)
				}
			}
			podLow, podHigh, devices = podLow+least, podHigh+most, devices+1
		}
		if devices == 0 {
			continue
		}
		if !a.added {
			podLow, podHigh = podLow/devices, podHigh/devices
		}
		pods++
		switch {
		case a.over == leastOfPods && pods > 1:
			low, high = min(low, podLow), min(high, podHigh)
		case a.over == mostOfPods && pods > 1:
			low, high = max(low, podLow), max(high, podHigh)
		default:
			low, high = low+podLow, high+podHigh
		}
	}
	if a.over == meanOfPods && pods > 0 {
		low, high = low/pods, high/pods
	}
	return low, high, pods > 0
}
