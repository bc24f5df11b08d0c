// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"

// rule is one of the collector's own metrics that should be 0, or a gauge that
// should stay below a bound.
type rule struct {
	metric string
	// label and fine: samples with one of these values are as it should be. An
	// exporter is named by its type.
	label string
	fine  []string
	only  []string // instead of fine: only these are not as they should be
	// gauge: the value of now counts, and above is the bound.
	gauge bool
	above float64
	warns bool // it is no failure: another check knows whether it is
	means string
	// remedy names what to look at; each has a runbook or a README with more.
	remedy string
}

// rules in the order of their results. Counters are since the collector's start.
var rules = append(receiverRules(), ownRules...)

// receiverRules are those of the receivers of exporters, which have the same metrics.
func receiverRules() (all []rule) {
	for _, receiver := range config.ExporterReceivers {
		lines := "look at that line: gpuctl doctor exporter names the first"
		if receiver == "dcgm" {
			lines = "mostly a field that is a text: in the exporter's counters file label as the type of a STRING field, BINARY ones out; gpuctl doctor exporter names the first line"
		}
		all = append(all,
			rule{metric: scrapesOf(receiver), label: "outcome", fine: []string{"ok"}, means: "scrapes that gave nothing", remedy: "the log names cause and remedy (exporter gives no GPU metrics); gpuctl doctor exporter"},
			rule{metric: refusedBy(receiver), label: "reason", only: []string{"limit"}, means: "rows beyond a limit of one target", remedy: "is it really one exporter's page? The log names a label that is too long (max_labels, max_label_bytes); the receiver's README has the other limits"},
			rule{metric: "otelcol_" + receiver + "_receiver_unknown_fields", gauge: true, warns: true, means: "fields of exporters' pages that are not known, where a quantity is missing", remedy: "the exporter may be newer than this collector: the log has the names, and gpuctl doctor exporter the likely quantities"},
			rule{metric: refusedBy(receiver), label: "reason", only: []string{"unparsable"}, means: "lines of a page that are no samples", remedy: lines},
		)
		if receiver != "dcgm" {
			all = append(all, rule{metric: refusedBy(receiver), label: "reason", only: []string{"no_device"}, means: "rows that do not identify their device", remedy: "gpuctl doctor exporter names the label or setting that is missing"})
		}
	}
	return all
}

func scrapesOf(receiver string) string { return "otelcol_" + receiver + "_receiver_scrapes" }
func refusedBy(receiver string) string { return "otelcol_" + receiver + "_receiver_rows_refused" }

