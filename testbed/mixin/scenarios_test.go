// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// Labels of a device, a service, an exporter and a process.
const (
	dev   = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-1",hw_model="NVIDIA H100",gpu_index="0",k8s_namespace_name="ml",k8s_pod_name="chat-0",service_name="chat"`
	amd   = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-c3ff88426fc31c9e",gpu_index="1"`
	gaudi = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GAUDI-AN12345678",gpu_index="2"`
	brd   = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-1",hw_model="NVIDIA H100",gpu_index="0"`
	svc   = `k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="chat"`
	node  = `k8s_cluster_name="c1",k8s_node_name="n1"`
	exp   = node + `,server_address="10.0.0.1",server_port="9400"`
	own   = `job="otelcol-gpu",instance="gateway-0:8888"`
	spark = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-9",hw_model="NVIDIA GB10",gpu_index="9"`
)

// health are the series of a board in a state from begin on, and in another one before.
func health(before, after string) map[string]string {
	all := map[string]string{}
	for _, state := range []string{"ok", "degraded", "predicted_failure", "failed"} {
		is := map[bool]string{true: "1"}
		all[`hw_status{hw_state="`+state+`",hw_type="gpu",`+brd+`}`] = from(cmp.Or(is[state == before], "0"), cmp.Or(is[state == after], "0"))
	}
	if after != "ok" {
		all[`gpu_health_reason{gpu_health_reason="xid_reset",gpu_health_action="reset_gpu",hw_state="`+after+`",`+brd+`}`] = "_x360 1x119"
	}
	return all
}

// silent are the series of a board that is not known any more from begin on.
func silent() map[string]string {
	all := health("ok", "ok")
	for name, values := range all {
		before, _, _ := strings.Cut(values, " ")
		all[name] = before + " stale"
	}
	return all
}

// with adds series to others.
func with(series, more map[string]string) map[string]string {
	all := maps.Clone(series)
	maps.Copy(all, more)
	return all
}

