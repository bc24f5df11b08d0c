// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

const ownPage = `otelcol_process_uptime 60
target_info{service_name="otelcol-gpu",service_version="0.1.0"} 1
otelcol_dcgm_receiver_scrapes{outcome="ok"} 9
otelcol_exporter_queue_capacity{data_type="metrics",exporter="otlp_grpc"} 100
otelcol_exporter_queue_size{data_type="metrics",exporter="otlp_grpc"} 2
otelcol_extension_gpu_store_samples_refused{reason="duplicate"} 5
`

func TestJudgeOwnMetrics(t *testing.T) {
	read := func(more string) Metrics {
		own, err := readOwn([]byte(ownPage+more), "text/plain; version=0.0.4")
		require.NoError(t, err)
		return own
	}
	assert.Equal(t, "0.1.0", read("").Version())
	const refused = `otelcol_receiver_refused_metric_points{receiver="otlp",transport="grpc"} `
	for name, tt := range map[string]struct {
		now, later string // later "-": nothing was watched
		want       []string
	}{
		"well":                  {"", "-", []string{"ok nothing refused, dropped or failed in 1m0s"}},
		"refused once":          {refused + "7\n", "-", []string{"warn points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start"}},
		"with the other suffix": {strings.Replace(refused, "points{", "points_total{", 1) + "7\n", "-", []string{"warn points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start"}},
		"refused and no more":   {refused + "7\n", refused + "7\n", []string{"ok points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start, none in the last 10s"}},
		"refused and more":      {refused + "7\n", refused + "9\n", []string{"fail points that the pipeline refused; their sender tries again: 9 (receiver=otlp), and rising (2 more in 10s)"}},
		"a gauge":               {"otelcol_gpu_allocation_snapshot_age 61\n", "-", []string{"fail seconds since the kubelet answered: 61"}},
		"a gauge below":         {"otelcol_gpu_allocation_snapshot_age 4\n", "-", []string{"ok nothing refused, dropped or failed in 1m0s"}},
		"a full queue": {
			`otelcol_exporter_queue_capacity{data_type="logs",exporter="otlp_grpc/events"} 10` + "\n" + `otelcol_exporter_queue_size{data_type="logs",exporter="otlp_grpc/events"} 9` + "\n", "-",
			[]string{"fail the queue of otlp_grpc/events is 90 % full"},
		},
		"unknown fields":        {"otelcol_gaudi_receiver_unknown_fields 2\n", "-", []string{"warn fields of exporters' pages that are not known, where a quantity is missing: 2"}},
		"none":                  {"otelcol_dcgm_receiver_unknown_fields 0\n", "-", []string{"ok nothing refused, dropped or failed in 1m0s"}},
		"families of an engine": {`otelcol_inference_families_renamed{engine="vllm"} 3` + "\n", "-", []string{"warn families of engines' pages that are not known and may have a metric that the page lacks: 3 (engine=vllm) since the start"}},
		"no samples":            {`otelcol_dcgm_receiver_rows_refused{exporter="http://a:9400/metrics",reason="unparsable",receiver="dcgm"} 35` + "\n", "-", []string{"warn lines of a page that are no samples: 35 (exporter=http://a:9400/metrics,reason=unparsable,receiver=dcgm) since the start"}},
		"another vendor's": {
			`otelcol_gaudi_receiver_scrapes{outcome="rate_limited"} 3` + "\n" + `otelcol_gaudi_receiver_scrapes{outcome="ok"} 9` + "\n" + `otelcol_amd_gpu_receiver_rows_refused{reason="no_device"} 8` + "\n", "-",
			[]string{"warn rows that do not identify their device: 8 (reason=no_device) since the start", "warn scrapes that gave nothing: 3 (outcome=rate_limited) since the start"},
		},
		"never scraped":                   {`otelcol_intel_gpu_receiver_scrapes{outcome="connect"} 3` + "\n", "-", []string{"warn scrapes that gave nothing: 3 (outcome=connect) since the start", "fail not one scrape has succeeded since the start"}},
		"a limit":                         {`otelcol_dcgm_receiver_rows_refused{reason="limit"} 3` + "\n" + `otelcol_dcgm_receiver_rows_refused{reason="sentinel"} 9` + "\n", "-", []string{"warn rows beyond a limit of one target: 3 (reason=limit) since the start"}},
		"events that a full disk refused": {`otelcol_exporter_send_failed_log_records{exporter="gpu_store"} 3` + "\n", "-", []string{"warn events that the store did not take at once: 3 (exporter=gpu_store) since the start"}},
		"events that a webhook did not deliver": {
			`otelcol_exporter_send_failed_log_records{exporter="webhook/ops"} 3` + "\n" + `otelcol_exporter_enqueue_failed_log_records{exporter="webhook"} 4` + "\n" +
				`otelcol_exporter_webhook_deliveries{outcome="failed",receiver="chat"} 7` + "\n", "-",
			[]string{"warn webhook deliveries that did not arrive: 7 (outcome=failed,receiver=chat) since the start"},
		},
		"events that a gateway refused": {`otelcol_exporter_send_failed_log_records{exporter="otlp_grpc"} 3` + "\n", "-", []string{"warn events or logs that were given up: 3 (exporter=otlp_grpc) since the start"}},
		"a full disk":                   {`otelcol_extension_gpu_store_samples_refused{reason="disk_full"} 3` + "\n", "-", []string{"warn samples that were not stored: 3 (reason=disk_full) since the start"}},
	} {
		t.Run(name, func(t *testing.T) {
			var later Metrics
			if tt.later != "-" {
				later = read(tt.later)
			}
			var got []string
			for _, r := range judge(10*time.Second, "here", read(tt.now), later) {
				got = append(got, string(r.Status)+" "+r.Seen)
				assert.Equal(t, r.Status != probe.OK, r.Remedy != "")
			}
			assert.Equal(t, tt.want, got)
		})
	}
	for exporter, remedy := range map[string]string{"webhook": "gpuctl doctor webhook", "webhook/ops": "gpuctl doctor webhook", "otlp_grpc": "gpuctl doctor gateway"} {
		of := `{data_type="logs",exporter="` + exporter + `"} `
		results := judge(time.Second, "here", read("otelcol_exporter_queue_capacity"+of+"10\notelcol_exporter_queue_size"+of+"9\n"), nil)
		require.Len(t, results, 1)
		assert.Contains(t, results[0].Remedy, remedy)
	}
	never, err := readOwn([]byte("otelcol_process_uptime 60\n"+`otelcol_dcgm_receiver_scrapes{outcome="connect"} 4`+"\n"), "")
	require.NoError(t, err)
	results := judge(10*time.Second, "here", never, nil)
	assert.Equal(t, "not one scrape has succeeded since the start", results[len(results)-1].Seen)
}

