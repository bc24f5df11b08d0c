// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// demoEngines asks a running demo about its inference engines.
type demoEngines struct {
	console, control, store string
	meter                   []reading
	far                     string // what was not near the truth last
}

// reading is the energy that the devices of llama had taken at a time.
type reading struct {
	at     time.Time
	joules float64
}

// enginesOf finds the addresses in what the demo printed.
func enginesOf(t *testing.T, printed string) *demoEngines {
	t.Helper()
	at := func(before string) string {
		found := regexp.MustCompile(regexp.QuoteMeta(before) + `(http://localhost:[0-9]+)`).FindStringSubmatch(printed)
		require.Len(t, found, 2, before)
		return found[1]
	}
	return &demoEngines{console: at("the console: "), control: at("truth and faults: "), store: at("Prometheus API for Grafana: ")}
}

// read decodes the answer of a URL.
func read(t *testing.T, address string, into any) {
	t.Helper()
	status, body, err := get(t.Context(), address)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s: %s", address, body)
	require.NoError(t, json.Unmarshal(body, into))
}

// measure notes the energy of the devices of llama.
func (d *demoEngines) measure(t *testing.T) {
	var truth gpusim.Truth
	read(t, d.control+"/truth", &truth)
	r := reading{at: truth.Time}
	for _, n := range truth.Nodes {
		for _, device := range n.Devices {
			if device.Service == "llama" {
				r.joules += device.EnergyMilliJoule / 1000
			}
		}
	}
	d.meter = append(d.meter, r)
}

// joules is the energy of llama in a time, false if it was not measured then.
func (d *demoEngines) joules(from, to time.Time) (joules float64, ok bool) {
	value := func(at time.Time) (float64, bool) {
		for i := 1; i < len(d.meter); i++ {
			if a, b := d.meter[i-1], d.meter[i]; !at.Before(a.at) && at.Before(b.at) {
				return a.joules + (b.joules-a.joules)*at.Sub(a.at).Seconds()/b.at.Sub(a.at).Seconds(), true
			}
		}
		return 0, false
	}
	begin, ok := value(from)
	end, ok2 := value(to)
	return end - begin, ok && ok2
}

// inferenceFigures are those of a service in the console's API; nil: the figure is null.
type inferenceFigures struct {
	Engines            []string   `json:"engines"`
	Servers            *answering `json:"servers"`
	TimeToFirstToken   *float64   `json:"time_to_first_token"`
	TimePerOutputToken *float64   `json:"time_per_output_token"`
	InterTokenLatency  *float64   `json:"inter_token_latency"`
	RequestDuration    *float64   `json:"request_duration"`
	OutputTokens       *float64   `json:"output_tokens"`
	Waiting            *float64   `json:"waiting"`
	Running            *float64   `json:"running"`
	KVCache            *float64   `json:"kv_cache"`
	TokensPerJoule     *float64   `json:"tokens_per_joule"`
	Lacking            []lacking  `json:"lacking"`
}

// answering are the servers that answered their last scrape, of all.
type answering struct {
	Up int `json:"up"`
	Of int `json:"of"`
}

// lacking is why a figure is null.
type lacking struct {
	Figure string  `json:"figure"`
	Engine *string `json:"engine"`
	Reason string  `json:"reason"`
}

// shown waits for what the console shows of a service to be as wanted, and returns of
// when that is.
func (d *demoEngines) shown(t *testing.T, service, what string, ok func(*inferenceFigures, time.Time) bool) (*inferenceFigures, time.Time) {
	t.Helper()
	type shown struct {
		Freshness struct {
			EvaluatedAt time.Time `json:"evaluated_at"`
		} `json:"freshness"`
		Service struct{ Inference *inferenceFigures } `json:"service"`
	}
	var answer shown
	if !assert.Eventually(t, func() bool {
		d.measure(t)
		answer = shown{}
		status, body, err := get(t.Context(), d.console+"/api/v1/service?namespace=inference&service="+service)
		return err == nil && status == http.StatusOK && json.Unmarshal(body, &answer) == nil && answer.Service.Inference != nil &&
			ok(answer.Service.Inference, answer.Freshness.EvaluatedAt)
	}, patience, 500*time.Millisecond, what) {
		text, _ := json.Marshal(answer.Service.Inference)
		require.FailNow(t, what, "%s %s", d.far, text)
	}
	return answer.Service.Inference, answer.Freshness.EvaluatedAt
}

