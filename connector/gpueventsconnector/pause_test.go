// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/engine"
)

// process is an engine with a clock of its own.
type process struct {
	*engine.Engine
	now time.Time
}

func newProcess() *process {
	cfg := createDefaultConfig().(*Config)
	cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService}
	return &process{newEngine(cfg), time.Now()}
}

// run lets time go by in ticks, and returns the events of that time.
func (p *process) run(d time.Duration) (all []string) {
	for range d / time.Second {
		p.now = p.now.Add(time.Second)
		p.Tick(p.now)
	}
	return p.events()
}

func (p *process) events() (all []string) {
	for _, e := range p.Take(nil) {
		all = append(all, e.Name+" "+e.State)
	}
	return all
}

// page reads a page and lets a collection interval go by.
func (p *process) page(pg page) []string {
	pg.at = p.now
	if pg.node == "" && pg.address == "" {
		pg.node = "n1"
	}
	p.Consume(scrape(pg), p.now)
	return p.run(interval)
}

// A process that was paused received nothing, which makes no node silent. Its agents connect again
// one after the other, as after a restart.
func TestAPauseMakesNoNodeSilent(t *testing.T) {
	for _, pause := range []time.Duration{50 * time.Second, time.Hour} {
		p := newProcess()
		f := newFleet("n1", "n2")
		live := func(d time.Duration) (all []string) {
			for range d / interval {
				p.Consume(f.received(p.now), p.now)
				all = append(all, p.run(interval)...)
			}
			return all
		}
		require.Empty(t, live(2*time.Minute))
		f.silent["n1"] = true
		require.Empty(t, live(time.Minute))
		p.now = p.now.Add(pause)
		assert.Empty(t, live(165*time.Second), "its agent may not be connected yet")
		assert.Equal(t, []string{"gpu.node.lost raised"}, live(30*time.Second))
	}
}

// Durations start again after a pause: what was so before it and is so after it may not have been
// so in between.
func TestDurationsStartAgainAfterAPause(t *testing.T) {
	hot := page{gpus: []gpu{{id: gpuA, hot: 86}}}
	for name, tt := range map[string]struct {
		of    page
		event string
		lasts time.Duration
	}{
		"temperature":      {hot, "gpu.temperature raised", 5 * time.Minute},
		"exporter is down": {page{down: true}, "gpu.exporter.down raised", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess()
			require.Empty(t, p.page(page{gpus: []gpu{{id: gpuA, hot: 50}}}))
			for range tt.lasts/interval - 2 {
				require.Empty(t, p.page(tt.of))
			}
			p.now = p.now.Add(75 * time.Second)
			for i := range tt.lasts / interval {
				require.Empty(t, p.page(tt.of), "page %d", i)
			}
			assert.Equal(t, []string{tt.event}, p.page(tt.of))
		})
	}
}

// Scrapes of several pages under one address follow each other within a second. Those after a pause
// are no absence of the devices of the others for as long.
func TestAPauseMakesNoDeviceLost(t *testing.T) {
	p := newProcess()
	pages := func(n int) (all []string) {
		for i := range n {
			pg := page{at: p.now.Add(time.Duration(i) * 100 * time.Millisecond), address: "proxy", gpus: []gpu{{id: fmt.Sprint("GPU-a-", i)}}}
			p.Consume(scrape(pg), p.now)
		}
		return p.run(interval)
	}
	for range 10 {
		require.Empty(t, pages(5))
	}
	p.now = p.now.Add(75 * time.Second)
	for range 4 {
		require.Empty(t, pages(5))
	}
}
