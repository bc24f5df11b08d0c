// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// newCase is a judge of three nodes with nothing reported, at a moment long after the
// start: chat has a pod on each node, wide has four on two of them.
func newCase() (*Judge, *bytes.Buffer, time.Time) {
	out := &bytes.Buffer{}
	j := New(Evidence{
		Recorder: newRecorder(), Ledger: ownership.NewLedger(), History: &history.History{}, Chronicle: &Chronicle{},
		AgentSince: func(string) time.Time { return time.Time{} }, XIDs: func() []claims.XID { return nil },
	}, NewVerdict(&Journal{Started: time.Now().Add(-time.Hour), Out: out}, 7))
	now := time.Now()
	born := now.Add(-time.Minute)
	for i, p := range []struct{ service, node string }{
		{"chat", "a"}, {"chat", "b"}, {"chat", "c"}, {"wide", "a"}, {"wide", "b"}, {"wide", "c"}, {"wide", "c"},
	} {
		id := string(rune('0' + i))
		j.History.Born(history.Life{Node: p.node, Service: p.service, UID: id, Devices: []string{id}, Started: born, From: born})
	}
	j.History.Recovered(born)
	return j, out, now
}

func evaluated(service string, at time.Time, partial float64, pods map[string]float64) *Evaluation {
	return &Evaluation{Service: service, At: at, Arrived: at, Partial: &partial, Pods: pods, values: map[string]float64{}}
}

func TestJudgePartial(t *testing.T) {
	three, four := map[string]float64{"reporting": 3}, map[string]float64{"reporting": 4}
	ago := func(j *Judge, place string, from time.Duration, now time.Time) {
		j.History.Disturb(place, now.Add(-from))
	}
	silent := func(j *Judge, node string, from time.Duration, now time.Time) {
		ago(j, node, from, now)
		j.History.Silence(node, true, now.Add(-from))
	}
	for name, tc := range map[string]struct {
		is      func(j *Judge, now time.Time)
		service string
		partial float64
		pods    map[string]float64
		finds   string
	}{
		"all is well":                              {service: "chat", pods: three},
		"partial, and all is well":                 {service: "chat", partial: 1, pods: three, finds: "VIOLATION of partial"},
		"a pod is missing, and all is well":        {service: "chat", pods: map[string]float64{"reporting": 2, "missing": 1}, finds: "VIOLATION of pods"},
		"a pod too much":                           {service: "chat", pods: four, finds: "VIOLATION of pods"},
		"a node is ill: one of three may miss":     {is: func(j *Judge, now time.Time) { ago(j, "a", time.Second, now) }, service: "chat", partial: 1},
		"a node is ill: or not":                    {is: func(j *Judge, now time.Time) { ago(j, "a", time.Second, now) }, service: "chat"},
		"a node is ill: one of four is not enough": {is: func(j *Judge, now time.Time) { ago(j, "a", time.Second, now) }, service: "wide", partial: 1, finds: "only 1 may be missing"},
		"a node is ill: two of four are enough":    {is: func(j *Judge, now time.Time) { ago(j, "c", time.Second, now) }, service: "wide", partial: 1},
		"a node is silent, not for long":           {is: func(j *Judge, now time.Time) { silent(j, "a", pace.Staleness, now) }, service: "chat"},
		"a node is silent for long":                {is: func(j *Judge, now time.Time) { silent(j, "a", time.Minute, now) }, service: "chat", partial: 1},
		"a node is silent for long, and not said":  {is: func(j *Judge, now time.Time) { silent(j, "a", 20*time.Second, now) }, service: "chat", finds: "is not reported as partial"},
		"one of four is silent":                    {is: func(j *Judge, now time.Time) { silent(j, "a", 20*time.Second, now) }, service: "wide"},
		"two of four are silent, and not said":     {is: func(j *Judge, now time.Time) { silent(j, "c", 20*time.Second, now) }, service: "wide", finds: "2 of its 4 pods are missing"},
		"the gateway starts":                       {is: func(j *Judge, now time.Time) { ago(j, history.Gateway, time.Second, now) }, service: "chat", partial: 1},
		"the machine stands still":                 {is: func(j *Judge, now time.Time) { j.History.Stall(now.Add(-time.Second), now) }, service: "chat", partial: 1},
		"a service that is not there":              {service: "other", partial: 1},
	} {
		t.Run(name, func(t *testing.T) {
			j, out, now := newCase()
			if tc.is != nil {
				tc.is(j, now)
			}
			e := evaluated(tc.service, now, tc.partial, tc.pods)
			j.evaluation(e)
			if tc.finds == "" {
				assert.Zero(t, j.verdict.Violations(), out.String())
				return
			}
			assert.Equal(t, 1, j.verdict.Violations(), out.String())
			assert.Contains(t, out.String(), tc.finds)
			assert.Contains(t, out.String(), "seed 7")
		})
	}
}