// last is the last sample of each pod's series that a query finds.
func (d *demoEngines) last(t *testing.T, query string) map[string]model.SamplePair {
	t.Helper()
	var answer struct{ Data struct{ Result model.Matrix } }
	read(t, d.store+"/api/v1/query?query="+url.QueryEscape(query+"[1m]"), &answer)
	out := map[string]model.SamplePair{}
	for _, s := range answer.Data.Result {
		pod := string(s.Metric["k8s_pod_name"])
		require.NotContains(t, out, pod, "%s is one series", query)
		out[pod] = s.Values[len(s.Values)-1]
	}
	return out
}

// truth is what the engines of llama served in a time.
func (d *demoEngines) truth(t *testing.T, from, to time.Time) (out gpusim.RequestsTruth) {
	t.Helper()
	q := url.Values{"namespace": {"inference"}, "service": {"llama"}, "to": {to.Format(time.RFC3339Nano)}}
	if !from.IsZero() {
		q.Set("from", from.Format(time.RFC3339Nano))
	}
	read(t, d.control+"/truth/requests?"+q.Encode(), &out)
	return out
}

// fault starts one and returns its id, or ends it.
func (d *demoEngines) fault(t *testing.T, f m) (id string) {
	t.Helper()
	body, err := json.Marshal(f)
	require.NoError(t, err)
	answer, err := http.Post(d.control+"/fault", "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Less(t, answer.StatusCode, 300)
	var status gpusim.FaultStatus
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&status))
	return status.ID
}

// counter is what a counter of a vLLM counts.
type counter struct {
	query string
	of    func(gpusim.PodRequests) int
}

var counters = []counter{
	{`inference_server_tokens_total{service_name="llama",inference_token_type="output"}`, func(p gpusim.PodRequests) int { return p.OutputTokens }},
	{`inference_server_tokens_total{service_name="llama",inference_token_type="input"}`, func(p gpusim.PodRequests) int { return p.InputTokens }},
	{`gen_ai_server_time_to_first_token_seconds_count{service_name="llama"}`, func(p gpusim.PodRequests) int { return p.FirstTokens }},
}

// counted expects the counters of a pod to be what its engine did since it started: no
// less than when the scrape began, and no more than by now.
func (d *demoEngines) counted(t *testing.T, pod string, since time.Time) {
	t.Helper()
	for _, c := range counters {
		all := d.last(t, c.query)
		sample, ok := all[pod]
		require.True(t, ok, "%s of %s: %v", c.query, pod, all)
		of := func(to time.Time) float64 {
			truth := d.truth(t, since, to)
			i := slices.IndexFunc(truth.Pods, func(p gpusim.PodRequests) bool { return p.Pod == pod })
			require.GreaterOrEqual(t, i, 0)
			return float64(c.of(truth.Pods[i]))
		}
		least, most := of(sample.Timestamp.Time()), of(time.Now())
		assert.Positive(t, least)
		assert.GreaterOrEqual(t, float64(sample.Value), least, "%s of %s", c.query, pod)
		assert.LessOrEqual(t, float64(sample.Value), most, "%s of %s", c.query, pod)
	}
}