// healthy is a fleet with which nothing is wrong: series and their values, one
// every half minute for four hours.
var healthy = with(health("ok", "ok"), map[string]string{
	`hw_gpu_memory_usage_bytes{` + dev + `}`:                                                                 "4e10x480",
	`hw_gpu_memory_utilization_ratio{` + dev + `}`:                                                           "0.5x480",
	`hw_gpu_utilization_ratio{hw_gpu_task="general",` + dev + `}`:                                            "0.7x480",
	`hw_temperature_celsius{hw_sensor_location="gpu",` + dev + `}`:                                           "70x480",
	`hw_temperature_celsius{hw_sensor_location="memory",` + dev + `}`:                                        "92x480", // too hot for a chip
	`gpu_throttle_active{gpu_throttle_reason="hw_thermal",` + dev + `}`:                                      "0x480",
	`gpu_throttle_active{gpu_throttle_reason="sw_power_cap",` + dev + `}`:                                    "1x480",
	`gpu_xid_errors_total{gpu_xid_code="13",` + dev + `}`:                                                    "3x480",
	`hw_errors_total{error_type="uncorrected",` + dev + `}`:                                                  "1x480",
	`hw_errors_total{error_type="corrected",` + dev + `}`:                                                    "0+0.01x480",
	`gpu_memory_row_remap_failure{` + dev + `}`:                                                              "0x480",
	`gpu_memory_row_remap_pending{` + dev + `}`:                                                              "0x480",
	`gpu_memory_retired_pages_pending{` + dev + `}`:                                                          "0x480",
	`gpu_pcie_replays_total{` + dev + `}`:                                                                    "0+0.1x480",
	`gpu_ras_last{gpu_ras_severity="fatal",` + dev + `}`:                                                     "30x480",
	`gpu_memory_retired_pages_failure{` + dev + `}`:                                                          "0x480",
	`gpu_memory_remapped_rows_pending{` + dev + `}`:                                                          "0x480",
	`gpu_device_resets_total{` + dev + `}`:                                                                   "2x480",
	`gpu_link_up{gpu_link_index="0",gpu_link_kind="internal",` + dev + `}`:                                   "1x480",
	`gpu_link_up{gpu_link_index="1",gpu_link_kind="internal",` + dev + `}`:                                   "0x480", // it never had a link
	`gpu_link_up{gpu_link_index="22",gpu_link_kind="external",` + dev + `}`:                                  "1x240 0x239",
	`gpu_health_status{gpu_health_state="fail",gpu_health_watch="exporter",` + dev + `}`:                     "1x480", // of its board a reason
	`hw_status{hw_state="ok",hw_type="gpu",` + amd + `}`:                                                     "1x480",
	`hw_temperature_celsius{hw_sensor_location="gpu",` + amd + `}`:                                           "93x480",   // too hot for others
	`hw_gpu_memory_usage_bytes{` + gaudi + `}`:                                                               "4e10x480", // it has no health
	`gpu_health_status{gpu_health_state="fail",gpu_health_watch="mem",` + dev + `}`:                          "0x480",
	`gpu_allocation{` + dev + `}`:                                                                            "1x480",
	`gpu_exporter_up{` + exp + `}`:                                                                           "1x480",
	`gpu_exporter_frozen{` + exp + `}`:                                                                       "0x480",
	`gpu_exporter_unrecognized{` + exp + `}`:                                                                 "0x480",
	`gpu_exporter_up{k8s_cluster_name="c1",k8s_node_name="n2",server_address="10.0.0.2",server_port="9400"}`: "1x480",
	`gpu_node_schedulable{` + node + `}`:                                                                     "1x480",
	`gpu_node_mig_reconfiguring{` + node + `}`:                                                               "0x480",
	`gpu_service_partial{` + svc + `}`:                                                                       "0x480",
	`gpu_service_pods{gpu_pod_state="reporting",` + svc + `}`:                                                "3x480",
	`gpu_service_pods{gpu_pod_state="degraded",` + svc + `}`:                                                 "0x480",
	`gpu_service_pods{gpu_pod_state="missing",` + svc + `}`:                                                  "0x480",
	`gpu_service_pods{gpu_pod_state="warming",` + svc + `}`:                                                  "1x480",
	`gpu_service_devices{gpu_device_state="reporting",` + svc + `}`:                                          "10x480",
	`gpu_service_idle_devices{` + svc + `}`:                                                                  "0x480",
	`gpu_service_data_age_seconds{` + svc + `}`:                                                              "12x480",
	`gpu_service_power_watts{` + svc + `}`:                                                                   "700x480",
	`up{` + own + `}`:                                                                                        "1x480",
	`otelcol_process_uptime{` + own + `}`:                                                                    "9000+30x480",
	`otelcol_gpu_summary_services_tracked{` + own + `}`:                                                      "5x480",
	`otelcol_gpu_allocation_snapshot_age{` + own + `}`:                                                       "5x480",
	`otelcol_dcgm_receiver_scrapes{outcome="ok",` + own + `}`:                                                "0+10x480",
	`otelcol_dcgm_receiver_scrapes{outcome="timeout",` + own + `}`:                                           "0+0.1x480",
	`otelcol_receiver_refused_metric_points{receiver="otlp",` + own + `}`:                                    "0x480",
	`otelcol_exporter_queue_size{exporter="gpu_store",data_type="metrics",` + own + `}`:                      "10x480",
	`otelcol_exporter_queue_capacity{exporter="gpu_store",data_type="metrics",` + own + `}`:                  "1000x480",
	`otelcol_exporter_queue_capacity{exporter="webhook",data_type="logs",` + own + `}`:                       "1000x480",
	`otelcol_extension_gpu_store_samples_refused{reason="duplicate",` + own + `}`:                            "0+5x480",
	`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="succeeded",` + own + `}`:                    "0+1x480",
	`otelcol_exporter_webhook_receiver_disabled{receiver="ops",` + own + `}`:                                 "0x480",
	`otelcol_exporter_webhook_audit_failures{` + own + `}`:                                                   "0x480",
	`otelcol_exporter_webhook_audit_buffered_records{` + own + `}`:                                           "0x480",
	`otelcol_exporter_webhook_audit_lost_records{` + own + `}`:                                               "0x480",
	`http_server_request_duration_seconds_count{http_response_status_code="200",` + svc + `}`:                "0+300x480",
	`http_server_request_duration_seconds_bucket{le="0.5",` + svc + `}`:                                      "0+290x480",
	`http_server_request_duration_seconds_bucket{le="1",` + svc + `}`:                                        "0+300x480",
	`http_server_request_duration_seconds_bucket{le="10",` + svc + `}`:                                       "0+300x480",
	`http_server_request_duration_seconds_bucket{le="+Inf",` + svc + `}`:                                     "0+300x480",
	`vllm:time_to_first_token_seconds_bucket{le="1",` + svc + `}`:                                            "0+300x480",
	`vllm:time_to_first_token_seconds_bucket{le="10",` + svc + `}`:                                           "0+300x480",
	`vllm:time_to_first_token_seconds_bucket{le="+Inf",` + svc + `}`:                                         "0+300x480",
	`vllm:e2e_request_latency_seconds_bucket{le="10",` + svc + `}`:                                           "0+300x480",
	`vllm:e2e_request_latency_seconds_bucket{le="60",` + svc + `}`:                                           "0+300x480",
	`vllm:e2e_request_latency_seconds_bucket{le="+Inf",` + svc + `}`:                                         "0+300x480",
	`vllm:kv_cache_usage_perc{` + svc + `}`:                                                                  "0.6x480",
	`vllm:num_requests_waiting{` + svc + `}`:                                                                 "1x480",
	`vllm:generation_tokens_total{` + svc + `}`:                                                              "0+3000x480",
	`vllm:request_success_total{finished_reason="stop",` + svc + `}`:                                         "0+300x480",
	`vllm:request_success_total{finished_reason="abort",` + svc + `}`:                                        "0+1x480",
	`app_accuracy_ratio{` + svc + `}`:                                                                        "0.9x480",
})

