// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package correctness

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

func TestJudgeMean(t *testing.T) {
	for name, test := range map[string]struct {
		truth  float64
		there  bool
		answer answer
		want   ruling
	}{
		"the truth":              {0.3, true, answer{mean: 0.3, there: true}, right},
		"nearly":                 {0.3, true, answer{mean: 0.3049, there: true}, right},
		"a percentage":           {0.3, true, answer{mean: 30, there: true}, wrong},
		"a point off":            {0.3, true, answer{mean: 0.31, there: true}, wrong},
		"a point below":          {0.3, true, answer{mean: 0.29, there: true}, wrong},
		"NaN":                    {0.3, true, answer{mean: math.NaN(), there: true}, wrong},
		"blank":                  {0.3, true, answer{mean: blankPercent / 100, there: true}, wrong},
		"nothing":                {0.3, true, answer{}, mute},
		"0 where there is none":  {0, false, answer{there: true}, wrong},
		"none where there is 0":  {0, true, answer{}, mute},
		"none where is none":     {0, false, answer{}, right},
		"partial is no mean yet": {0.3, true, answer{partial: true}, mute},
	} {
		assert.Equal(t, test.want, judgeMean(test.truth, test.there, test.answer), name)
	}
}

// A contender that keeps what was, one that reports nothing and one that is right are
// distinguished in the rows.
func TestProtocolRows(t *testing.T) {
	s := &gpuService{name: "s", phases: []phase{{fault: "load", span: span{0, 10 * time.Second}}, {fault: "silence", span: span{10 * time.Second, 20 * time.Second}}}}
	for i := range 2 {
		p := s.pod(level{0, 0.8}, level{5 * time.Second, 0.2})
		if i == 0 {
			p.gpus[0].silent = span{10 * time.Second, ever}
		}
	}
	p := newProtocol()
	for at := time.Duration(0); at < 25*time.Second; at += time.Second {
		mean, there := s.truth(at)
		p.add(s, at, "good", answer{mean: mean, there: there, partial: at >= 12*time.Second})
		p.add(s, at, "old", answer{mean: 0.8, there: true})
		p.add(s, at, "mute", answer{})
	}
	rows := map[string]frame.Figures{}
	for _, n := range p.rows([]string{"good", "old", "mute", "absent"}, map[string]bool{"good": true}) {
		require.NotContains(t, rows, n.Row)
		rows[n.Row] = n.Figures
	}
	check := func(row string, good, old, mute float64) {
		require.Contains(t, rows, row)
		for name, want := range map[string]float64{"good": good, "old": old, "mute": mute, "absent": math.NaN()} {
			if math.IsNaN(want) {
				assert.True(t, math.IsNaN(rows[row][name]), "%s: %s: %v", row, name, rows[row][name])
			} else {
				assert.InDelta(t, want, rows[row][name], 1e-9, "%s: %s", row, name)
			}
		}
	}
	none := math.NaN()
	check("**All faults alike**: right, % of answers", 100, 25, 0)
	check("**All faults alike**: wrong, %", 0, 75, 0)
	check("**All faults alike**: no answer though there is one, %", 0, 0, 100)
	check("**All faults**: reports partial while it is, %", 80, none, none)
	check("**All faults**: reports partial while it is not, % of answers", 0, none, none)
	check("**Not right for, s**: load", 0, 5, 10)
	check("**Not right for, s**: silence", 0, 10, 10)
	check("**Off by, points**: load", 0, 30, none)
	check("**Off by, points**: silence", 0, 60, none)
}