// judge: the figures of the engines are what they served; one with a missing page takes
// them away, and the console names it; after its restart it counts from zero.
func (d *demoEngines) judge(t *testing.T) {
	t.Helper()
	near := func(name string, want, got float64) bool {
		ok := math.Abs(got/want-1) <= 0.05
		if !ok {
			d.far = fmt.Sprintf("%s: %v, in truth %v", name, got, want)
		}
		return ok
	}
	// A reading more or less is in it: of the two seconds between them, at one minute.
	llama, at := d.shown(t, "llama", "every figure of vLLM, tokens as in truth", func(i *inferenceFigures, at time.Time) bool {
		if i.Servers == nil || *i.Servers != (answering{Up: 3, Of: 3}) || i.TimeToFirstToken == nil || i.TimePerOutputToken == nil ||
			i.InterTokenLatency == nil || i.RequestDuration == nil || i.OutputTokens == nil || i.Waiting == nil || i.Running == nil || i.KVCache == nil || i.TokensPerJoule == nil {
			return false
		}
		from := at.Add(-time.Minute)
		tokens := float64(d.truth(t, from, at).OutputTokens)
		joules, measured := d.joules(from, at)
		return near("tokens", tokens/60, *i.OutputTokens) && measured && near("tokens per joule", tokens/joules, *i.TokensPerJoule)
	})
	assert.Equal(t, []string{"vllm"}, llama.Engines)
	assert.Empty(t, llama.Lacking)
	for _, pod := range []string{"llama-6b8d5c9f7d-k2x9p", "llama-6b8d5c9f7d-m7wq4", "llama-6b8d5c9f7d-z4j6c"} {
		d.counted(t, pod, time.Time{})
	}
	vector, err := instant(t.Context(), d.store, `max(min_over_time(timestamp(inference_server_up{service_name="llama"})[5m:1s]))`)
	require.NoError(t, err)
	require.Len(t, vector, 1)
	truth := d.truth(t, time.UnixMilli(int64(vector[0].Value*1000)), at)
	for name, f := range map[string]struct {
		shown *float64
		true  float64
	}{
		"gen_ai_server_time_to_first_token_seconds":    {llama.TimeToFirstToken, truth.FirstToken.P95},
		"gen_ai_server_time_per_output_token_seconds":  {llama.TimePerOutputToken, truth.PerOutputToken.P95},
		"inference_server_inter_token_latency_seconds": {llama.InterTokenLatency, truth.InterToken.P95},
		"gen_ai_server_request_duration_seconds":       {llama.RequestDuration, truth.Duration.P95},
	} {
		d.inBucket(t, name, *f.shown, f.true)
	}

	// What TGI cannot have is null, and the reason is TGI's.
	whisper, _ := d.shown(t, "whisper", "output tokens of TGI", func(i *inferenceFigures, _ time.Time) bool { return i.OutputTokens != nil })
	assert.Equal(t, []string{"tgi"}, whisper.Engines)
	assert.Nil(t, whisper.TimeToFirstToken)
	assert.True(t, slices.ContainsFunc(whisper.Lacking, func(l lacking) bool {
		return l.Figure == "time_to_first_token" && l.Engine != nil && *l.Engine == "tgi" && l.Reason != ""
	}), whisper.Lacking)

	const restarted = "llama-6b8d5c9f7d-m7wq4"
	fault := d.fault(t, m{"node": "gpu-node-b", "kind": "engine_restart", "pod": m{"namespace": "inference", "name": restarted}, "for": "10m"})
	since := time.Now()
	silent, _ := d.shown(t, "llama", "one page is missing", func(i *inferenceFigures, _ time.Time) bool {
		return i.Servers != nil && *i.Servers == answering{Up: 2, Of: 3} && i.OutputTokens == nil
	})
	for _, l := range silent.Lacking {
		if l.Engine == nil {
			assert.Contains(t, l.Reason, "1 of 3 inference servers did not answer", l.Figure)
		}
	}
	assert.NotEmpty(t, silent.Lacking)
	d.fault(t, m{"id": fault, "end": true})
	d.shown(t, "llama", "all pages again", func(i *inferenceFigures, _ time.Time) bool {
		return i.Servers != nil && *i.Servers == answering{Up: 3, Of: 3} && i.OutputTokens != nil && i.Waiting != nil && i.TimeToFirstToken != nil
	})
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(counters, func(c counter) bool {
			last := d.last(t, c.query)[restarted]
			return !last.Timestamp.Time().After(since) || last.Value == 0
		})
	}, patience, 500*time.Millisecond, "%s counts again", restarted)
	d.counted(t, restarted, since)

	// What the picker counts is beside it, and not in it.
	vector, err = instant(t.Context(), d.store, `sum(inference_gateway_requests_finished_total{service_name="llama-epp"})`)
	require.NoError(t, err)
	require.Len(t, vector, 1)
	assert.Positive(t, float64(vector[0].Value))
}

// inBucket expects a quantile in the bucket that has the true one, or, where that is next
// to a bound, in the bucket beyond it.
func (d *demoEngines) inBucket(t *testing.T, histogram string, shown, truth float64) {
	t.Helper()
	vector, err := instant(t.Context(), d.store, fmt.Sprintf(`group by (le) (%s_bucket{service_name="llama"})`, histogram))
	require.NoError(t, err)
	lower, upper := 0.0, math.Inf(1)
	for _, s := range vector {
		bound, err := strconv.ParseFloat(string(s.Metric["le"]), 64)
		require.NoError(t, err)
		if bound < 0.97*truth {
			lower = max(lower, bound)
		}
		if bound >= 1.03*truth {
			upper = min(upper, bound)
		}
	}
	assert.Greater(t, len(vector), 5, histogram)
	assert.GreaterOrEqual(t, shown, lower, "%s: %v in truth", histogram, truth)
	assert.LessOrEqual(t, shown, upper, "%s: %v in truth", histogram, truth)
}