// begin is when something happens in a scenario: three hours after its start.
const begin = 360

// from is a value that changes at begin.
func from(before, after string) string { return fmt.Sprintf("%sx%d %sx119", before, begin, after) }

// scenario is what differs from a healthy fleet, and the alerts that fire.
type scenario struct {
	series map[string]string
	alerts []string
}

var scenarios = map[string]scenario{
	"a third of the pods is missing": {
		map[string]string{
			`gpu_service_partial{` + svc + `}`:                        from("0", "1"),
			`gpu_service_pods{gpu_pod_state="reporting",` + svc + `}`: from("3", "2"),
			`gpu_service_pods{gpu_pod_state="missing",` + svc + `}`:   from("0", "1"),
		}, []string{"GPUServicePartial"},
	},
	"all pods are missing": {
		map[string]string{
			`gpu_service_partial{` + svc + `}`:                        from("0", "1"),
			`gpu_service_pods{gpu_pod_state="reporting",` + svc + `}`: from("3", "0"),
			`gpu_service_pods{gpu_pod_state="missing",` + svc + `}`:   from("0", "3"),
		}, []string{"GPUServicePartial", "GPUServiceNoData"},
	},
	"data is old":          {map[string]string{`gpu_service_data_age_seconds{` + svc + `}`: from("12", "400")}, []string{"GPUServiceDataOld"}},
	"one of ten is idle":   {map[string]string{`gpu_service_idle_devices{` + svc + `}`: from("0", "1")}, []string{"GPUIdleHeld"}},
	"half are idle":        {map[string]string{`gpu_service_idle_devices{` + svc + `}`: from("0", "5")}, []string{"GPUIdleHeld", "GPUFleetIdle"}},
	"thermal throttling":   {map[string]string{`gpu_throttle_active{gpu_throttle_reason="hw_thermal",` + dev + `}`: from("0", "1")}, []string{"GPUThrottled", "GPUServiceThrottled"}},
	"the exporter is down": {map[string]string{`gpu_exporter_up{` + exp + `}`: from("1", "0")}, []string{"GPUExporterDown"}},
	"the exporter hangs":   {map[string]string{`gpu_exporter_frozen{` + exp + `}`: from("0", "1")}, []string{"GPUExporterFrozen"}},
	"the exporter renames its fields": { // then no device of it is lost
		with(unread(), map[string]string{`gpu_exporter_unrecognized{` + exp + `}`: from("0", "1")}), []string{"GPUExporterUnrecognized"},
	},
	"the kubelet is silent": {map[string]string{`otelcol_gpu_allocation_snapshot_age{` + own + `}`: from("5", "400")}, []string{"GPUAllocationStale"}},
	"an XID that was there before rises": {
		map[string]string{`gpu_xid_errors_total{gpu_xid_code="13",` + dev + `}`: from("3", "4")}, []string{"GPUXIDError"},
	},
	"a first XID that is fatal": {
		map[string]string{`gpu_xid_errors_total{gpu_xid_code="79",` + dev + `}`: "_x360 1x119"}, []string{"GPUXIDFatal"},
	},
	"a first XID that is a warning": {
		map[string]string{`gpu_xid_errors_total{gpu_xid_code="9999",` + dev + `}`: "_x360 1x119"}, []string{"GPUXIDWarning"},
	},
	"an uncorrected error":          {map[string]string{`hw_errors_total{error_type="uncorrected",` + dev + `}`: from("1", "2")}, []string{"GPUECCUncorrected"}},
	"many corrected errors":         {map[string]string{`hw_errors_total{error_type="corrected",` + dev + `}`: "0x360 0+1x119"}, []string{"GPUECCCorrected"}},
	"a row waits to be remapped":    {map[string]string{`gpu_memory_row_remap_pending{` + dev + `}`: from("0", "1")}, []string{"GPURowRemapPending"}},
	"a row cannot be remapped":      {map[string]string{`gpu_memory_row_remap_failure{` + dev + `}`: from("0", "1")}, []string{"GPURowRemapFailure"}},
	"pages wait":                    {map[string]string{`gpu_memory_retired_pages_pending{` + dev + `}`: from("0", "1")}, []string{"GPUPagesRetiredPending"}},
	"a fatal error of an AMD board": {map[string]string{`gpu_ras_last{gpu_ras_severity="fatal",` + dev + `}`: from("30", "27")}, []string{"GPURASError"}},
	"a first error of an AMD board": {map[string]string{`gpu_ras_last{gpu_ras_severity="non_fatal_uncorrected",` + dev + `}`: "_x360 22x119"}, []string{"GPURASError"}},
	"a corrected error of one":      {map[string]string{`gpu_ras_last{gpu_ras_severity="non_fatal_corrected",` + dev + `}`: "_x360 24x119"}, nil},
	"a page cannot be retired":      {map[string]string{`gpu_memory_retired_pages_failure{` + dev + `}`: from("0", "1")}, []string{"GPUMemoryRepairFailed"}},
	"rows wait to be replaced":      {map[string]string{`gpu_memory_remapped_rows_pending{` + dev + `}`: from("0", "1")}, []string{"GPUMemoryRepairPending"}},
	"a device is reset":             {map[string]string{`gpu_device_resets_total{` + dev + `}`: from("2", "3")}, []string{"GPUDeviceReset"}},
	"a port loses its link":         {map[string]string{`gpu_link_up{gpu_link_index="0",gpu_link_kind="internal",` + dev + `}`: from("1", "0")}, []string{"GPULinkDown"}},
	"a partition of an AMD board is missing": {map[string]string{
		`hw_gpu_memory_usage_bytes{` + amd + `}`:                       "4e10x360 stale",
		`hw_temperature_celsius{hw_sensor_location="gpu",` + amd + `}`: "93x360 stale",
		`hw_status{hw_state="ok",hw_type="gpu",` + amd + `}`:           "1x480",
		`hw_gpu_memory_usage_bytes{k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-c3ff88426fc31c9e/1",hw_parent="GPU-c3ff88426fc31c9e",gpu_index="9"}`: "5e9x480",
	}, nil},
	"an AMD board is hot":           {map[string]string{`hw_temperature_celsius{hw_sensor_location="gpu",` + amd + `}`: from("93", "97")}, []string{"GPUTemperatureHigh"}},
	"an AMD board is too hot":       {map[string]string{`hw_temperature_celsius{hw_sensor_location="gpu",` + amd + `}`: from("93", "101")}, []string{"GPUTemperatureCritical", "GPUTemperatureHigh"}},
	"PCIe replays":                  {map[string]string{`gpu_pcie_replays_total{` + dev + `}`: "0x360 0+2x119"}, []string{"GPUPCIeReplays"}},
	"a board fails":                 {health("ok", "failed"), []string{"GPUHealthFailed"}},
	"a board is predicted to fail":  {health("ok", "predicted_failure"), []string{"GPUHealthPredicted"}},
	"a board is degraded":           {health("ok", "degraded"), []string{"GPUHealthDegraded"}},
	"a board is not known any more": {silent(), []string{"GPUHealthUnknown"}},
	"a board is a straggler":        {map[string]string{`gpu_straggler{gpu_straggler_cause="clock",` + dev + `}`: "_x360 1x119"}, []string{"GPUStraggler"}},
	"a board was never there":       {map[string]string{`gpu_health_reason{gpu_health_reason="count",gpu_health_action="check_mechanics",hw_state="failed",` + node + `}`: "_x360 1x119"}, []string{"GPUBoardsMissing"}},
	"a board fails with an XID": {
		with(health("ok", "failed"), map[string]string{`gpu_xid_errors_total{gpu_xid_code="79",` + dev + `}`: "_x360 1x119"}),
		[]string{"GPUHealthFailed", "GPUXIDFatal"},
	},
	"a node is gone with all that is known of its boards": {
		with(with(unread(), silent()), map[string]string{`gpu_exporter_up{` + exp + `}`: "1x360", `gpu_node_schedulable{` + node + `}`: "1x360"}),
		[]string{"GPUNodeLost"},
	},
	"a health watch fails": {
		map[string]string{`gpu_health_status{gpu_health_state="fail",gpu_health_watch="mem",` + dev + `}`: from("0", "1")}, []string{"GPUHealthWatchFailed"},
	},
	"86 degrees":           {map[string]string{`hw_temperature_celsius{hw_sensor_location="gpu",` + dev + `}`: from("70", "86")}, []string{"GPUTemperatureHigh"}},
	"memory at 96 degrees": {map[string]string{`hw_temperature_celsius{hw_sensor_location="memory",` + dev + `}`: from("92", "96")}, []string{"GPUTemperatureHigh"}},
	"91 degrees": {
		map[string]string{`hw_temperature_celsius{hw_sensor_location="gpu",` + dev + `}`: from("70", "91")}, []string{"GPUTemperatureHigh", "GPUTemperatureCritical"},
	},
	"memory at 96 percent": {map[string]string{`hw_gpu_memory_utilization_ratio{` + dev + `}`: from("0.5", "0.96")}, []string{"GPUMemoryPressure"}},
	"memory at 99 percent": {
		map[string]string{`hw_gpu_memory_utilization_ratio{` + dev + `}`: from("0.5", "0.99")}, []string{"GPUMemoryPressure", "GPUMemoryPressureCritical"},
	},
	"a board full of instances that are not": {
		map[string]string{
			`hw_gpu_memory_utilization_ratio{` + dev + `}`: from("0.5", "0.99"),
			`hw_gpu_memory_utilization_ratio{` + strings.Replace(dev, `hw_id="GPU-1"`, `hw_id="GPU-1/7",hw_parent="GPU-1",gpu_mig_instance_id="7"`, 1) + `}`: "0.5x480",
		}, nil,
	},
	"the gateway is gone": {
		map[string]string{
			`otelcol_gpu_summary_services_tracked{` + own + `}`: "5x360",
		}, []string{"GPUGatewayGone"},
	},
	"the gateway of one cluster is gone": {
		map[string]string{
			`gpu_service_pods{gpu_pod_state="reporting",k8s_cluster_name="c2",k8s_namespace_name="ml",service_name="chat"}`: "3x360",
		}, []string{"GPUGatewayGone"},
	},
	"a collector is down": {map[string]string{`up{` + own + `}`: from("1", "0")}, []string{"GPUCollectorDown"}},
	"scrapes time out":    {map[string]string{`otelcol_dcgm_receiver_scrapes{outcome="timeout",` + own + `}`: "0x360 0+5x119"}, []string{"GPUScrapesFailing"}},
	"scrapes of one of two receivers time out": {
		map[string]string{
			`otelcol_amd_gpu_receiver_scrapes{outcome="timeout",` + own + `}`: "0x360 0+1x119",
			`otelcol_amd_gpu_receiver_scrapes{outcome="ok",` + own + `}`:      "0+1x480",
		}, []string{"GPUScrapesFailing"},
	},
	"the memory limiter refuses":                    {map[string]string{`otelcol_processor_memory_limiter_refused_metric_points{processor="memory_limiter",` + own + `}`: "0x360 0+5x119"}, []string{"GPUCollectorRefusing"}},
	"the memory limiter refuses applications first": {map[string]string{`otelcol_processor_memory_limiter_refused_metric_points{processor="memory_limiter/apps",` + own + `}`: "0x360 0+5x119"}, nil},
	"telemetry is refused":                          {map[string]string{`otelcol_receiver_refused_metric_points{receiver="otlp",` + own + `}`: "0x360 0+5x119"}, []string{"GPUTelemetryRefused"}},
	"a queue fills": {
		map[string]string{`otelcol_exporter_queue_size{exporter="gpu_store",data_type="metrics",` + own + `}`: from("10", "900")}, []string{"GPUQueueFull"},
	},
	"the queue of the webhooks fills": {
		map[string]string{`otelcol_exporter_queue_size{exporter="webhook",data_type="logs",` + own + `}`: from("10", "900")}, []string{"GPUQueueFull"},
	},
	"points are dropped by a full queue": {map[string]string{`otelcol_exporter_enqueue_failed_metric_points{exporter="gpu_store",` + own + `}`: "_x360 500x119"}, []string{"GPUTelemetryDropped"}},
	"points are dropped after retries":   {map[string]string{`otelcol_exporter_send_failed_metric_points{exporter="gpu_store",` + own + `}`: "0x360 0+1x119"}, []string{"GPUTelemetryDropped"}},
	"too many services":                  {map[string]string{`otelcol_gpu_summary_limit_refusals{limit="services",` + own + `}`: "_x360 1x119"}, []string{"GPULimitReached"}},
	"an application tries names of GPUs": {map[string]string{`otelcol_app_guard_dropped_points{reason="reserved",` + own + `}`: "_x360 1x119"}, []string{"GPUReservedNames"}},
	"an application tries events":        {map[string]string{`otelcol_app_guard_dropped_log_records{reason="reserved",` + own + `}`: "0x360 0+1x119"}, []string{"GPUReservedNames"}},
	"an application sends too much":      {map[string]string{`otelcol_app_guard_dropped_points{reason="rate",` + own + `}`: "_x360 1+9x119"}, nil},
	"events are refused":                 {map[string]string{`otelcol_gpu_events_refused{event="gpu.xid",` + own + `}`: "_x360 1x119"}, []string{"GPUEventsRefused"}},
	"the state cannot be kept":           {map[string]string{`otelcol_gpu_events_state_failures{` + own + `}`: "_x360 1x119"}, []string{"GPUEventStateFailing"}},
	"the store is full":                  {map[string]string{`otelcol_extension_gpu_store_samples_refused{reason="max_series",` + own + `}`: "_x360 1+9x119"}, []string{"GPUStoreRefusingSamples"}},
	"the store's log fails":              {map[string]string{`otelcol_extension_gpu_store_log_failures{kind="event",reason="write_failed",` + own + `}`: "_x360 1x119"}, []string{"GPUStoreLogFailing"}},
	"a webhook fails for the first time": {
		map[string]string{`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="failed",error_type="http_5xx",` + own + `}`: "_x360 1x119"}, []string{"GPUWebhookFailing"},
	},
	"a webhook fails again": {
		map[string]string{`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="failed",error_type="http_5xx",` + own + `}`: from("4", "5")}, []string{"GPUWebhookFailing"},
	},
	"a webhook's queue is full": {
		map[string]string{`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="dropped",error_type="queue_full",` + own + `}`: "_x360 1x119"}, []string{"GPUWebhookQueueFull"},
	},
	"a webhook is gone":       {map[string]string{`otelcol_exporter_webhook_receiver_disabled{receiver="ops",` + own + `}`: from("0", "1")}, []string{"GPUWebhookDisabled"}},
	"a webhook's file is bad": {map[string]string{`otelcol_exporter_webhook_receiver_files_skipped{reason="invalid_json",` + own + `}`: "_x360 1x119"}, []string{"GPUWebhookFilesSkipped"}},
	"webhook storage fails":   {map[string]string{`otelcol_exporter_webhook_storage_failures{operation="write",` + own + `}`: "_x360 1x119"}, []string{"GPUWebhookStorageFailing"}},
	"the audit file fails":    {map[string]string{`otelcol_exporter_webhook_audit_failures{` + own + `}`: from("0", "1")}, []string{"GPUAuditFailing"}},
	"audit records wait":      {map[string]string{`otelcol_exporter_webhook_audit_buffered_records{` + own + `}`: from("0", "3")}, []string{"GPUAuditFailing"}},
	"audit records are lost":  {map[string]string{`otelcol_exporter_webhook_audit_lost_records{` + own + `}`: from("0", "2")}, []string{"GPUAuditRecordsLost"}},
	"an audit log does not verify": {
		map[string]string{`otelcol_exporter_webhook_audit_set_aside{` + own + `}`: from("0", "1")}, []string{"GPUAuditSetAside"},
	},
	"an application fails": {
		map[string]string{`http_server_request_duration_seconds_count{http_response_status_code="503",` + svc + `}`: "0x360 0+30x119"}, []string{"GPUAppErrorRate"},
	},
	"generations fail": {
		map[string]string{
			`gen_ai_server_request_duration_seconds_count{` + svc + `}`:                      "0+100x480",
			`gen_ai_server_request_duration_seconds_count{error_type="timeout",` + svc + `}`: "0x360 0+30x119",
		}, []string{"GPUAppErrorRate"},
	},
	"an application is slow": {
		map[string]string{
			`http_server_request_duration_seconds_bucket{le="0.5",` + svc + `}`: "0+100x480",
			`http_server_request_duration_seconds_bucket{le="1",` + svc + `}`:   "0+150x480",
		}, []string{"GPUAppLatencyP95", "GPUAppLatencyP99"},
	},
	"accuracy falls": {map[string]string{`app_accuracy_ratio{` + svc + `}`: from("0.9", "0.7")}, []string{"GPUAppAccuracyDrop"}},
}

