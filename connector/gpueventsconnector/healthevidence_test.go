// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// sick is a board with so many XIDs 119, and a flag.
func sick(id string, xids int64, energy float64) gpu {
	return gpu{id: id, xids: map[int64]int64{119: xids}, values: map[*names.Metric]float64{&names.HwEnergy: energy, &names.GPURowRemapFailure: 0}}
}

// patient feeds pages every 15 s and returns the events about health.
type patient struct {
	*bench
	t *testing.T
}

func (p patient) see(pages ...page) []string {
	for i := range pages {
		if pages[i].node == "" {
			pages[i].node = "n1"
		}
		if pages[i].at.IsZero() {
			pages[i].at = time.Now()
		}
	}
	happened := p.feed(scrape(pages...))
	return healthEvents(append(happened, p.wait(15*time.Second)...))
}

const (
	raised119 = "raised: failed [xid_reset] reset_gpu"
	clearedOK = "cleared: ok <nil> none"
)

// fall makes the board fail by an XID.
func (p patient) fall() {
	p.t.Helper()
	require.Empty(p.t, p.see(page{gpus: []gpu{sick(gpuA, 0, 1000)}}))
	require.Equal(p.t, []string{raised119}, p.see(page{gpus: []gpu{sick(gpuA, 1, 1100)}}))
}

func withPatient(t *testing.T, f func(p patient, w *ward), configure ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, append([]func(*Config){deviceSet, withHealth}, configure...)...)
		defer b.stop()
		f(patient{b, t}, w)
	})
}

// What is not a reset clears nothing: an exporter that restarts, is away or frozen, or a
// second one with older values. A reset does.
func TestWhatIsNoReset(t *testing.T) {
	for name, pages := range map[string][][]page{
		"an exporter's restart": {{{down: true}}, {{gpus: []gpu{sick(gpuA, 0, 1300)}}}, {{gpus: []gpu{sick(gpuA, 0, 1400)}}}},
		"a page without XIDs":   {{{gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{&names.HwEnergy: 1300}}}}}},
		"a second exporter": {
			{{gpus: []gpu{sick(gpuA, 1, 1300)}}, {port: 9401, at: time.Now(), gpus: []gpu{sick(gpuA, 1, 1290)}}},
			{{gpus: []gpu{sick(gpuA, 1, 1400)}}}, {{port: 9401, gpus: []gpu{sick(gpuA, 1, 1390)}}},
		},
		"one scrape without it": {{{}}, {{gpus: []gpu{sick(gpuA, 1, 1300)}}}},
		"no energy":             {{{gpus: []gpu{sick(gpuA, 1, -1)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			withPatient(t, func(p patient, _ *ward) {
				p.fall()
				for _, scrape := range pages {
					for i := range scrape {
						scrape[i].at = time.Time{}
					}
					assert.Empty(t, p.see(scrape...))
				}
				assert.Equal(t, []string{clearedOK}, p.see(page{gpus: []gpu{{id: gpuA, values: sick(gpuA, 0, 100).values}}}), "a reset")
			})
		})
	}
}

// A board that was on no page is back: after a reset, or with energy that went on rising as
// DCGM had been restarted, which clears nothing.
func TestALostBoardThatWasNotReset(t *testing.T) {
	for energy, want := range map[float64]string{1500: raised119, 50: clearedOK} {
		withPatient(t, func(p patient, _ *ward) {
			p.fall()
			for range 4 {
				p.see(page{})
			}
			assert.Equal(t, []string{want}, p.see(page{gpus: []gpu{sick(gpuA, 1, energy)}}), "energy %v", energy)
		})
	}
}

