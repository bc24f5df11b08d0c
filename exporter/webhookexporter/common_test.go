// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// byHost answers each host with one status.
type byHost map[string]int

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: b[r.URL.Hostname()], Header: http.Header{}, Body: http.NoBody}, nil
}

func (byHost) CloseIdleConnections() {}

// figure returns the value of a metric that has these attributes and no others;
// 0 if it has no data points.
func (h *harness) figure(name string, attrs ...attribute.KeyValue) int64 {
	h.t.Helper()
	m, err := h.telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		require.True(h.t, data.IsMonotonic, name)
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	require.Len(h.t, points, 1, name)
	assert.Equal(h.t, attribute.NewSet(attrs...), points[0].Attributes, name)
	return points[0].Value
}

// assertRecords compares the metrics of every exporter.
func (h *harness) assertRecords(sent, failed, refused int64) {
	h.t.Helper()
	id := attribute.String("exporter", "webhook")
	assert.Equal(h.t, sent, h.figure("otelcol_exporter_sent_log_records", id), "sent")
	assert.Equal(h.t, failed, h.figure("otelcol_exporter_send_failed_log_records", id), "failed")
	assert.Equal(h.t, refused, h.figure("otelcol_exporter_enqueue_failed_log_records", id), "refused")
}

// An event counts once, whatever the number of its endpoints: as sent if all of
// them accepted it.
func TestRecordsAreCountedAsEveryExporterDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := byHost{"a.example.com": 200, "b.example.com": 200}
		a, b := to("https://a.example.com"), to("https://b.example.com")
		b.Events = []string{"gpu.service.*"}
		h := startHarness(t, map[string]ReceiverConfig{"a": a, "b": b}, via(status))
		h.send(partial("both", names.EventRaised))
		synctest.Wait()
		h.assertRecords(1, 0, 0)

		other := partial("one", names.EventRaised)
		other.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetEventName("gpu.xid")
		h.send(other)
		synctest.Wait()
		h.assertRecords(2, 0, 0)

		status["b.example.com"] = 404
		h.send(partial("half", names.EventRaised))
		synctest.Wait()
		h.assertRecords(2, 1, 0)

		status["a.example.com"] = 404
		h.send(partial("none", names.EventRaised))
		synctest.Wait()
		h.assertRecords(2, 2, 0)

		// What is sent by hand is no log record that was received.
		_, err := h.Test(t.Context(), "a")
		require.NoError(t, err)
		_, err = h.Replay(t.Context(), "both", "")
		require.NoError(t, err)
		h.assertRecords(2, 2, 0)
	})
}

func TestARetriedRecordIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startWith(t, &answers{next: []answer{{status: 500}, {status: 500}}}, retrying)
		h.send(partial("a", names.EventRaised))
		synctest.Wait()
		h.assertRecords(0, 0, 0)
		time.Sleep(time.Hour)
		h.assertRecords(1, 0, 0)
	})
}

func TestAGroupCountsEachOfItsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startListing(t, &answers{})
		h.send(of("n1", "a", "ka"))
		h.send(of("n1", "b", "kb"))
		time.Sleep(time.Minute)
		h.assertRecords(2, 0, 0)
	})
}

func TestQueueIsMeasuredAsEveryExportersIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, free := to("https://full.example.com"), to("https://free.example.com")
		full.QueueSize, full.Workers = 1, 1
		full.Timeout = time.Hour
		free.Events = []string{"gpu.xid"}
		h := startHarness(t, map[string]ReceiverConfig{"full": full, "free": free}, via(stuck{}))
		for _, id := range []string{"on its way", "waits", "refused"} {
			h.send(partial(id, names.EventRaised))
			synctest.Wait()
		}
		id, signal := attribute.String("exporter", "webhook"), attribute.String("data_type", "logs")
		assert.EqualValues(t, 1, h.figure("otelcol_exporter_queue_size", id, signal))
		assert.EqualValues(t, 1001, h.figure("otelcol_exporter_queue_capacity", id, signal))
		h.assertRecords(0, 0, 1)

		// Given up by the shutdown: sending failed, whatever the reason.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, h.Shutdown(ctx))
		h.assertRecords(0, 2, 1)
	})
}

// A record that waited in the storage is counted by the process that ends it.
func TestARestoredRecordIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, &answers{next: []answer{{status: 500}}}, hooks, retrying)
		killed.send(partial("a", names.EventRaised))
		<-killed.records
		synctest.Wait()
		require.NoError(t, killed.Shutdown(t.Context()))
		killed.assertRecords(0, 0, 0)
		h := d.bootWith(t, nil, &answers{}, hooks, retrying)
		time.Sleep(time.Hour)
		h.assertRecords(1, 0, 0)
	})
}

func configured(t *testing.T, keys map[string]any) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	keys["receivers"] = map[string]any{"ops": map[string]any{"url": "https://hooks.example.com"}, "slow": map[string]any{"url": "https://slow.example.com", "timeout": "1m", "queue_size": 7, "workers": 2}}
	if err := confmap.NewFromStringMap(keys).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, cfg.Validate()
}

