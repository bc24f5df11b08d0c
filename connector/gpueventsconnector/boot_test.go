// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// booting is a node before and after a boot, during which its agent does not run.
type booting struct {
	patient
	*disk
}

func startBooting(t *testing.T) *booting {
	d := newDisk()
	return &booting{patient{d.boot(t, deviceSet, withHealth), t}, d}
}

func (b *booting) info(id string) []string { return healthEvents(b.feed(bootID(id, time.Now()))) }

// reboot boots the node while the agent is away.
func (b *booting) reboot() {
	b.stop()
	time.Sleep(3 * time.Minute)
	b.patient = patient{b.disk.boot(b.t, deviceSet, withHealth), b.t}
}

const raised79 = "raised: failed [xid_restart] reboot_node"

// withXID79 is a board with a number of XIDs 79; below 0 its pages do not count them.
func withXID79(count int64, last, energy float64) gpu {
	g := gpu{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 0}}
	if count >= 0 {
		g.xids = map[int64]int64{79: count}
	}
	if last >= 0 {
		g.values[&names.GPUXIDLast] = last
	}
	if energy > 0 {
		g.values[&names.HwEnergy] = energy
	}
	return g
}

// A boot is over before the first page after it, also where the agent reads its id later than
// that page. It ends what happened before it, and not what happened since, which a broken board
// does at each boot.
func TestABoardThatFailsAtBoot(t *testing.T) {
	for name, tt := range map[string]struct {
		well, before, after gpu
		fails               bool // before the boot
		page, info          []string
	}{
		"for the first time": {withXID79(0, -1, 1000), withXID79(0, -1, 2000), withXID79(1, -1, 10), false, []string{raised79}, nil},
		"again":              {withXID79(0, -1, 1000), withXID79(1, -1, 2000), withXID79(1, -1, 10), true, nil, nil},
		"again, by the last code": {
			withXID79(-1, 0, 1000), withXID79(-1, 79, 2000), withXID79(-1, 79, 10), true, nil, nil,
		},
		"again, without a counter of energy": {withXID79(0, -1, 0), withXID79(1, -1, 0), withXID79(1, -1, 0), true, nil, nil},
		"not again":                          {withXID79(0, -1, 1000), withXID79(1, -1, 2000), withXID79(0, -1, 10), true, nil, []string{clearedOK}},
		"not again, by the last code":        {withXID79(-1, 0, 1000), withXID79(-1, 79, 2000), withXID79(-1, 0, 10), true, nil, []string{clearedOK}},
	} {
		for order, infoFirst := range map[string]bool{"page first": false, "id first": true} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := startBooting(t)
					defer func() { b.stop() }()
					require.Empty(t, b.see(page{gpus: []gpu{tt.well}}))
					b.info("b1")
					if events := b.see(page{gpus: []gpu{tt.before}}); tt.fails {
						require.Equal(t, []string{raised79}, events)
					}
					b.info("b1")
					b.reboot()
					if infoFirst {
						before := b.info("b2")
						after := b.see(page{gpus: []gpu{tt.after}})
						assert.Empty(t, before, "nothing is known without a page")
						assert.Equal(t, append(tt.page, tt.info...), after)
					} else {
						assert.Equal(t, tt.page, b.see(page{gpus: []gpu{tt.after}}))
						assert.Equal(t, tt.info, b.info("b2"), "the boot was before the page")
					}
					for range 3 {
						assert.Empty(t, b.info("b2"))
						assert.Empty(t, b.see(page{gpus: []gpu{tt.after}}))
					}
				})
			})
		}
	}
}

// The count or the last code of a page may be what it was before the boot: it is an event again.
func TestTheSameXIDAfterABoot(t *testing.T) {
	for name, g := range map[string]gpu{"count": withXID79(1, -1, 0), "last code": withXID79(-1, 79, 0)} {
		for order, infoFirst := range map[string]bool{"page first": false, "id first": true} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := startBooting(t)
					defer func() { b.stop() }()
					well := withXID79(0, -1, 0)
					if g.xids == nil {
						well = withXID79(-1, 0, 0)
					}
					see := func(g gpu) (n int) {
						for _, e := range append(b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{g}})), b.wait(15*time.Second)...) {
							if e.record.EventName() == names.EventXID {
								n++
							}
						}
						return n
					}
					require.Zero(t, see(well))
					require.Equal(t, 1, see(g))
					b.info("b1")
					b.reboot()
					if infoFirst {
						b.info("b2")
						assert.Equal(t, 1, see(g))
					} else {
						assert.Zero(t, see(g), "it may be from before a restart of the agent")
						b.info("b2")
						assert.Equal(t, 1, see(g))
					}
					assert.Zero(t, see(g))
				})
			})
		}
	}
}