// A pod that was just placed may be missing, or not.
func TestJudgeYoungPods(t *testing.T) {
	j, out, now := newCase()
	for range 2 {
		j.History.Born(history.Life{Node: "a", Service: "chat", UID: "new", Started: now, From: now.Add(-2 * time.Second)})
	}
	j.evaluation(evaluated("chat", now, 1, map[string]float64{"reporting": 3, "missing": 2}))
	assert.Zero(t, j.verdict.Violations(), out.String())
	j.History.Recovered(now)
	j.evaluation(evaluated("chat", now.Add(pace.Interval), 1, map[string]float64{"reporting": 3, "missing": 2}))
	assert.Equal(t, 1, j.verdict.Violations(), "once all was found to be well they are as the others")
}

// A service that has pods is evaluated, whatever happens to them.
func TestJudgeSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		gap     time.Duration
		gateway bool // it was away meanwhile
		finds   int
	}{
		"in time": {gap: 3 * pace.Interval}, "too long": {gap: 5 * pace.Interval, finds: 1}, "a gateway that was away": {gap: 5 * pace.Interval, gateway: true},
	} {
		t.Run(name, func(t *testing.T) {
			j, out, now := newCase()
			whole := map[string]float64{"reporting": 3}
			for _, at := range []time.Time{now, now.Add(tc.gap)} {
				if tc.gateway {
					j.History.Disturb(history.Gateway, now.Add(pace.Interval))
					j.History.Recovered(now.Add(2 * pace.Interval))
				}
				e := evaluated("chat", at, 0, whole)
				j.evaluation(e)
			}
			assert.Equal(t, tc.finds, j.verdict.by["evaluations"], out.String())
		})
	}
}

// A violation is printed with all that is needed to see it again.
func TestVerdict(t *testing.T) {
	j, out, _ := newCase()
	j.verdict.Fault("exporter_down of a")
	for range maxPrinted + 5 {
		j.verdict.Violate("partial", "chat")
	}
	assert.Equal(t, maxPrinted+5, j.verdict.Violations())
	assert.Equal(t, maxPrinted, bytes.Count(out.Bytes(), []byte("VIOLATION of partial (seed 7, round 0): chat")))
	assert.Contains(t, out.String(), "exporter_down of a")
}

