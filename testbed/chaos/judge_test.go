// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// judgeWorld is a world of three nodes with nothing running, at a moment long
// after its start: chat has a pod on each node, wide has four on two of them.
func judgeWorld() (*world, *bytes.Buffer, time.Time) {
	out := &bytes.Buffer{}
	w := &world{Options: Options{Out: out, Seed: 7}, started: time.Now().Add(-time.Hour), evaluated: map[string]time.Time{}}
	w.verdict = verdict{w: w, by: map[string]int{}, kinds: map[string]*tally{}, partials: map[string][]time.Time{}, averages: map[string]int{}}
	now := time.Now()
	born := now.Add(-time.Minute)
	for i, p := range []struct{ service, node string }{
		{"chat", "a"}, {"chat", "b"}, {"chat", "c"}, {"wide", "a"}, {"wide", "b"}, {"wide", "c"}, {"wide", "c"},
	} {
		w.history.born(p.node, pod{name: p.service, uid: newUID(), service: p.service, started: born}, []string{string(rune('0' + i))}, born)
	}
	w.history.recovered(born)
	return w, out, now
}

func evaluated(service string, at time.Time, partial float64, pods map[string]float64) *evaluation {
	return &evaluation{service: service, at: at, arrived: at, partial: &partial, pods: pods, values: map[string]float64{}}
}

func TestJudgePartial(t *testing.T) {
	three, four := map[string]float64{"reporting": 3}, map[string]float64{"reporting": 4}
	ago := func(w *world, place string, from time.Duration, now time.Time) {
		w.history.disturbed = append(w.history.disturbed, span{what: place, from: now.Add(-from)})
	}
	silent := func(w *world, node string, from time.Duration, now time.Time) {
		ago(w, node, from, now)
		w.history.silent = append(w.history.silent, span{what: node, from: now.Add(-from)})
	}
	for name, tc := range map[string]struct {
		is      func(w *world, now time.Time)
		service string
		partial float64
		pods    map[string]float64
		finds   string
	}{
		"all is well":                              {service: "chat", pods: three},
		"partial, and all is well":                 {service: "chat", partial: 1, pods: three, finds: "VIOLATION of partial"},
		"a pod is missing, and all is well":        {service: "chat", pods: map[string]float64{"reporting": 2, "missing": 1}, finds: "VIOLATION of pods"},
		"a pod too much":                           {service: "chat", pods: four, finds: "VIOLATION of pods"},
		"a node is ill: one of three may miss":     {is: func(w *world, now time.Time) { ago(w, "a", time.Second, now) }, service: "chat", partial: 1},
		"a node is ill: or not":                    {is: func(w *world, now time.Time) { ago(w, "a", time.Second, now) }, service: "chat"},
		"a node is ill: one of four is not enough": {is: func(w *world, now time.Time) { ago(w, "a", time.Second, now) }, service: "wide", partial: 1, finds: "only 1 may be missing"},
		"a node is ill: two of four are enough":    {is: func(w *world, now time.Time) { ago(w, "c", time.Second, now) }, service: "wide", partial: 1},
		"a node is silent, not for long":           {is: func(w *world, now time.Time) { silent(w, "a", staleness, now) }, service: "chat"},
		"a node is silent for long":                {is: func(w *world, now time.Time) { silent(w, "a", time.Minute, now) }, service: "chat", partial: 1},
		"a node is silent for long, and not said":  {is: func(w *world, now time.Time) { silent(w, "a", 20*time.Second, now) }, service: "chat", finds: "is not reported as partial"},
		"one of four is silent":                    {is: func(w *world, now time.Time) { silent(w, "a", 20*time.Second, now) }, service: "wide"},
		"two of four are silent, and not said":     {is: func(w *world, now time.Time) { silent(w, "c", 20*time.Second, now) }, service: "wide", finds: "2 of its 4 pods are missing"},
		"the gateway starts":                       {is: func(w *world, now time.Time) { ago(w, gatewayPlace, time.Second, now) }, service: "chat", partial: 1},
		"the machine stands still":                 {is: func(w *world, now time.Time) { ago(w, machinePlace, time.Second, now) }, service: "chat", partial: 1},
		"a service that is not there":              {service: "other", partial: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, out, now := judgeWorld()
			if tc.is != nil {
				tc.is(w, now)
			}
			e := evaluated(tc.service, now, tc.partial, tc.pods)
			w.judgeEvaluation(e)
			if tc.finds == "" {
				assert.Zero(t, w.verdict.Violations(), out.String())
				return
			}
			assert.Equal(t, 1, w.verdict.Violations(), out.String())
			assert.Contains(t, out.String(), tc.finds)
			assert.Contains(t, out.String(), "seed 7")
		})
	}
}