// The id of a boot may be read again after the next one: from the API while the node has not
// reported there since its boot, or in a batch that waited. That is no boot.
func TestALateBootID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBooting(t)
		defer func() { b.stop() }()
		before := time.Now()
		require.Empty(t, b.see(page{gpus: []gpu{sick(gpuA, 0, 1000)}}))
		b.info("b1")
		b.reboot()
		b.info("b2")
		require.Empty(t, b.see(page{gpus: []gpu{sick(gpuA, 0, 10)}}))
		require.Equal(t, []string{raised119}, b.see(page{gpus: []gpu{sick(gpuA, 1, 1100)}}))
		late := func() pmetric.Metrics { return bootID("b1", before.Add(time.Second)) }
		assert.Empty(t, healthEvents(b.feed(late())), "a point from before the boot")
		assert.Empty(t, b.info("b2"), "it was not booted again")
		b.stop()
		b.patient = patient{b.disk.boot(t, deviceSet, withHealth), t}
		assert.Empty(t, b.see(page{gpus: []gpu{sick(gpuA, 1, 1200)}}))
		assert.Empty(t, healthEvents(b.feed(late())), "across a restart")
		assert.Empty(t, b.info("b2"))
	})
}

// The Kubernetes API has the id of the boot before until the kubelet has reported.
func TestAnOldBootIDAfterABoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBooting(t)
		defer func() { b.stop() }()
		require.Empty(t, b.see(page{gpus: []gpu{withXID79(0, -1, 2000)}}))
		b.info("b1")
		b.reboot()
		require.Equal(t, []string{raised79}, b.see(page{gpus: []gpu{withXID79(1, -1, 10)}}))
		assert.Empty(t, b.info("b1"))
		assert.Empty(t, b.see(page{gpus: []gpu{withXID79(1, -1, 20)}}))
		assert.Empty(t, b.info("b2"))
	})
}

// A boot between two pages ends what was known when the id of the boot before was read last.
func TestABootWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, withHealth)
		p := patient{b, t}
		info := func(id string) []string { return healthEvents(b.feed(bootID(id, time.Now()))) }
		for range 30 {
			require.Empty(t, info("b1"))
			require.Empty(t, p.see(page{gpus: []gpu{withXID79(0, -1, 0)}}))
		}
		require.Equal(t, []string{raised79}, p.see(page{gpus: []gpu{withXID79(1, -1, 0)}}))
		require.Empty(t, info("b1"))
		assert.Equal(t, []string{clearedOK}, info("b2"))
		assert.Empty(t, p.see(page{gpus: []gpu{withXID79(0, -1, 0)}}))
	})
}

// A board that is missing since a boot was not missing before it.
func TestABoardThatIsLostSinceABoot(t *testing.T) {
	for name, tt := range map[string]struct {
		before bool
		want   string
	}{
		"since the boot": {false, ""},
		"before it":      {true, "raised: failed [lost] check_mechanics"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := startBooting(t)
				defer func() { b.stop() }()
				other := gpusOf(gpuB)
				require.Empty(t, b.see(page{gpus: append(gpusOf(gpuA), other...)}))
				b.info("b1")
				require.Empty(t, b.see(page{gpus: append(gpusOf(gpuA), other...)}))
				miss := func() (events []string) {
					for range 6 {
						events = append(events, b.see(page{gpus: other})...)
					}
					return events
				}
				lost := "raised: failed [lost] reboot_node"
				if tt.before {
					require.Equal(t, []string{lost}, miss())
				}
				b.reboot()
				if events := miss(); !tt.before {
					require.Equal(t, []string{lost}, events)
				}
				var want []string
				if tt.want != "" {
					want = []string{tt.want}
				}
				assert.Equal(t, want, append(b.info("b2"), miss()...))
			})
		})
	}
}