// Where every value of a board is blank it is on the page, and nothing is known of its health: it is not
// reported as gone, and no reason is raised or cleared.
func TestABoardOfWhichEveryValueIsBlank(t *testing.T) {
	for name, blank := range map[string]gpu{
		"other points":              {id: gpuA, blank: true},
		"what the receiver reports": {id: gpuA, blank: true, points: []reading{{of: &names.GPUDeviceBlank, value: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			withPatient(t, func(p patient, w *ward) {
				require.Empty(t, p.see(page{gpus: []gpu{sick(gpuA, 0, 1000), {id: gpuB}}}))
				require.Contains(t, live(&names.HwStatus, w.AllMetrics()), gpuA)
				var events []occurred
				for range 5 {
					p.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{blank, {id: gpuB}}}))
					events = append(events, p.wait(15*time.Second)...)
				}
				require.Len(t, events, 1)
				assert.Equal(t, "gpu.device.lost raised", brief(events)[0])
				assert.Contains(t, events[0].body, "is on the page of its exporter, and every value of it is blank")
				assert.NotContains(t, live(&names.HwStatus, w.AllMetrics()), gpuA, "its health is unknown")
				assert.Empty(t, p.see(page{gpus: []gpu{sick(gpuA, 0, 1100), {id: gpuB}}}))
				assert.Equal(t, "ok", live(&names.HwStatus, w.AllMetrics())[gpuA])
			}, func(cfg *Config) { cfg.Health.Expected = map[string]int{"p5": 2} })
		})
	}
}

// Silence is unknown: neither failed nor ok. The reasons are kept, and are back with the
// data.
func TestSilenceIsUnknown(t *testing.T) {
	for name, silent := range map[string]func(p patient, n int) []string{
		"the exporter is down": func(p patient, _ int) []string { return p.see(page{down: true}) },
		"it is frozen":         func(p patient, _ int) []string { return p.see(page{frozen: true, gpus: []gpu{sick(gpuA, 1, 1100)}}) },
		"nothing arrives":      func(p patient, _ int) []string { return healthEvents(p.wait(15 * time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			withPatient(t, func(p patient, w *ward) {
				p.fall()
				w.Reset()
				for n := range 8 {
					require.Empty(t, silent(p, n))
				}
				all := w.taken()
				for _, m := range []*names.Metric{&names.HwStatus, &names.GPUHealthReason, &names.GPUHealthCoverage, &names.GPUNodeStatus} {
					series := of(m, all)
					require.NotEmpty(t, series, m.Name)
					assert.Contains(t, series[len(series)-1], "ends", m.Name)
				}
				assert.NotContains(t, of(&names.HwStatus, all), "ok 1")
				require.Empty(t, p.see(page{gpus: []gpu{sick(gpuA, 1, 1500)}}), "what was reported is not reported again")
				assert.Equal(t, []string{"failed 1"}, of(&names.HwStatus, w.taken()))
				assert.Equal(t, []string{clearedOK}, p.see(page{gpus: []gpu{sick(gpuA, 1, 10)}}))
			})
		})
	}
}

// A lost board is failed while its exporter answers without it, also in its metrics; it is
// well when it is back. One that stays away loses its state, with the reason in the event,
// and another board has one of its own.
func TestALostBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth, func(cfg *Config) { cfg.SubjectTTL = 10 * time.Minute })
		defer b.stop()
		p := patient{b, t}
		lost := "raised: failed [lost] reboot_node"
		for range 3 {
			require.Empty(t, p.see(page{gpus: gpusOf(gpuA)}))
		}
		away := func(n int, pg page) (events []string) {
			for range n {
				events = append(events, p.see(pg)...)
			}
			return events
		}
		require.Equal(t, []string{lost}, away(4, page{}))
		w.Reset()
		require.Empty(t, away(4, page{}))
		assert.Equal(t, []string{"failed 1", "failed 1", "failed 1", "failed 1"}, of(&names.HwStatus, w.taken()), "as of each page without it")
		require.Equal(t, []string{clearedOK}, p.see(page{gpus: gpusOf(gpuA)}))

		w.Reset()
		other := gpusOf(gpuB)
		other[0].pci = "0000:04:00.0"
		var bodies []string
		for range 60 {
			for _, e := range append(b.feed(scrape(page{at: time.Now(), node: "n1", gpus: other})), b.wait(15*time.Second)...) {
				if e.record.EventName() == names.EventHealth {
					bodies = append(bodies, e.state+": "+e.body)
				}
			}
		}
		require.Len(t, bodies, 2)
		assert.Contains(t, bodies[1], "cleared: GPU 3 on n1 ("+gpuA+") was not seen for 10 minutes, and what was raised about it is over.")
		assert.Equal(t, map[string]string{gpuB: "ok"}, live(&names.HwStatus, w.AllMetrics()), "its series ended")
		assert.Equal(t, map[string]string{"n1": "ok"}, live(&names.GPUNodeStatus, w.AllMetrics()))

		for range 60 {
			p.see(page{})
		}
		assert.Empty(t, live(&names.HwStatus, w.AllMetrics()))
		assert.Empty(t, live(&names.GPUNodeStatus, w.AllMetrics()), "a node without boards has no state")
	})
}