// A pod that was just placed may be missing, or not.
func TestJudgeYoungPods(t *testing.T) {
	w, out, now := judgeWorld()
	for range 2 {
		w.history.born("a", pod{name: "new", uid: newUID(), service: "chat", started: now}, nil, now.Add(-2*time.Second))
	}
	w.judgeEvaluation(evaluated("chat", now, 1, map[string]float64{"reporting": 3, "missing": 2}))
	assert.Zero(t, w.verdict.Violations(), out.String())
	w.history.recovered(now)
	w.judgeEvaluation(evaluated("chat", now.Add(interval), 1, map[string]float64{"reporting": 3, "missing": 2}))
	assert.Equal(t, 1, w.verdict.Violations(), "once all was found to be well they are as the others")
}

// A service that has pods is evaluated, whatever happens to them.
func TestJudgeSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		gap     time.Duration
		gateway bool // it was away meanwhile
		finds   int
	}{
		"in time": {gap: 3 * interval}, "too long": {gap: 5 * interval, finds: 1}, "a gateway that was away": {gap: 5 * interval, gateway: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, out, now := judgeWorld()
			whole := map[string]float64{"reporting": 3}
			for _, at := range []time.Time{now, now.Add(tc.gap)} {
				if tc.gateway {
					w.history.disturbed = append(w.history.disturbed, span{gatewayPlace, now.Add(interval), now.Add(2 * interval)})
				}
				e := evaluated("chat", at, 0, whole)
				w.judgeEvaluation(e)
			}
			assert.Equal(t, tc.finds, w.verdict.by["evaluations"], out.String())
		})
	}
}

// What is touched and what is silent, and the input of the judge of owners.
func TestHistory(t *testing.T) {
	h := &history{}
	start := time.Now()
	h.disturb("a")
	h.silence("a", true)
	h.deafen("b", true)
	h.disturb("a") // it is already
	assert.True(t, h.wasDisturbed("a", start, time.Now()))
	assert.False(t, h.wasDisturbed("b", start, time.Now()))
	assert.True(t, h.wasSilent("a", time.Now(), time.Now()))
	assert.False(t, h.wasSilent("a", start.Add(-time.Second), time.Now()), "not from before it began")
	assert.Len(t, h.silences([]string{"a", "b"}, true), 2)
	assert.Len(t, h.silences([]string{"a", "b"}, false), 1)
	h.silence("a", false)
	h.deafen("b", false)
	h.recovered(time.Now())
	later := time.Now().Add(time.Second)
	assert.False(t, h.wasSilent("a", later, later))
	assert.False(t, h.wasDisturbed("a", later, later))
	h.stall(later, later)
	assert.True(t, h.wasDisturbed("a", later, later), "the machine is every place")
	assert.Len(t, h.silences([]string{"a", "b"}, true), 4)
	h.stall(later, later.Add(2*time.Second))
	h.stall(later.Add(time.Second), later.Add(3*time.Second))
	assert.Equal(t, 3*time.Second, h.Stalled(), "a second counts once")
}

func TestVerdictPrintsWhatIsNeededToSeeItAgain(t *testing.T) {
	w, out, _ := judgeWorld()
	w.verdict.fault("exporter_down of a")
	for range maxPrinted + 5 {
		w.verdict.violate("partial", "chat")
	}
	assert.Equal(t, maxPrinted+5, w.verdict.Violations())
	assert.Equal(t, maxPrinted, bytes.Count(out.Bytes(), []byte("VIOLATION of partial (seed 7, round 0): chat")))
	assert.Contains(t, out.String(), "exporter_down of a")
}