// Every alert fires in its scenario, with what belongs to it and nothing else, and
// none but the watchdog before.
func TestScenarios(t *testing.T) {
	t.Parallel()
	unfired := map[string]bool{}
	for _, g := range newJudge(t, promqltest.LoadedStorage(t, ""), judge.NewEngine(), everything).Groups {
		for _, r := range g.AlertingRules() {
			unfired[r.Name()] = true
		}
	}
	require.Greater(t, len(unfired), 40)
	watchdog := map[string]bool{"GPUWatchdog": true}
	scenario{}.play(t, "healthy", healthy, everything, watchdog, unfired)
	for _, of := range []struct {
		scenarios map[string]scenario
		healthy   map[string]string
		about     about
		firing    map[string]bool
	}{
		{scenarios, healthy, devices, watchdog}, {presenceScenarios, healthy, devices, watchdog}, {costScenarios, healthy, devices, watchdog}, {schedulingScenarios, capacity, ofScheduling, nil},
		{trainingScenarios, trains, ofTraining, nil}, {collectiveScenarios, together, ofCollectives, nil},
		{inferenceScenarios, healthyInference, inference, nil}, {previousScenarios, healthy, inference, nil},
	} {
		for _, name := range slices.Sorted(maps.Keys(of.scenarios)) {
			of.scenarios[name].play(t, name, of.healthy, of.about, of.firing, unfired)
		}
	}
	delete(unfired, "GPUWatchdog")
	assert.Empty(t, unfired, "alerts that no scenario makes fire")
}

