// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package stall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A job that is heard of at intervals, and then is not.
func TestJob(t *testing.T) {
	held, spin, free := Devices{8, 0}, Devices{8, 8}, Devices{}
	for name, c := range map[string]struct {
		every  time.Duration
		quiet  time.Duration // since it was heard of
		then   Devices
		want   Stage
		before Devices
	}{
		"works":                      {15 * time.Second, 20 * time.Second, held, None, held},
		"almost five minutes":        {15 * time.Second, 5 * time.Minute, held, None, held},
		"silent":                     {15 * time.Second, 5*time.Minute + time.Second, held, Suspected, held},
		"silent, and spins":          {15 * time.Second, 6 * time.Minute, spin, Confirmed, held},
		"silent, and one of 8 rests": {15 * time.Second, 6 * time.Minute, Devices{8, 7}, Suspected, held},
		"ended":                      {15 * time.Second, 6 * time.Minute, free, None, held},
		"spun before":                {15 * time.Second, 6 * time.Minute, held, Confirmed, spin},
		"rarely heard of":            {2 * time.Minute, 19 * time.Minute, held, None, held},
		"rarely, and silent":         {2 * time.Minute, 21 * time.Minute, held, Suspected, held},
	} {
		t.Run(name, func(t *testing.T) {
			var j Job
			now := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
			for range 400 {
				now = now.Add(c.every)
				j.Heard(now)
				j.Heard(now) // of another rank
				stage, changed := j.Judge(c.before, 5*time.Minute, now)
				assert.Equal(t, None, stage)
				assert.False(t, changed)
			}
			now = now.Add(c.quiet)
			stage, _ := j.Judge(c.before, 5*time.Minute, now)
			stage2, changed := j.Judge(c.then, 5*time.Minute, now)
			assert.Equal(t, c.want, stage2)
			assert.Equal(t, stage != stage2, changed)
			j.Heard(now.Add(time.Second))
			stage, _ = j.Judge(c.then, 5*time.Minute, now.Add(time.Second))
			assert.Equal(t, None, stage, "heard of again")
			assert.Equal(t, max(5*time.Minute, 10*c.every), j.Bound(5*time.Minute), "the stall is no usual gap")
		})
	}
}