// The script's truth holds at moments that matter.
func TestScript(t *testing.T) {
	length := leastPhase
	services, restart, end := script(length)
	assert.Equal(t, fleetSettled+2*length, restart)
	assert.Equal(t, restart+restartPhase, end)
	by := map[string]*gpuService{}
	for _, s := range services {
		by[s.name] = s
		for at := fleetSettled; at < end; at += cadence / 3 {
			_, ok := s.phaseAt(at)
			assert.True(t, ok || at >= restart, "%s at %v", s.name, at)
		}
	}
	first, second := fleetSettled, fleetSettled+length
	for _, test := range []struct {
		service string
		at      time.Duration
		mean    float64 // NaN: none
		partial bool
	}{
		{"step", first - 1, 0.30, false},
		{"step", first, 0.80, false},
		{"step", second, 0.40, false},
		{"chat", first, 0.20, false},
		{"chat", second, 0.60, false},
		{"embed", first - 1, 0.80, false},
		{"embed", first, 0.30, true},
		{"embed", second, math.NaN(), true},
		{"rank", first - 1, (0.9 + 0.8 + 3*0.3) / 5, false},
		{"rank", first, (0.8 + 3*0.3) / 4, false},
		{"rank", second, 0.30, false},
		{"rank", second + settling, 0.30, false},
		{"scale", first, 0.85, false},
		{"scale", first + settling, 0.85, false},
		{"scale", second, 0.85, false},
		{"mixed", first, (0.9 + 3*0.3) / 4, false},
		{"mixed", second, (0.4 + 3*0.3) / 4, false},
		{"mixed", restart, (0.4 + 3*0.3) / 4, false},
	} {
		mean, there := by[test.service].truth(test.at)
		assert.Equal(t, !math.IsNaN(test.mean), there, "%s at %v", test.service, test.at)
		if there {
			assert.InDelta(t, test.mean, mean, 1e-9, "%s at %v", test.service, test.at)
		}
		assert.Equal(t, test.partial, by[test.service].partial(test.at), "%s at %v", test.service, test.at)
	}
}

// A value that is kept is wrong at each fault of what is seen: else nothing could
// fail there.
func TestScriptCanBeFailed(t *testing.T) {
	services, restart, _ := script(leastPhase)
	for _, s := range services {
		for _, ph := range s.phases {
			if ph.from == restart || s.name == "mixed" && ph.from == fleetSettled || s.name == "scale" {
				continue // a fault of a receiver, of a counter, or of what is reported
			}
			before, had := s.truth(ph.from - 1)
			after, has := s.truth(ph.from)
			assert.True(t, had, "%s: %s", s.name, ph.fault)
			assert.True(t, !has || math.Abs(before-after) > 2*tolerance, "%s: %s", s.name, ph.fault)
		}
	}
}

// Every contender has a column, and every column a contender.
func TestCorrectnessEntry(t *testing.T) {
	assert.NotContains(t, Entry.Text, "%!")
	var columns, contenders []string
	for _, c := range correctnessColumns {
		columns = append(columns, c.Key)
	}
	for _, c := range (&stage{summaries: &summaries{}}).contenders() {
		contenders = append(contenders, c.name)
	}
	assert.Equal(t, columns, contenders)
}

// Two devices of a pod are distinguished by the points alone: Prometheus has no other
// labels of them.
func TestDevicesAreSeriesOfTheirOwn(t *testing.T) {
	services, _, _ := script(leastPhase)
	seen := map[string]bool{}
	for _, s := range services {
		for _, p := range s.pods {
			for _, rm := range p.batch(fleetSettled+settling, time.Now()).ResourceMetrics().All() {
				for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
					if metric.Name() == names.GPUUtilization.Name {
						id, _ := metric.Gauge().DataPoints().At(0).Attributes().Get(names.HwID)
						assert.False(t, seen[id.Str()], id.Str())
						seen[id.Str()] = true
					}
				}
			}
		}
	}
	assert.Greater(t, len(seen), len(services))
}

// The pages and the batches contain the same.
func TestPagesAndBatches(t *testing.T) {
	second := span{fleetSettled + leastPhase, fleetSettled + 2*leastPhase}
	services, _, end := script(leastPhase)
	for _, s := range services {
		for _, p := range s.pods {
			for _, at := range []time.Duration{0, fleetSettled, fleetSettled + settling, second.from, second.from + settling, end - 1} {
				_, readable := p.value(at)
				text, up := p.page(at)
				samples := 0
				for _, rm := range p.batch(at, time.Now()).ResourceMetrics().All() {
					for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
						if metric.Name() == names.GPUUtilization.Name {
							samples++
							value := metric.Gauge().DataPoints().At(0).DoubleValue()
							assert.Equal(t, p.gpus[0].blank.has(at), value > 1, "%s at %v", p.name, at)
						}
					}
				}
				lines := 0
				for i := range text {
					if text[i] == '{' {
						lines++
					}
				}
				if p.life.has(at) && readable {
					assert.True(t, up && samples > 0, "%s at %v", p.name, at)
				}
				assert.Equal(t, samples, lines, "%s at %v", p.name, at)
				assert.Equal(t, up, samples > 0 || !p.life.has(at) && !(p.lost && at >= p.life.to), "%s at %v", p.name, at)
			}
		}
	}
}