// play evaluates rules over the series, of which always fires what fires without them
// too, and takes the alerts that it fires from the unfired.
func (s scenario) play(t *testing.T, name string, base map[string]string, of about, always, unfired map[string]bool) {
	for _, a := range s.alerts {
		delete(unfired, a)
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		all := maps.Clone(base)
		maps.Copy(all, s.series)
		j := newJudge(t, promqltest.LoadedStorage(t, load(all)), judge.NewEngine(), of)
		constant := len(s.series) > 0 && !strings.Contains(strings.Join(slices.Collect(maps.Values(s.series)), ""), "360")
		want := map[string]bool{}
		maps.Copy(want, always)
		for i := begin - 40; i < begin; i++ {
			if got := j.At(t, sampled(i)); i == begin-1 && !constant {
				assert.Equal(t, want, got, "before")
			}
		}
		fired := map[string]bool{}
		for i := begin; i < begin+110; i++ {
			maps.Copy(fired, j.At(t, sampled(i)))
		}
		for _, a := range s.alerts {
			want[a] = true
		}
		assert.Equal(t, want, fired)
	})
}

// load is series for promqltest, sampled when a sample is from.
func load(series map[string]string) string {
	var text strings.Builder
	text.WriteString("load 30s\n")
	for _, name := range slices.Sorted(maps.Keys(series)) {
		text.WriteString("  " + name + " " + series[name] + "\n")
	}
	return text.String()
}
func sampled(i int) time.Time { return time.Unix(int64(i)*30, 0) }
