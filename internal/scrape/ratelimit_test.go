// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// limited is acme's exporter, with a limit of requests.
func limited() *Exporter {
	e := acme
	e.Remedies = map[fetch.Outcome]string{fetch.RateLimited: "scrape it once"}
	return &e
}

// TestRateLimited: a scrape that the exporter refuses because of others is made once more
// within the interval. What is lost then is one scrape, and the exporter counts as down
// only after another.
func TestRateLimited(t *testing.T) {
	const busy = http.StatusTooManyRequests
	for name, c := range map[string]struct {
		codes  []int
		plain  bool // an exporter without a limit
		ups    []int64
		counts map[string]int64
		asked  int
	}{
		"once":             {[]int{200, busy}, false, []int64{1, 1, 1}, map[string]int64{"ok": 3, "rate_limited": 1}, 4},
		"a whole scrape":   {[]int{200, busy, busy}, false, []int64{1, 1, 1}, map[string]int64{"ok": 2, "rate_limited": 2}, 4},
		"two scrapes":      {[]int{200, busy, busy, busy, busy}, false, []int64{1, 1, 0}, map[string]int64{"ok": 1, "rate_limited": 4}, 5},
		"and another":      {[]int{200, busy, busy, 500}, false, []int64{1, 1, 0}, map[string]int64{"ok": 1, "rate_limited": 2, "http_status": 1}, 4},
		"without a remedy": {[]int{200, busy}, true, []int64{1, 0, 1}, map[string]int64{"ok": 2, "http_status": 1}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ups []int64
				exporters := &fakeExporters{page: goodPage, codes: c.codes}
				ts, telemetry := newTestTargets(t, exporters, 0, func(md pmetric.Metrics) {
					m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
					assert.Equal(t, names.ExporterUp.Name, m.Name())
					ups = append(ups, m.Sum().DataPoints().At(0).IntValue())
				})
				core, logs := observer.New(zap.InfoLevel)
				ts.scraper.logger = zap.New(core)
				if !c.plain {
					ts.scraper.exporter = limited()
				}
				ts.set([]location{at(t, "http://a:5000/metrics", "")})
				for len(exporters.times()) == 0 {
					pass(time.Second)
				}
				pass(2*15*time.Second + retryAfter + retryJitter) // two more, and their repetitions
				moments := exporters.times()
				require.Len(t, moments, c.asked)
				assert.Equal(t, c.ups, ups)
				counted := map[string]int64{}
				m, err := telemetry.GetMetric("acme_scrapes")
				require.NoError(t, err)
				for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
					outcome, _ := p.Attributes.Value("outcome")
					counted[outcome.AsString()] = p.Value
				}
				assert.Equal(t, c.counts, counted)
				if !c.plain {
					again := moments[2].Sub(moments[1])
					assert.True(t, again >= retryAfter && again < retryAfter+retryJitter, again)
				}
				if name == "two scrapes" {
					entry := logs.FilterMessage("exporter gives no GPU metrics").All()
					require.Len(t, entry, 1)
					assert.Equal(t, "scrape it once", entry[0].ContextMap()["remedy"])
					assert.Equal(t, "rate_limited", entry[0].ContextMap()["outcome"])
				}
			})
		})
	}
}

// TestLogDevices: rows without identity, devices without rows and values that no device can
// have are logged once.
func TestLogDevices(t *testing.T) {
	e := acme
	e.NoIdentity, e.Missing = "print the id", "look for the rest"
	core, logs := observer.New(zap.InfoLevel)
	tg := &target{}
	result := devicemap.Result{Devices: 1, Missing: 2, Implausible: `acme_load{} 153217`}
	result.Refused[devicemap.NoDevice] = 3
	for range 3 {
		tg.logDevices(&e, zap.New(core), &result)
	}
	tg.logDevices(&e, zap.New(core), &devicemap.Result{Devices: 3})
	tg.logDevices(&acme, zap.New(core), &result) // without remedies
	var got []string
	for _, entry := range logs.All() {
		got = append(got, entry.Message)
	}
	assert.Equal(t, []string{
		"rows of the page do not identify their device, they are left out",
		"the page has values that no device can have, they are left out",
		"the page has no rows of some devices that the exporter counts",
		"the page has rows of all devices that the exporter counts again",
	}, got)
	assert.Equal(t, int64(3), logs.All()[0].ContextMap()["rows"])
	assert.Equal(t, `acme_load{} 153217`, logs.All()[1].ContextMap()["cause"])
	assert.Equal(t, int64(2), logs.All()[2].ContextMap()["missing"])
}

// TestMinInterval: an exporter may bear less than one scrape a second.
func TestMinInterval(t *testing.T) {
	e := acme
	e.MinInterval = 10 * time.Second
	cfg := defaultConfig()
	cfg.Endpoints = []string{"http://a:5000/metrics"}
	cfg.CollectionInterval = 10 * time.Second
	require.NoError(t, cfg.Check(&e))
	cfg.CollectionInterval = 9 * time.Second
	assert.EqualError(t, cfg.Check(&e), "collection_interval: is 9s: use 10s to 5m0s")
	require.NoError(t, cfg.Check(&acme))
}

// TestFailedStatus: the answer 500 may have a cause that only the vendor's exporter has.
func TestFailedStatus(t *testing.T) {
	e := acme.Exporter
	err := &fetch.StatusError{Code: 500, Text: "500 Internal Server Error"}
	assert.Contains(t, e.Remedy(fetch.Status, err), "one entity fails")
	e.Remedies = map[fetch.Outcome]string{fetch.Status: "wait"}
	assert.Equal(t, "wait", e.Remedy(fetch.Status, err))
	assert.Contains(t, e.Remedy(fetch.Status, &fetch.StatusError{Code: 404}), "path")
	assert.Equal(t, fetch.Status, e.Failed(&fetch.StatusError{Code: http.StatusTooManyRequests}))
	assert.Equal(t, fetch.RateLimited, limited().Failed(errors.Join(&fetch.StatusError{Code: http.StatusTooManyRequests})))
}