// ownRules are those of the other components.
var ownRules = []rule{
	{metric: "otelcol_gpu_allocation_snapshot_age", gauge: true, above: 60, means: "seconds since the kubelet answered", remedy: "nothing is emitted then, and owners expire: gpuctl doctor kubelet"},
	{metric: "otelcol_gpu_allocation_calls", label: "outcome", fine: []string{"ok"}, means: "calls that the kubelet did not answer well", remedy: "the log names cause and remedy; gpuctl doctor kubelet"},
	{metric: "otelcol_gpu_allocation_api_requests", label: "result", fine: []string{"ok", "not_served", "not_found", "other"}, means: "requests of gpu_allocation that the Kubernetes API did not answer well", remedy: "gpuctl doctor kubernetes rbac"},
	{metric: "otelcol_gpu_allocation_entries_refused", means: "devices and containers that were left out of the kubelet's answers", remedy: "raise gpu_allocation::max_devices or max_containers where reason is a limit; else the log names what is odd"},
	{metric: "otelcol_gpu_pod_allocation_age", gauge: true, above: 60, means: "seconds since gpu.allocation was received for a node", remedy: "the kubelet is silent: gpuctl doctor kubelet on that node"},
	{metric: "otelcol_gpu_pod_devices_refused", means: "devices that were not remembered", remedy: "raise gpu_pod::max_devices"},
	{metric: "otelcol_gpu_pod_points_untracked", means: "points of a series that is not tracked: it ages instead of ending", remedy: "raise gpu_pod::max_series"},
	{metric: "otelcol_gpu_pod_points_duplicate", means: "points left out because two exporters report the same device", remedy: "the log names both: scrape each device through one exporter"},
	{metric: "otelcol_gpu_summary_api_requests", label: "result", fine: []string{"ok", "not_served"}, means: "requests of gpu_summary that the Kubernetes API did not answer well", remedy: "gpuctl doctor kubernetes rbac"},
	{metric: "otelcol_gpu_summary_limit_refusals", means: "pods, services or devices that a limit kept out of the averages", remedy: "raise the limit of gpu_summary that the label names"},
	{metric: "otelcol_gpu_summary_expected_pods_refused", means: "expected pods that a limit kept out", remedy: "raise the limit of gpu_summary"},
	{metric: "otelcol_gpu_summary_nodes_silent", gauge: true, means: "nodes with missing pods of which nothing arrived since the start", remedy: "let the agent's DaemonSet run there (tolerations, node selector); name nodes on which it cannot run, such as virtual ones, in gpu_summary::unobserved_nodes"},
	{metric: "otelcol_gpu_summary_points_refused", label: "reason", fine: []string{"late", "duplicate"}, means: "points that the summary cannot use", remedy: "by reason: no_namespace, no_service and no_device came past gpu_pod or k8s_attributes; too_old from a clock that is behind; wrong_unit and wrong_kind not from one of our receivers"},
	{metric: "otelcol_gpu_summary_points_future", means: "points dated more than 30 s ahead", remedy: "a node's clock is wrong: synchronise it (chrony, ntpd)"},
	{metric: "otelcol_gpu_summary_clock_steps", means: "steps of this machine's clock", remedy: "let chrony or ntpd slew the clock instead of setting it"},
	{metric: "otelcol_gpu_summary_evaluations_failed", means: "evaluations that were not accepted", remedy: "the log names who refused them: mostly memory_limiter, raise MEMORY_LIMIT_MIB"},
	{metric: "otelcol_inference_families_renamed", means: "families of engines' pages that are not known and may have a metric that the page lacks", remedy: "the engine may be newer than this collector: the log names the families with the metrics that they may have; install a newer otelcol-gpu"},
	{metric: "otelcol_gpu_events_refused", means: "events that were not raised, too many are", remedy: "raise gpu_events::max_subjects, or look at why so much is wrong at once"},
	{metric: "otelcol_gpu_events_subjects_refused", means: "devices, nodes or services that are not watched", remedy: "raise gpu_events::max_subjects"},
	{metric: "otelcol_gpu_events_input_duplicate", means: "counts of XIDs that two exporters have in turn", remedy: "the log names a device: scrape each device through one exporter"},
	{metric: "otelcol_gpu_events_failures", means: "attempts to hand events on that failed", remedy: "they are tried again; the log names who refused them"},
	{metric: "otelcol_gpu_events_state_failures", means: "failures of the stored state of events", remedy: "gpuctl doctor state"},
	{metric: "otelcol_receiver_refused_metric_points", means: "points that the pipeline refused; their sender tries again", remedy: "the memory limit: raise MEMORY_LIMIT_MIB (gateway) or memory_limiter::limit_mib and the container's limit"},
	{metric: "otelcol_receiver_refused_log_records", means: "events or logs that the pipeline refused; their sender tries again", remedy: "the memory limit: raise MEMORY_LIMIT_MIB (gateway) or memory_limiter::limit_mib and the container's limit"},
	{metric: "otelcol_exporter_enqueue_failed_metric_points", means: "points that were lost, the queue was full", remedy: "the next one is away or slow: gpuctl doctor gateway; then raise sending_queue::queue_size"},
	// Events that a webhook exporter lost are counted per endpoint below.
	{metric: "otelcol_exporter_enqueue_failed_log_records", label: "exporter", fine: []string{"webhook"}, means: "events or logs that were lost, the queue was full", remedy: "the next one is away or slow: gpuctl doctor gateway; then raise sending_queue::queue_size"},
	{metric: "otelcol_exporter_send_failed_metric_points", label: "exporter", only: []string{"gpu_store"}, means: "points that the store did not take", remedy: "its disk did not take them: gpuctl doctor state console; the log names the cause (the store does not keep what arrives)"},
	{metric: "otelcol_exporter_send_failed_metric_points", label: "exporter", fine: []string{"gpu_store"}, means: "points that were given up", remedy: "the next one refused them or was away for longer than retry_on_failure::max_elapsed_time: gpuctl doctor gateway"},
	{metric: "otelcol_exporter_send_failed_log_records", label: "exporter", only: []string{"gpu_store"}, means: "events that the store did not take at once", remedy: "its disk did not take them: make room or make it writable (gpuctl doctor state console); until then they are in memory alone, and are written when it takes them"},
	{metric: "otelcol_exporter_send_failed_log_records", label: "exporter", fine: []string{"gpu_store", "webhook"}, means: "events or logs that were given up", remedy: "the next one refused them or was away for longer than retry_on_failure::max_elapsed_time: gpuctl doctor gateway"},
	{metric: "otelcol_extension_gpu_store_samples_refused", label: "reason", fine: []string{"duplicate", "out_of_order"}, means: "samples that were not stored", remedy: "by reason: max_series (raise STORE_MAX_SERIES), max_bytes or disk_full (a larger volume, a shorter retention), write_failed (gpuctl doctor state), too_new or too_old (clocks)"},
	{metric: "otelcol_extension_gpu_store_log_failures", means: "events and deliveries that the disk did not take at once, or that were damaged there", remedy: "the folder is full or not writable: gpuctl doctor state console; what waits is written when the disk takes it"},
	{metric: "otelcol_exporter_gpu_store_translation_failures", means: "points that Prometheus has no form for", remedy: "send cumulative sums: an application sends delta temporality"},
	{metric: "otelcol_extension_gpu_console_circuit_open", gauge: true, above: 0.5, means: "the console asks the store no more for now", remedy: "the store does not answer: its address, its log"},
	{metric: "otelcol_extension_gpu_console_connections_refused", means: "connections to the console that were closed, 256 were open", remedy: "who holds them: a proxy or a page that is open many times"},
	{metric: "otelcol_extension_gpu_store_connections_refused", means: "connections to the store's API that were closed, 256 were open", remedy: "who holds them: dashboards, scalers; one client with keep-alive needs few"},
	{metric: "otelcol_exporter_webhook_receiver_disabled", gauge: true, above: 0.5, means: "a webhook receiver is switched off, it answered 410", remedy: "if its answer was a mistake: gpuctl webhook enable RECEIVER; else give it its new URL (a changed configuration enables it), or take it out"},
	{metric: "otelcol_exporter_webhook_deliveries", label: "outcome", fine: []string{"succeeded"}, means: "webhook deliveries that did not arrive", remedy: "gpuctl doctor webhook, gpuctl webhook test RECEIVER; the audit log has every attempt"},
	{metric: "otelcol_exporter_webhook_receiver_files_skipped", means: "files in receivers_dir that are no receiver", remedy: "gpuctl doctor webhook names them"},
	{metric: "otelcol_exporter_webhook_storage_failures", means: "failures of the folder that keeps deliveries: they are sent from memory meanwhile, and a kill would lose them", remedy: "make room in STATE_DIRECTORY: gpuctl doctor state"},
	{metric: "otelcol_exporter_webhook_audit_failures", means: "operations on the audit file that failed", remedy: "gpuctl doctor state; then gpuctl audit verify FILE"},
	{metric: "otelcol_exporter_webhook_audit_lost_records", means: "audit records that were lost", remedy: "the audit file could not be written for too long: gpuctl doctor state"},
}

// queueFull is the part of a queue above which it is reported.
const queueFull = 0.8
