// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package correctness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
)

// summaries takes what a gateway sends on, and keeps the newest summary of each
// service.
type summaries struct {
	*otlp.Server

	mu     sync.Mutex
	means  map[string]reading
	states map[string]reading // 1: partial
}

// reading is a point.
type reading struct {
	at    time.Time
	value float64
	ended bool
}

func newSummaries() (*summaries, error) {
	s := &summaries{means: map[string]reading{}, states: map[string]reading{}}
	var err error
	s.Server, err = otlp.Serve("127.0.0.1:0", otlp.Handler{Metrics: s.take})
	return s, err
}

// take keeps what a request has.
func (s *summaries) take(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		service, _ := rm.Resource().Attributes().Get(names.ServiceName)
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				switch metric.Name() {
				case names.ServiceUtilization.Name:
					keep(s.means, service.Str(), metric.Gauge().DataPoints())
				case names.ServicePartial.Name:
					keep(s.states, service.Str(), metric.Sum().DataPoints())
				}
			}
		}
	}
	return nil
}

func keep(into map[string]reading, service string, points pmetric.NumberDataPointSlice) {
	for _, dp := range points.All() {
		r := reading{at: dp.Timestamp().AsTime(), value: dp.DoubleValue(), ended: dp.Flags().NoRecordedValue()}
		if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
			r.value = float64(dp.IntValue())
		}
		if !r.at.Before(into[service].at) {
			into[service] = r
		}
	}
}

// ask returns the summary's answer. One that was not renewed for a staleness is no
// answer: then the gateway is away.
func (s *summaries) ask(_ context.Context, at time.Time) (map[string]answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]answer{}
	now := func(r reading) bool { return !r.ended && at.Sub(r.at) <= staleness }
	for service, mean := range s.means {
		state := s.states[service]
		out[service] = answer{mean: mean.value, there: now(mean), partial: now(state) && state.value == 1}
	}
	for service, state := range s.states {
		if _, ok := out[service]; !ok {
			out[service] = answer{partial: now(state) && state.value == 1}
		}
	}
	return out, nil
}

// vector is what an expression gives at a moment, by service.
func vector(ctx context.Context, server, expression string, at time.Time, label string) (map[string]float64, error) {
	query := neturl.Values{"query": {expression}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/query?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var parsed struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&parsed); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", expression, answer.Status, parsed.Error)
	}
	out := map[string]float64{}
	for _, r := range parsed.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		out[r.Metric[label]] = value
	}
	return out, nil
}
