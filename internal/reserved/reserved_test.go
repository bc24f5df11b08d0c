// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]Owner{
		"gpu": GPU, "gpu_exporter_up": GPU, "hw_gpu_utilization_ratio": GPU, "hw_power_watts": GPU, "DCGM_FI_DEV_GPU_UTIL": GPU, "dcgm_x": GPU,
		"amd_gpu_clock": GPU, "amd": GPU, "habanalabs_energy": GPU, "xpum_power_watts": GPU, "amdahl_speedup": Free, "xpumps": Free,
		"gpu_cache_usage_perc": Free, "gpus": Free, "hwmon_temp": Free, "nv_gpu_utilization": Free,
		"inference": Inference, "inference_server_requests": Inference, "inference_gateway_tokens_total": Inference, "inference_latency": Inference, "inferences": Free, "nv_inference_count": Free,
		"gen_ai_server_request_duration_seconds_bucket": Free,
		"device:gpu_xid_errors:max":                     Rules, ":x": Rules, "vllmx:y": Rules, "vllm:gpu_cache_usage_perc": Free, "ray_vllm:x": Free,
		"otelcol_process_uptime": Collector, "target_info": Collector, "otel_scope_info": Collector,
		"up": Prometheus, "uptime": Free, "up_seconds": Free, "scrape_duration_seconds": Prometheus, "ALERTS": Prometheus, "ALERTS_FOR_STATE": Prometheus,
		"kueue_pending_workloads": Scheduling, "volcano_queue_weight": Scheduling, "kai_queue_deserved_gpus": Scheduling, "scheduler_pending_pods": Scheduling,
		"scheduler_preemption_victims_sum": Scheduling, "scheduler_heartbeat": Free, "kai": Free,
		"http_server_request_duration_seconds_bucket": Free, "": Free,
	} {
		assert.Equal(t, want, Of(name), name)
	}
}