// live are the states of the boards, or of the nodes, that have series after all of the
// metrics. A board has those of one resource at most.
func live(of *names.Metric, metrics []pmetric.Metrics) map[string]string {
	is := map[string]map[string]string{} // id -> node -> state
	for _, md := range metrics {
		for _, rm := range md.ResourceMetrics().All() {
			res := rm.Resource().Attributes().AsRaw()
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != of.Name {
					continue
				}
				for _, dp := range m.Sum().DataPoints().All() {
					node, state := fmt.Sprint(res[names.K8sNodeName]), fmt.Sprint(dp.Attributes().AsRaw()[names.HwState])
					id := node
					if of == &names.HwStatus {
						id = fmt.Sprint(res[names.HwID])
					}
					if is[id] == nil {
						is[id] = map[string]string{}
					}
					switch {
					case dp.Flags().NoRecordedValue():
						delete(is[id], node)
					case dp.IntValue() == 1:
						is[id][node] = state
					}
				}
			}
		}
	}
	states := map[string]string{}
	for id, places := range is {
		switch len(places) {
		case 0:
		case 1:
			states[id] = slices.Collect(maps.Values(places))[0]
		default:
			states[id] = fmt.Sprint("twice: ", places)
		}
	}
	return states
}

// An XID on the row of a MIG instance after which the GPU has to be reset is against the
// board; one that is the fault of the application is not, whatever other instances have.
func TestXIDsOfMIGInstances(t *testing.T) {
	withPatient(t, func(p patient, w *ward) {
		see := func(fault, fatal int64) []string {
			gpus := []gpu{sick(gpuA, 0, 1000)}
			for _, n := range []string{"1", "2"} {
				gpus = append(gpus, gpu{id: gpuA + "/" + n, parent: gpuA, pod: "chat-" + n, xids: map[int64]int64{31: fault, 119: fatal}})
			}
			return p.see(page{gpus: gpus})
		}
		require.Empty(t, see(0, 0))
		require.Empty(t, see(1, 0))
		for range 20 {
			require.Empty(t, see(1, 0))
		}
		assert.Equal(t, []string{raised119}, append(see(1, 1), see(1, 1)...))
		assert.Equal(t, map[string]string{gpuA: "failed"}, live(&names.HwStatus, w.AllMetrics()))
	})
}

// One hw.id on two nodes in turn: one board, with one state and the series of one node at a
// time. Neither clears a reason.
func TestOneBoardOnTwoNodes(t *testing.T) {
	withPatient(t, func(p patient, w *ward) {
		p.fall()
		for n := range 6 {
			node := fmt.Sprint("n", n%2+1)
			assert.Empty(t, p.see(page{node: node, gpus: []gpu{sick(gpuA, 1, 2000+float64(n))}}))
			assert.Equal(t, map[string]string{node: "failed"}, live(&names.GPUNodeStatus, w.AllMetrics()))
			assert.Equal(t, map[string]string{gpuA: "failed"}, live(&names.HwStatus, w.AllMetrics()))
		}
	})
}

// A clock that is set back clears nothing, and does not keep a reset from clearing.
func TestTheClockIsSetBackUnderAReason(t *testing.T) {
	withPatient(t, func(p patient, _ *ward) {
		p.fall()
		back := func(energy float64) []string {
			return p.see(page{at: time.Now().Add(-time.Hour), gpus: []gpu{sick(gpuA, 1, energy)}})
		}
		for n := range 20 {
			require.Empty(t, back(2000+float64(n)))
		}
		assert.Equal(t, []string{clearedOK}, back(10))
	})
}

// The event is on its way two seconds after the page that decides, whether or not another
// one follows.
func TestAnEventAboutHealthIsSentAtOnce(t *testing.T) {
	withPatient(t, func(p patient, _ *ward) {
		require.Empty(t, p.see(page{gpus: []gpu{sick(gpuA, 0, 1000)}}))
		b := p.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{sick(gpuA, 1, 1100)}}))
		events := append(b, p.wait(2*time.Second)...)
		require.Equal(t, []string{raised119}, healthEvents(events))
		attrs := events[len(events)-1].attrs
		require.Len(t, attrs[names.GPUHealthCauses], 1)
		assert.Contains(t, attrs[names.GPUHealthCauses].([]any)[0], "119")
		assert.Equal(t, []any{nil}, attrs[names.GPUHealthValues], "nothing is compared")
		assert.NotContains(t, attrs, names.GPUEventThreshold)
	})
}

