// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics of devices that the dashboards and rules read beside those of names.go.
var (
	MemoryUtilization = names.GPUMemoryUtilization.Prometheus()
	Energy            = names.HwEnergy.Prometheus()
	Clock             = names.GPUClockFrequency.Prometheus()
	ThrottleDuration  = names.GPUThrottleDuration.Prometheus()
	PCIeThroughput    = names.GPUPCIeThroughput.Prometheus()
	NVLinkThroughput  = names.GPUNVLinkThroughput.Prometheus()
	PCIeReplays       = names.GPUPCIeReplays.Prometheus()
	RemappedRows      = names.GPURemappedRows.Prometheus()
	RowRemapFailure   = names.GPURowRemapFailure.Prometheus()
	RetiredPending    = names.GPURetiredPending.Prometheus()
	HealthStatus      = names.GPUHealthStatus.Prometheus()
)

// Labels.
const (
	ClockDomain = "gpu_clock_domain"
	Direction   = "network_io_direction"
	HealthWatch = "gpu_health_watch"
	HealthState = "gpu_health_state"
	HwType      = "hw_type"
)

// Metrics of scheduling that only the dashboards and rules read.
var (
	ScheduleDuration = names.SchedulingSchedule.Prometheus()
	StartDuration    = names.SchedulingStart.Prometheus()
	FirstUseDuration = names.SchedulingFirstUse.Prometheus()
	NeverUsed        = names.SchedulingNeverUsed.Prometheus()
	SchedulerUp      = names.SchedulerUp.Prometheus()
)

// QueueDevices is recorded: the queues of all schedulers in one view.
const QueueDevices = "gpu:queue_devices"

// Labels of these.
const (
	SchedulerName  = "gpu_scheduler_name"
	QueueScheduler = "scheduler"
	QueueOf        = "queue"
	QueueState     = "state"
)

// The Collector's own telemetry, as its own endpoint writes it: counters without
// _total, and without units.
const (
	OwnReceived            = "otelcol_receiver_accepted_metric_points"
	OwnReceiverRefused     = "otelcol_receiver_refused_metric_points"
	OwnMemoryRefused       = "otelcol_processor_memory_limiter_refused_metric_points"
	OwnSent                = "otelcol_exporter_sent_metric_points"
	OwnSendFailed          = "otelcol_exporter_send_failed_metric_points"
	OwnEnqueueFailed       = "otelcol_exporter_enqueue_failed_metric_points"
	OwnQueueSize           = "otelcol_exporter_queue_size"
	OwnQueueCapacity       = "otelcol_exporter_queue_capacity"
	OwnMemory              = "otelcol_process_memory_rss"
	OwnCPU                 = "otelcol_process_cpu_seconds"
	OwnUptime              = "otelcol_process_uptime"
	OwnSnapshotAge         = "otelcol_gpu_allocation_snapshot_age"
	OwnUnattributed        = "otelcol_gpu_pod_devices_unattributed"
	OwnServices            = "otelcol_gpu_summary_services_tracked"
	OwnPods                = "otelcol_gpu_summary_pods_tracked"
	OwnEvaluation          = "otelcol_gpu_summary_evaluation_duration"
	OwnSummaryLimits       = "otelcol_gpu_summary_limit_refusals"
	OwnGuardPoints         = "otelcol_app_guard_dropped_points"
	OwnGuardRecords        = "otelcol_app_guard_dropped_log_records"
	OwnEvents              = "otelcol_gpu_events_emitted"
	OwnEventsRaised        = "otelcol_gpu_events_raised"
	OwnEventsRefused       = "otelcol_gpu_events_refused"
	OwnEventsState         = "otelcol_gpu_events_state_failures"
	OwnCostLag             = "otelcol_gpu_cost_lag"
	OwnCostUnpriced        = "otelcol_gpu_cost_unpriced"
	OwnCostRefused         = "otelcol_gpu_cost_refused_points"
	OwnCostStore           = "otelcol_gpu_cost_store_failures"
	OwnDeliveries          = "otelcol_exporter_webhook_deliveries"
	OwnWebhookQueue        = "otelcol_exporter_webhook_queue_length"
	OwnReceiverDisabled    = "otelcol_exporter_webhook_receiver_disabled"
	OwnWebhookFilesSkipped = "otelcol_exporter_webhook_receiver_files_skipped"
	OwnWebhookStorage      = "otelcol_exporter_webhook_storage_failures"
	OwnAuditWritten        = "otelcol_exporter_webhook_audit_written_records"
	OwnAuditFailures       = "otelcol_exporter_webhook_audit_failures"
	OwnAuditBuffered       = "otelcol_exporter_webhook_audit_buffered_records"
	OwnAuditLost           = "otelcol_exporter_webhook_audit_lost_records"
	OwnAuditSetAside       = "otelcol_exporter_webhook_audit_set_aside"
	OwnStoreSamples        = "otelcol_extension_gpu_store_samples"
	OwnStoreRefused        = "otelcol_extension_gpu_store_samples_refused"
	OwnStoreSeries         = "otelcol_extension_gpu_store_series"
	OwnStoreSize           = "otelcol_extension_gpu_store_size"
	OwnStoreLogFailures    = "otelcol_extension_gpu_store_log_failures"
)

// Ends of the names of the Collector's own telemetry about receivers of GPUs, of which each has
// metrics of its own.
const (
	OwnScrapes     = "scrapes"
	OwnRowsRefused = "rows_refused"
	OwnDevices     = "devices"
)

// OwnReceiver is the label that EachReceiver adds: dcgm, whatever the receiver's name is in the
// configuration.
const OwnReceiver = "gpu_receiver"

// Receivers are the receivers of GPUs.
var Receivers = []string{"dcgm", "nvml", "amd_gpu", "gaudi", "intel_gpu"}

// EachReceiver applies an expression to a metric that every receiver of GPUs has under a name
// of its own, and adds which receiver it is of.
func EachReceiver(metric string, s Selector, expr func(series string) string) string {
	parts := make([]string, len(Receivers))
	for i, r := range Receivers {
		name := metric
		if r == "nvml" && metric == OwnRowsRefused {
			name = "values_refused" // a driver's library has no rows
		}
		parts[i] = `label_replace(` + expr(of("otelcol_"+r+"_receiver_"+name, s)) + `, "` + OwnReceiver + `", "` + r + `", "", "")`
	}
	return strings.Join(parts, " or ")
}

// ServiceDashboard is the uid of the dashboard of a service.
const ServiceDashboard = "otelcol-gpu-service"

// Of is a series selector, By the clause that keeps labels, General the
// utilization that counts, for expressions that are put together elsewhere.
func Of(metric string, selectors ...Selector) string { return of(metric, selectors...) }
func By(labels ...string) string                     { return by(labels...) }
func General(selectors ...Selector) string           { return general(selectors...) }

// Metrics of training that only the dashboards and rules read.
var (
	TrainingNonfinite    = names.TrainingNonfinite.Prometheus()
	TrainingSkipped      = names.TrainingStepsSkipped.Prometheus()
	TrainingCheckpoint   = names.TrainingCheckpointDuration.Prometheus()
	TrainingDataWaitTime = names.TrainingDataWait.Prometheus()
)