// The keys of every exporter mean what this one's own mean.
func TestKeysOfEveryExporter(t *testing.T) {
	storage := component.MustNewIDWithName("file_storage", "webhook")
	cfg, err := configured(t, map[string]any{
		"timeout":          "10s",
		"retry_on_failure": map[string]any{"initial_interval": "2s", "max_interval": "10m", "max_elapsed_time": "0s"},
		"retry":            map[string]any{"max_attempts": 20},
		"sending_queue":    map[string]any{"enabled": true, "queue_size": 50, "num_consumers": 3, "storage": "file_storage/webhook"},
	})
	require.NoError(t, err)
	assert.Equal(t, RetryConfig{Enabled: true, InitialInterval: 2 * time.Second, MaxInterval: 10 * time.Minute, MaxAttempts: 20}, cfg.Retry)
	assert.Equal(t, &storage, cfg.Storage)
	for name, want := range map[string][3]any{"ops": {10 * time.Second, 50, 3}, "slow": {time.Minute, 7, 2}} {
		ep := mustTarget(t, name, cfg.Receivers[name], cfg.defaults())
		assert.Equal(t, want, [3]any{ep.Timeout, ep.QueueSize, ep.Workers}, name)
	}
	// A configuration without these keys is the same as ever, and so is the
	// fingerprint by which a start knows an endpoint that was gone.
	assert.Equal(t, mustTarget(t, "slow", cfg.Receivers["slow"]).Fingerprint, mustTarget(t, "slow", cfg.Receivers["slow"], cfg.defaults()).Fingerprint)
	assert.NotEqual(t, mustTarget(t, "ops", cfg.Receivers["ops"]).Fingerprint, mustTarget(t, "ops", cfg.Receivers["ops"], cfg.defaults()).Fingerprint)

	cfg, err = configured(t, map[string]any{"retry_on_failure": map[string]any{}})
	require.NoError(t, err)
	assert.True(t, cfg.Retry.Enabled, "as in every exporter")
	cfg, err = configured(t, map[string]any{"retry_on_failure": map[string]any{"enabled": false}, "sending_queue": map[string]any{}})
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig().(*Config).Retry, cfg.Retry)
	cfg, err = configured(t, map[string]any{"retry_on_failure": nil, "sending_queue": nil, "timeout": nil})
	require.NoError(t, err)
	assert.False(t, cfg.Retry.Enabled)
}

func TestKeysOfEveryExporterThatCannotBe(t *testing.T) {
	type keys = map[string]any
	for want, given := range map[string]keys{
		// both forms
		"retry_on_failure::enabled: true: is set beside retry::enabled: false, which means the same; remove one of them":       {"retry_on_failure": keys{"enabled": true}, "retry": keys{"enabled": false}},
		"retry_on_failure::initial_interval: 2s: is set beside retry::initial_interval: 3s":                                    {"retry_on_failure": keys{"initial_interval": "2s"}, "retry": keys{"initial_interval": "3s"}},
		"retry_on_failure::max_interval: 2m: is set beside retry::max_interval: 2m":                                            {"retry_on_failure": keys{"max_interval": "2m"}, "retry": keys{"max_interval": "2m"}},
		"retry_on_failure::max_elapsed_time: 2h: is set beside retry::max_elapsed_time: 3h":                                    {"retry_on_failure": keys{"max_elapsed_time": "2h"}, "retry": keys{"max_elapsed_time": "3h"}},
		"sending_queue::storage: file_storage/a: is set beside storage: file_storage/b":                                        {"sending_queue": keys{"storage": "file_storage/a"}, "storage": "file_storage/b"},
		"retry::enabled: false: is set beside retry_on_failure, which has enabled: true by default; remove retry::enabled, an": {"retry_on_failure": keys{"max_interval": "2m"}, "retry": keys{"enabled": false}},
		// without a meaning here
		"retry_on_failure::multiplier: 1.5: each interval is three times":   {"retry_on_failure": keys{"multiplier": 1.5}},
		"retry_on_failure::randomization_factor: 0.5: each interval":        {"retry_on_failure": keys{"randomization_factor": 0.5}},
		"sending_queue::batch: map[]: a request holds several events only":  {"sending_queue": keys{"batch": keys{}}},
		"sending_queue::block_on_overflow: true: a full queue never blocks": {"sending_queue": keys{"block_on_overflow": true}},
		"sending_queue::sizer: bytes: queue_size counts events; remove it":  {"sending_queue": keys{"sizer": "bytes"}},
		"sending_queue::wait_for_result: true: the pipeline never waits":    {"sending_queue": keys{"wait_for_result": true}},
		"sending_queue::enabled: false: every endpoint has a queue":         {"sending_queue": keys{"enabled": false}},
		"sending_queue::queue: there is no such key":                        {"sending_queue": keys{"queue": 1}},
		"retry_on_failure::max_attempts: there is no such key":              {"retry_on_failure": keys{"max_attempts": 1}},
		// values
		"timeout: 0s would wait without end; leave it out for 30s":            {"timeout": "0s"},
		"timeout: -1s is negative":                                            {"timeout": "-1s"},
		"timeout: 5 has no unit":                                              {"timeout": 5},
		"sending_queue::queue_size: 0 is not within 1 and 100000":             {"sending_queue": keys{"queue_size": 0}},
		"sending_queue::num_consumers: 65 is not within 1 and 64":             {"sending_queue": keys{"num_consumers": 65}},
		"retry_on_failure::initial_interval: 0s is not positive":              {"retry_on_failure": keys{"initial_interval": "0s"}},
		"retry_on_failure::max_interval: 1s is shorter than initial_interval": {"retry_on_failure": keys{"max_interval": "1s"}},
	} {
		_, err := configured(t, given)
		assert.ErrorContains(t, err, want)
		if err != nil {
			assert.NotContains(t, err.Error(), "receivers::", want)
		}
	}
}