// The figures of an event are those of the reasons, and of the worst one once more.
func TestFiguresOfAnEventAboutHealth(t *testing.T) {
	withPatient(t, func(p patient, _ *ward) {
		values := map[*names.Metric]float64{&names.GPURowRemapFailure: 1, &names.GPURemappedRows: 600}
		md := scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: values}}})
		for _, m := range md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == names.GPURemappedRows.Name {
				m.Sum().DataPoints().At(0).Attributes().PutStr(names.ErrorType, names.ErrorTypeUncorrected)
			}
		}
		p.feed(md)
		events := p.wait(2 * time.Second)
		require.Equal(t, []string{"raised: failed [remap_failed remap_worn] rma"}, healthEvents(events))
		attrs := events[len(events)-1].attrs
		assert.Equal(t, []any{nil, 600.}, attrs[names.GPUHealthValues])
		assert.Equal(t, []any{nil, 512.}, attrs[names.GPUHealthThresholds])
		assert.Equal(t, 600., attrs[names.GPUEventValue])
		assert.Equal(t, 512., attrs[names.GPUEventThreshold])
		assert.Len(t, attrs[names.GPUHealthCauses], 2)
	})
}

// However often the process is killed, once what it had reported is stored: no reason is
// lost, none is cleared without evidence, and nothing is reported twice.
func TestHealthAfterKills(t *testing.T) {
	boot := func(id string) func() pmetric.Metrics {
		return func() pmetric.Metrics { return nodeInfo(names.GPUNodeBootID, id) }
	}
	see := func(g gpu) func() pmetric.Metrics {
		return func() pmetric.Metrics { return scrape(page{at: time.Now(), node: "n1", gpus: []gpu{g}}) }
	}
	with := func(g gpu, m *names.Metric, v float64) gpu {
		g.values = maps.Clone(g.values)
		g.values[m] = v
		return g
	}
	away := func() pmetric.Metrics { // while the node boots, nothing arrives
		time.Sleep(3 * time.Minute)
		return pmetric.NewMetrics()
	}
	course := []func() pmetric.Metrics{
		boot("b1"), see(sick(gpuA, 5, 1000)), see(sick(gpuA, 5, 1100)), // the first five are from before
		see(sick(gpuA, 6, 1200)), see(with(sick(gpuA, 6, 1300), &names.GPURowRemapPending, 1)), see(with(sick(gpuA, 6, 1400), &names.GPURowRemapPending, 1)),
		see(with(sick(gpuA, 6, 10), &names.GPURowRemapPending, 1)), see(with(sick(gpuA, 6, 100), &names.GPURowRemapPending, 0)),
		see(gpu{id: gpuA, xids: map[int64]int64{119: 6, 79: 1}, values: sick(gpuA, 0, 300).values}), boot("b1"),
		see(gpu{id: gpuA, xids: map[int64]int64{119: 6, 79: 1}, values: sick(gpuA, 0, 400).values}), away, boot("b2"),
		see(gpu{id: gpuA, xids: map[int64]int64{119: 0, 79: 0}, values: sick(gpuA, 0, 5).values}),
	}
	run := func(t *testing.T, kill func(step int) bool) (events []string) {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			b := d.boot(t, deviceSet, withHealth)
			defer func() { b.stop() }()
			for i, step := range course {
				happened := b.feed(step())
				events = append(events, healthEvents(append(happened, b.wait(15*time.Second)...))...)
				if kill(i) {
					old := b
					t.Cleanup(old.stop)
					d = &disk{values: maps.Clone(d.values)}
					b = d.boot(t, deviceSet, withHealth)
				}
			}
		})
		return events
	}
	want := run(t, func(int) bool { return false })
	require.Equal(t, []string{
		raised119, "raised: failed [xid_reset remap_pending] reset_gpu", "raised: degraded [remap_pending] reset_gpu", clearedOK,
		"raised: failed [xid_restart] reboot_node", clearedOK,
	}, want)
	for at := range course {
		assert.Equal(t, want, run(t, func(step int) bool { return step == at }), "killed after step %d", at)
	}
	assert.Equal(t, want, run(t, func(int) bool { return true }), "killed after every step")
}