func TestMost(t *testing.T) {
	for what, first := range map[string]float64{"goroutines": 150, "files": 40, "heap": 20 * mib, "otelcol_gpu_events_subjects": 10, "otelcol_gpu_pod_series": 400} {
		assert.Less(t, first, most(what, first))
		// One more with each of an hour's rounds is too much, and so is a third of a
		// MiB of memory.
		leak := 150.
		if what == "heap" {
			leak = 150 * mib / 2
		}
		if what != "otelcol_gpu_pod_series" {
			assert.Greater(t, first+leak, most(what, first), what)
		}
	}
}

// What was reported over time and is not true, whatever was restarted meanwhile.
func TestJudgeClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		is    func(w *world, now time.Time)
		finds string
	}{
		"a state that was left and stands": {func(w *world, now time.Time) {
			w.recorder.states = [][]claims.StatePoint{
				{{Service: "chat", Pod: "p", State: "reporting", At: now.Add(-time.Second), Value: 1}}, {{Service: "chat", Pod: "p", State: "warming", At: now, Value: 1}},
			}
		}, "VIOLATION of states"},
		"not frozen, by an agent that cannot know": {func(w *world, now time.Time) {
			w.history.frozen = []span{{what: "a", from: now.Add(-10 * time.Second)}}
			w.nodes = nodesNamed("a")
			w.nodes[0].agent = process.Adopt(&collector.Collector{}, now.Add(-5*time.Second))
			w.recorder.notFrozen = []claims.NotFrozen{{Node: "a", At: now}, {Node: "b", At: now}}
		}, "VIOLATION of frozen"},
		"an XID of minutes ago": {func(w *world, now time.Time) {
			w.reported = []claims.XID{{Device: "GPU-1", Code: "79", At: now.Add(-5 * time.Minute)}}
			w.recorder.order = []*event{{name: names.EventXID, device: "GPU-1", code: "79", at: now, arrived: now}}
		}, "VIOLATION of xids"},
		"no longer partial, and it is": {func(w *world, now time.Time) {
			w.history.silent = []span{{what: "a", from: now.Add(-time.Minute)}}
			w.history.disturbed = []span{{what: "a", from: now.Add(-time.Minute)}, {what: gatewayPlace, from: now.Add(-time.Second)}}
			w.recorder.order = []*event{{name: names.EventServicePartial, state: names.EventCleared, key: "gpu.service.partial/c/n/chat", at: now, arrived: now}}
		}, "VIOLATION of cleared"},
		"no longer partial, and whole": {func(w *world, now time.Time) {
			w.recorder.order = []*event{{name: names.EventServicePartial, state: names.EventCleared, key: "gpu.service.partial/c/n/chat", at: now, arrived: now}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, out, now := judgeWorld()
			w.recorder = &recorder{events: map[string]*event{}}
			tc.is(w, now)
			for range 2 { // each is judged once
				w.judgeClaims(now.Add(time.Second))
			}
			if tc.finds == "" {
				assert.Zero(t, w.verdict.Violations(), out.String())
				return
			}
			assert.Equal(t, 1, w.verdict.Violations(), out.String())
			assert.Contains(t, out.String(), tc.finds)
		})
	}
}

// A device that is held is not free, whatever its kubelet's silence.
func TestJudgeFreeWhileTheKubeletHasNoPods(t *testing.T) {
	w, out, now := judgeWorld()
	w.ledger = ownership.NewLedger()
	w.nodes = nodesNamed("a")
	held := map[string]ownership.State{"GPU-1": {Node: "a", Share: 1, Owners: []ownership.Owner{{Namespace: namespace, Pod: "p", Container: container}}}}
	w.ledger.Observe(now.Add(-time.Minute), now.Add(-time.Minute), held)
	w.history.disturbed = []span{{what: "a", from: now.Add(-2 * time.Second)}}
	w.history.deaf = []span{{what: "a", from: now.Add(-2 * time.Second)}}
	free := ownership.Point{Metric: names.GPUAllocation.Name, Node: "a", Device: "GPU-1", Time: now, Arrived: now}
	w.recorder = &recorder{events: map[string]*event{}, points: []ownership.Point{free}}
	w.judgeBefore(now.Add(time.Second))
	assert.Equal(t, 1, w.verdict.by["holders"], out.String())
	assert.Contains(t, out.String(), "it is not free")
}