// families are the names that are to be out of reach: of internal/names through the
// translator, of the Collector itself and of the recorded rules.
func families(t *testing.T) []string {
	t.Helper()
	var found []string
	source, err := os.ReadFile("../names/metrics.go")
	require.NoError(t, err)
	inference, err := os.ReadFile("../names/metrics_inference.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`Metric\{"([^"]+)", "([^"]*)", (\w+),`).FindAllStringSubmatch(string(source)+string(inference), -1) {
		if strings.HasPrefix(m[1], "gen_ai.") {
			continue // of SDKs too
		}
		kind := map[string]otlptranslator.MetricType{"Gauge": otlptranslator.MetricTypeGauge, "Counter": otlptranslator.MetricTypeMonotonicCounter}[m[3]]
		name, err := namer.Build(otlptranslator.Metric{Name: m[1], Unit: m[2], Type: kind})
		require.NoError(t, err)
		found = append(found, name)
	}
	require.Greater(t, len(found), 50)
	parsed, err := parser.ParseFile(token.NewFileSet(), "../queries/mixin_names.go", nil, parser.ParseComments)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || !strings.HasPrefix(group.Doc.Text(), "The Collector's own") {
			continue
		}
		for _, spec := range group.Specs {
			name, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			found = append(found, name)
		}
	}
	require.Greater(t, len(found), 100)
	rules, err := filepath.Glob("../../mixin/rules/*.yaml")
	require.NoError(t, err)
	before := len(found)
	for _, file := range rules {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)record: "?([^\s"]+)`).FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	require.Greater(t, len(found), before)
	return append(found, "amd_gpu_clock", "habanalabs_energy", "xpum_power_watts", "ALERTS", "ALERTS_FOR_STATE", "up", "target_info", "otel_scope_info")
}

func TestEveryFamilyIsReserved(t *testing.T) {
	for _, name := range families(t) {
		assert.NotEqual(t, Free, Of(name), name)
	}
}

// metrics calls f for a metric of each type.
func metrics(name, unit string, f func(pmetric.Metric)) {
	for _, shape := range []func(pmetric.Metric){
		func(m pmetric.Metric) { m.SetEmptyGauge() },
		func(m pmetric.Metric) { m.SetEmptySum() },
		func(m pmetric.Metric) { m.SetEmptySum().SetIsMonotonic(true) },
		func(m pmetric.Metric) { m.SetEmptyHistogram() },
		func(m pmetric.Metric) { m.SetEmptyExponentialHistogram() },
		func(m pmetric.Metric) { m.SetEmptySummary() },
	} {
		m := pmetric.NewMetric()
		m.SetName(name)
		m.SetUnit(unit)
		shape(m)
		f(m)
	}
}

// TestNothingReachesAReservedFamily builds names around and out of the reserved
// ones, in every way in which the translator takes characters and words out, moves
// them or adds them.
func TestNothingReachesAReservedFamily(t *testing.T) {
	target := map[string]bool{}
	for _, name := range families(t) {
		target[name] = true
	}
	reached, passed := 0, 0
	for family := range target {
		dots := strings.ReplaceAll(family, "_", ".")
		words := strings.Split(family, "_")
		names := []string{family, dots, strings.ReplaceAll(family, "_", "é"), strings.ReplaceAll(family, "_", "\u200b"), "total." + dots, "ratio." + dots, dots + ".total", ""}
		for _, front := range []string{"_", "__", ".", "-", " ", "é", "\u200b", "/", "$", "\x00", "\xff"} {
			names = append(names, front+dots, front+family+front)
		}
		units := []string{"", "1", "%", "{error}", "By", "s", "Cel", "J", "W", "Hz", "By/s", family, "_" + family, dots, "/" + family, "{x}/" + family}
		for cut := 1; cut < len(words); cut++ {
			head, tail := strings.Join(words[:cut], "."), strings.Join(words[cut:], "_")
			names = append(names, head, "-"+head, "total."+head)
			units = append(units, tail, " "+tail, "_"+tail)
			if rest, found := strings.CutPrefix(tail, "per_"); found {
				units = append(units, "/"+rest)
			}
		}
		for _, name := range names {
			for _, unit := range units {
				metrics(name, unit, func(m pmetric.Metric) {
					translated, owner, err := Metric(m)
					if err != nil {
						return
					}
					for _, series := range []string{translated, translated + "_bucket", translated + "_sum", translated + "_count"} {
						if target[series] && owner == Free {
							t.Errorf("%q with unit %q as %s reaches %s", name, unit, m.Type(), series)
						}
						if target[series] {
							reached++
						}
					}
					if owner == Free {
						passed++
					}
				})
			}
		}
	}
	t.Logf("%d reached and were refused, %d passed", reached, passed)
	assert.Greater(t, reached, 10_000)
}

func TestNamesOfApplicationsPass(t *testing.T) {
	for _, name := range []string{"http.server.request.duration", "gen_ai.server.time_to_first_token", "vllm:num_requests_running", "gpu_cache_usage_perc", "app.accuracy", "uptime", "process.gpu.time", "scheduler.runs", "kairos.jobs"} {
		m := pmetric.NewMetric()
		m.SetName(name)
		m.SetEmptyGauge()
		_, owner, err := Metric(m)
		assert.NoError(t, err)
		assert.Equal(t, Free, owner, name)
	}
	m := pmetric.NewMetric()
	m.SetName("___")
	_, _, err := Metric(m)
	assert.Error(t, err)
	m.SetName("up")
	m.SetUnit("s")
	_, owner, _ := Metric(m)
	assert.Equal(t, Prometheus, owner, "up_seconds here, and up in a backend without suffixes")
}

func TestAttributes(t *testing.T) {
	for key, want := range map[string]bool{
		"hw.id": true, "_hw.id": true, "hw_id": true, "gpu.index": true, "gpu_mig_uuid": true, "__name__": true,
		"k8s.pod.name": true, "service_name": true, "host.name": true, "gpu.device.ids": true, "gpu.device_count": true,
		"slurm.job.id": true, "slurm_job_user": true, "service_namespace": true, "job": true, "instance": true, "job_name": false, "slurm": false,
		"inference.engine": false, "gpu_id": false, "gpu": false, "server.address": false, "http.route": false, "le": false, "hwm": false,
	} {
		assert.Equal(t, want, Attribute(key), key)
	}
	for key, want := range map[string]bool{
		"inference.engine": true, "inference_bounds": true, "_inference.gateway": true, "inference": true, "inferences": false, "gen_ai.request.model": false,
	} {
		assert.Equal(t, want, InferenceAttribute(key), key)
	}
	for key, want := range map[string]bool{
		"hw.id": true, "k8s_pod_name": true, "service_name": true, ".service.name": true, "slurm_job_id": true, "job": true,
		"slurm.job.id": false, "service.namespace": false,
		"k8s.pod.name": false, "service.name": false, "host.name": false, "service.instance.id": false,
	} {
		assert.Equal(t, want, ResourceAttribute(key), key)
	}
	// Of spans and log records what gpu_pod states is reserved, and no more: they may name
	// a device.
	for key, want := range map[string][2]bool{ // of the record, of its resource
		"gpu.device.ids": {true, true}, "gpu_device_ids": {true, true}, "_gpu.device.count": {true, true}, "gpu.device_count": {true, true},
		"hw.model": {false, true}, "hw_model": {false, true},
		"hw.id": {}, "gpu.index": {}, "k8s.pod.name": {}, "device.id": {}, "gpu.device.idle": {}, "gen_ai.request.model": {}, "__name__": {},
	} {
		assert.Equal(t, want, [2]bool{RecordAttribute(key), RecordResourceAttribute(key)}, key)
	}
}

func TestEvent(t *testing.T) {
	for name, want := range map[string]bool{
		"gpu.xid": true, "GPU.Xid": true, " gpu.xid": true, "_gpu.xid": true, "g\u200bpu.xid": true, "ｇｐｕ．xid": true, "gpu_xid": true, "gpu": true,
		"gen_ai.content.prompt": false, "gpus.sold": false, "": false, "app.gpu.xid": false,
	} {
		record := plog.NewLogRecord()
		record.SetEventName(name)
		assert.Equal(t, want, Event(record), "%q", name)
		record = plog.NewLogRecord()
		record.Attributes().PutStr("Event.name", name)
		assert.Equal(t, want, Event(record), "%q as an attribute", name)
	}
	record := plog.NewLogRecord()
	record.Attributes().PutStr("gpu.event.id", "x")
	assert.True(t, Event(record))
}