// What was reported over time and is not true, whatever was restarted meanwhile.
func TestJudgeClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		is    func(j *Judge, now time.Time)
		finds string
	}{
		"a state that was left and stands": {func(j *Judge, now time.Time) {
			j.Recorder.states = [][]claims.StatePoint{
				{{Service: "chat", Pod: "p", State: "reporting", At: now.Add(-time.Second), Value: 1}}, {{Service: "chat", Pod: "p", State: "warming", At: now, Value: 1}},
			}
		}, "VIOLATION of states"},
		"not frozen, by an agent that cannot know": {func(j *Judge, now time.Time) {
			j.History.Freeze("a", true, now.Add(-10*time.Second))
			j.AgentSince = func(node string) time.Time { return map[string]time.Time{"a": now.Add(-5 * time.Second)}[node] }
			j.Recorder.notFrozen = []claims.NotFrozen{{Node: "a", At: now}, {Node: "b", At: now}}
		}, "VIOLATION of frozen"},
		"an XID of minutes ago": {func(j *Judge, now time.Time) {
			j.XIDs = func() []claims.XID { return []claims.XID{{Device: "GPU-1", Code: "79", At: now.Add(-5 * time.Minute)}} }
			j.Recorder.order = []*Event{{Name: names.EventXID, Device: "GPU-1", Code: "79", At: now, Arrived: now}}
		}, "VIOLATION of xids"},
		"no longer partial, and it is": {func(j *Judge, now time.Time) {
			j.History.Silence("a", true, now.Add(-time.Minute))
			j.History.Disturb("a", now.Add(-time.Minute))
			j.History.Disturb(history.Gateway, now.Add(-time.Second))
			j.Recorder.order = []*Event{{Name: names.EventServicePartial, State: names.EventCleared, Key: "gpu.service.partial/c/n/chat", At: now, Arrived: now}}
		}, "VIOLATION of cleared"},
		"no longer partial, and whole": {func(j *Judge, now time.Time) {
			j.Recorder.order = []*Event{{Name: names.EventServicePartial, State: names.EventCleared, Key: "gpu.service.partial/c/n/chat", At: now, Arrived: now}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j, out, now := newCase()
			tc.is(j, now)
			for range 2 { // each is judged once
				j.claims(now.Add(time.Second))
			}
			if tc.finds == "" {
				assert.Zero(t, j.verdict.Violations(), out.String())
				return
			}
			assert.Equal(t, 1, j.verdict.Violations(), out.String())
			assert.Contains(t, out.String(), tc.finds)
		})
	}
}

// A device that is held is not free, whatever its kubelet's silence.
func TestJudgeFreeWhileTheKubeletHasNoPods(t *testing.T) {
	j, out, now := newCase()
	j.Nodes = []string{"a"}
	held := map[string]ownership.State{"GPU-1": {Node: "a", Share: 1, Owners: []ownership.Owner{{Namespace: fleet.Namespace, Pod: "p", Container: fleet.Container}}}}
	j.Ledger.Observe(now.Add(-time.Minute), now.Add(-time.Minute), held)
	j.History.Disturb("a", now.Add(-2*time.Second))
	j.History.Deafen("a", true, now.Add(-2*time.Second))
	free := ownership.Point{Metric: names.GPUAllocation.Name, Node: "a", Device: "GPU-1", Time: now, Arrived: now}
	j.Recorder.points = []ownership.Point{free}
	j.before(now.Add(time.Second))
	assert.Equal(t, 1, j.verdict.by["holders"], out.String())
	assert.Contains(t, out.String(), "it is not free")
}

// What was partial for a while and was not reported is a violation.
func TestJudgePartialEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		times, earlier  int
		raised, restart bool
		violations      int
	}{
		"raised": {times: 5, raised: true}, "not raised": {times: 5, violations: 1}, "a moment": {times: 2},
		"of the round before": {earlier: 5}, "the gateway was killed": {times: 5, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			j, out, now := newCase()
			for i := range tc.times {
				j.partials["chat"] = append(j.partials["chat"], now.Add(time.Duration(i+1)*time.Millisecond))
			}
			for range tc.earlier {
				j.partials["chat"] = append(j.partials["chat"], now.Add(-time.Second))
			}
			if tc.raised {
				j.Recorder.order = []*Event{{Name: names.EventServicePartial, State: names.EventRaised, Key: "gpu.service.partial/c/n/chat", Arrived: now.Add(time.Second)}}
			}
			if tc.restart {
				j.History.Disturb(history.Gateway, now)
			}
			j.PartialEvents(now)
			assert.Equal(t, tc.violations, j.verdict.Violations(), out.String())
			assert.Empty(t, j.partials, "each is judged once")
		})
	}
}