func TestRulesHaveRemedies(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		rule := fmt.Sprint(r.metric, r.only)
		assert.False(t, seen[rule], rule)
		seen[rule] = true
		assert.NotEmpty(t, r.means, r.metric)
		assert.NotEmpty(t, r.remedy, r.metric)
		assert.Equal(t, r.label != "", len(r.fine)+len(r.only) > 0, r.metric)
	}
}

func FuzzOwnMetrics(f *testing.F) {
	f.Add([]byte(ownPage), "text/plain; version=0.0.4")
	f.Add([]byte("otelcol_exporter_queue_capacity 0\notelcol_exporter_queue_size NaN\n"), "")
	f.Fuzz(func(t *testing.T, raw []byte, contentType string) {
		if strings.Contains(strings.ToLower(contentType), "protobuf") {
			return // it is never asked for
		}
		own, err := readOwn(raw, contentType)
		if err == nil && len(judge(10*time.Second, "here", own, own)) == 0 {
			t.Fatal("there is always a result")
		}
	})
}

// The rules are of metrics that the components really have.
func TestRulesAreOfMetricsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../../../../*/*/documentation.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, r := range rules {
		// These are the Collector's own, which document themselves elsewhere.
		if strings.HasPrefix(r.metric, "otelcol_receiver_") || strings.HasPrefix(r.metric, "otelcol_exporter_enqueue_") || strings.HasPrefix(r.metric, "otelcol_exporter_send_") {
			continue
		}
		_, section, found := strings.Cut(all.String(), "### "+r.metric+"\n")
		if !assert.True(t, found, r.metric) {
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		if r.label != "" {
			assert.Contains(t, section, "| "+r.label+" |", r.metric)
		}
		for _, value := range slices.Concat(r.fine, r.only) {
			assert.Regexp(t, `\b`+value+`\b`, section, r.metric)
		}
	}
}
