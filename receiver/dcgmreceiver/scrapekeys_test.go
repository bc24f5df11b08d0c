// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// TestScrapeKeys: keys of scrape that concern the page, through the whole receiver.
func TestScrapeKeys(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage)
	of := func(keys scrape.PrometheusConfig) *run {
		return start(t, []string{server.URL}, func(c *Config) { c.Scrape = keys })
	}
	t.Run("metric_relabel_configs", func(t *testing.T) {
		t.Parallel()
		r := of(scrape.PrometheusConfig{"metric_relabel_configs": []any{
			map[string]any{"source_labels": []any{"__name__"}, "regex": "DCGM_FI_DEV_MEMORY_TEMP", "action": "drop"},
			map[string]any{"source_labels": []any{"instance", "job"}, "regex": ".+:.+;dcgm-0", "target_label": "modelName", "replacement": "Mine"},
		}})
		r.await(fetch.OK, 2)
		assert.Empty(t, r.count("rows_refused"))
		r.mu.Lock()
		defer r.mu.Unlock()
		model, _ := r.scrapes[0].ResourceMetrics().At(1).Resource().Attributes().Get("hw.model")
		assert.Equal(t, "Mine", model.Str())
	})
	for key, logged := range map[string]string{
		"sample_limit": "sample_limit exceeded", "label_limit": "label_limit exceeded",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := start(t, []string{server.URL, server.URL + "/other"}, func(c *Config) { c.Scrape = scrape.PrometheusConfig{key: 1} })
			r.await(fetch.TooLarge, 4)
			assert.Equal(t, 2, contains(r.warnings(), logged), r.warnings())
			up, _ := r.last(server, "gpu.exporter.up")
			assert.Zero(t, up)
			assert.Equal(t, map[string]int64{"": 0}, r.count("devices"))
		})
	}
}