// sendSummary sends a request as a gateway sends it.
func sendSummary(t *testing.T, s *summaries, at time.Time, mean float64, ended bool) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.ServiceName, "chat")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	point := func(metric names.Metric) pmetric.NumberDataPoint {
		dp := metric.Init(metrics.AppendEmpty()).AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
		return dp
	}
	dp := point(names.ServiceUtilization)
	if dp.SetDoubleValue(mean); ended {
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	point(names.ServicePartial).SetIntValue(1)
	require.NoError(t, s.take(t.Context(), md))
}

// The newest point counts until it is stale or its series ends.
func TestSummariesAsk(t *testing.T) {
	s, err := newSummaries()
	require.NoError(t, err)
	defer s.Close()
	at := time.Now()
	ask := func(at time.Time) answer {
		answers, err := s.ask(t.Context(), at)
		require.NoError(t, err)
		return answers["chat"]
	}
	assert.Equal(t, answer{}, ask(at))
	sendSummary(t, s, at, 0.4, false)
	sendSummary(t, s, at.Add(-cadence), 0.9, false) // late
	assert.Equal(t, answer{0.4, true, true}, ask(at))
	assert.False(t, ask(at.Add(staleness+1)).there)
	sendSummary(t, s, at.Add(cadence), 0, true)
	got := ask(at.Add(cadence))
	assert.False(t, got.there)
	assert.True(t, got.partial)
}

func TestVector(t *testing.T) {
	body := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"service_name":"chat"},"value":[1,"0.25"]},{"metric":{"service_name":"step"},"value":[1,"NaN"]}]}}`
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "avg(x)", r.URL.Query().Get("query"))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	got, err := vector(t.Context(), server.URL, "avg(x)", time.Now(), "service_name")
	require.NoError(t, err)
	assert.Equal(t, 0.25, got["chat"])
	assert.True(t, math.IsNaN(got["step"]))
	status, body = http.StatusBadRequest, `{"status":"error","error":"parse error"}`
	_, err = vector(t.Context(), server.URL, "avg(x)", time.Now(), "service_name")
	assert.ErrorContains(t, err, "parse error")
}

// Contenders that never report anything have not been compared.
func TestWatchAnswersNeedsAnswers(t *testing.T) {
	services := []*gpuService{{name: "s", phases: []phase{{fault: "f", span: span{0, ever}}}}}
	services[0].pod(level{0, 0.5})
	silent := contender{"silent", func(context.Context, time.Time) (map[string]answer, error) { return nil, errors.New("away") }}
	_, err := watchAnswers(t.Context(), time.Now().Add(-fleetSettled), fleetSettled+2*askEvery, services, []contender{silent})
	assert.ErrorContains(t, err, "silent answered nothing: away")
}

// What is refused is counted, and fails the comparison.
func TestReceiverCountsWhatIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too old", http.StatusBadRequest) }))
	defer server.Close()
	assert.ErrorContains(t, post(t.Context(), server.URL, nil), "too old")
	r := newReceiver("gateway")
	a := &agents{receivers: []*receiver{r}}
	assert.NoError(t, a.taken())
	r.failed(errors.New("too old"))
	assert.ErrorContains(t, a.taken(), "gateway refused 1 batches: too old")
	a.forgive()
	assert.NoError(t, a.taken())
	a.batches.Add(100)
	assert.NoError(t, a.punctual())
	a.tardy.Add(3)
	assert.Error(t, a.punctual())
}
