// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

func alerts(o options) []group {
	return []group{
		{"otelcol-gpu.health", healthAlerts()},
		{"otelcol-gpu.services", serviceAlerts()},
		{"otelcol-gpu.nodes", nodeAlerts()},
		{"otelcol-gpu.devices", deviceAlerts()},
		{"otelcol-gpu.collector", collectorAlerts()},
		{"otelcol-gpu.webhooks", webhookAlerts()},
		{"otelcol-gpu.usage", costAlerts(o)},
		{"otelcol-gpu.scheduling", schedulingAlerts()},
		{"otelcol-gpu.training", trainingAlerts()},
		{"otelcol-gpu.collectives", collectiveAlerts()},
	}
}

// Texts that name the subject; empty labels leave nothing behind.
const (
	theService = "{{ $labels." + queries.Namespace + " }}{{ $labels." + queries.Account + " }}/{{ $labels." + queries.Service + " }}"
	theNode    = "{{ $labels." + queries.Node + " }}{{ $labels." + queries.Host + " }}"
	theDevice  = "GPU {{ $labels." + queries.Index + " }} of " + theNode + " ({{ $labels." + queries.Device + " }})"
	theProcess = "{{ $labels.instance }}"
)

var (
	process = []string{"job", "instance"}
	nodes   = []string{queries.Cluster, queries.Node}
)

func on(labels ...string) string { return " on (" + strings.Join(labels, ",") + ") " }

func inState(states ...string) queries.Selector { return queries.OneOf(queries.StateOfPod, states...) }

func serviceAlerts() []alert {
	missing := sum(queries.Of(queries.ServicePods, inState("missing")), service...)
	reporting := sum(queries.Of(queries.ServicePods, inState("reporting", "degraded")), service...)
	return []alert{
		{
			name: "GPUServicePartial", severity: warning, event: names.EventServicePartial, wait: "1m",
			expr:    most(queries.ServicePartial, service...) + " == 1",
			summary: "More than a quarter of the settled pods of " + theService + " send no GPU telemetry.",
			meaning: "The averages of the service exclude the missing pods: they are correct for the pods that report.",
			check: []string{
				"Which pods: `gpuctl ps`, the console's service page, or `gpu_pod_state{gpu_pod_state=\"missing\"} == 1`.",
				"Whether they are on one node: then look for GPUExporterDown or GPUNodeLost there.",
				"Whether the pods hold a GPU at all: `kubectl describe pod`, and `gpu_allocation` of the pod.",
			},
			do: []string{
				"One node: restart the dcgm-exporter or the agent there, whichever is down.",
				"Pods over several nodes: compare `gpu_exporter_up` and the agents' logs; a new exporter version may have dropped a field.",
				"Do not scale the service on its average before it is complete.",
			},
		},
		{
			name: "GPUServiceNoData", severity: critical, event: names.EventServiceNoData, wait: "1m",
			expr:    missing + " > 0 unless" + on(service...) + "(" + reporting + " > 0)",
			summary: "No settled pod of " + theService + " sends GPU telemetry.",
			meaning: "There is no average of the service: this is no data, and not idleness.",
			check: []string{
				"Whether other services report: if none does, look at GPUGatewayGone and the agents.",
				"`gpu_exporter_up` of the nodes on which the pods run.",
				"Whether the pods still exist: `kubectl get pods -n NAMESPACE`.",
			},
			do: []string{
				"Bring back exporter or agent on those nodes.",
				"If the exporter is up and names no pods: its kubelet socket is not mounted, or `DCGM_EXPORTER_KUBERNETES` is off.",
			},
		},
		{
			name: "GPUServiceDataOld", severity: warning, wait: "5m",
			expr:    most(queries.ServiceDataAge, service...) + " > 300",
			summary: "Averages of " + theService + " contain data that is {{ $value | humanizeDuration }} old.",
			meaning: "Telemetry arrives late: agents wait, retry, or have a wrong clock.",
			check: []string{
				"Clocks: `timedatectl` on the nodes, `otelcol_gpu_summary_points_future`.",
				"The agents' queues: dashboard GPU telemetry collector.",
			},
			do: []string{"Correct the clock, or give the gateway what it lacks (memory, CPU, network)."},
		},
		{
			name: "GPUIdleHeld", severity: info, event: names.EventIdleHeld,
			expr:    sum(queries.ServiceIdle, service...) + " > 0",
			summary: "{{ $value }} GPUs of " + theService + " are held and idle.",
			meaning: "A settled pod holds devices that have done nothing for `idle_for` of gpu_summary (15 minutes).",
			check: []string{
				"Which: console, service page, column state; dashboard GPU service, row Pods.",
				"Whether the pod waits for something: its log, its queue.",
			},
			do: []string{"Talk to the owner; scale down, or give notebooks a culler. Nothing is broken."},
		},
		{
			name: "GPUFleetIdle", severity: info, wait: "30m",
			expr:    "(" + sum(queries.ServiceIdle, queries.Cluster) + " / " + sum(queries.ServiceDevices, queries.Cluster) + ") > 0.2",
			summary: "{{ $value | humanizePercentage }} of the GPUs that are held are idle.",
			meaning: "More than a fifth of the devices that services hold have done nothing for long.",
			check:   []string{"Dashboard GPU fleet, table of services, column idle."},
			do:      []string{"Start with the services that hold most; see GPUIdleHeld."},
		},
		{
			name: "GPUServiceThrottled", severity: info, wait: "2m",
			expr:    most(queries.Of(queries.Throttle, protecting, set(queries.Service)), service...) + " == 1",
			summary: "A GPU of " + theService + " is slowed down to protect itself.",
			meaning: "Latency and throughput of the service suffer from the hardware. Alertmanager inhibits the alerts on latency and throughput while this fires.",
			check:   []string{"GPUThrottled names the device."},
			do:      []string{"See GPUThrottled; move the pod to another node if it matters."},
		},
	}
}

func nodeAlerts() []alert {
	exporter := []string{queries.Cluster, queries.Node, queries.Address, queries.Port}
	seen := func(within string) string {
		return count("count_over_time("+queries.Of(queries.ExporterUp, set(queries.Node))+"["+within+"])", nodes...)
	}
	return []alert{
		{
			name: "GPUNodeLost", severity: critical, event: names.EventNodeLost, wait: "1m",
			expr: seen("1h") + " unless" + on(nodes...) + seen("3m") +
				" unless" + on(nodes...) + "(" + most("last_over_time("+queries.Schedulable+"[1h])", nodes...) + " == 0)" +
				" unless" + on(nodes...) + "(" + most("last_over_time("+queries.Released+"[3m])", nodes...) + " == 1)",
			summary: "Node " + theNode + " sends no telemetry.",
			meaning: "Neither the exporter nor the agent of the node has reported for three minutes, the node was not cordoned before, and its driver is not released for a change. The alert ends an hour after the last report.",
			check: []string{
				"`kubectl get node`: does it exist, is it Ready.",
				"`kubectl get pods -A --field-selector spec.nodeName=NODE`: is the agent running.",
				"Whether all nodes are lost: then it is the gateway or the network.",
			},
			do: []string{
				"A node that was deleted without a cordon: nothing; silence the alert.",
				"Agent gone, node Ready: restart the agent. Node not Ready: what you do for any node.",
			},
		},
		{
			name: "GPUExporterDown", severity: warning, event: names.EventExporterDown, wait: "1m",
			expr:    least(queries.ExporterUp, exporter...) + " == 0",
			summary: "The GPU exporter of " + theNode + " at {{ $labels." + queries.Address + " }}:{{ $labels." + queries.Port + " }} cannot be scraped.",
			meaning: "There is no telemetry of the GPUs of this exporter; the workloads on them may be fine.",
			check: []string{
				"The exporter's pod or service, and its log.",
				"`curl http://ADDRESS:PORT/metrics` from the agent's node: refused, slow, or cut off.",
				"The agent's log: it names the outcome, and quotes a response that is not a metrics page.",
			},
			do: []string{
				"Restart the exporter. If it dies again: driver and DCGM versions, memory limit of its pod.",
				"A response that is not a metrics page: another server or a login page has the exporter's address.",
			},
		},
		{
			name: "GPUExporterFrozen", severity: warning, event: names.EventExporterDown, wait: "1m",
			expr:    most(queries.Frozen, exporter...) + " == 1",
			summary: "The GPU exporter of " + theNode + " returns values that no longer change.",
			meaning: "Energy and clocks of every device have not changed for several scrapes: the exporter hangs, or what it reads the GPUs with (of dcgm-exporter: the host engine). Averages of services exclude these values, and the pods on these GPUs are degraded.",
			check:   []string{"The vendor's command on the node: does it answer (`nvidia-smi`, `amd-smi`, `hl-smi`, `xpu-smi`).", "The log of the exporter's pod (with NVIDIA's boards `nv-hostengine` there, and XIDs on the node)."},
			do:      []string{"Restart the exporter (and nv-hostengine). If the vendor's command hangs too: drain the node and reboot it."},
		},
		{
			name: "GPUExporterUnrecognized", severity: warning, event: names.EventExporterDown, wait: "1m",
			expr:    most(queries.Unrecognized, exporter...) + " == 1",
			summary: "The GPU exporter of " + theNode + " prints fields that are not known.",
			meaning: "No field of its page is known to be the utilization, memory or power of a device: mostly a new version of the exporter has other names for them. Health and utilization of its GPUs are unknown; the workloads on them may be fine.",
			check: []string{
				"`gpuctl doctor exporter` on the node: the names that are not known, and the quantities that they may be.",
				"Whether the exporter was upgraded, and whether `scrape::metric_relabel_configs` or its counters file leaves the fields out.",
			},
			do: []string{"Install a version of otelcol-gpu that knows this version of the exporter, or the exporter's version from before until there is one."},
		},
		{
			name: "GPUAllocationStale", severity: warning, wait: "5m",
			expr:    most(queries.OwnSnapshotAge, process...) + " > 300",
			summary: "The agent at " + theProcess + " has had no response from its kubelet for {{ $value | humanizeDuration }}.",
			meaning: "The owners of the GPUs on that node are no longer known; gpu_allocation sends nothing for it.",
			check:   []string{"`otelcol_gpu_allocation_calls` by outcome, and the agent's log.", "The socket /var/lib/kubelet/pod-resources/kubelet.sock: mounted, and readable by the agent's user."},
			do:      []string{"Restart the kubelet if it does not answer; else correct mount or security context of the agent."},
		},
	}
}

// codes of XIDs by how much they matter.
func codes(of ...xid.Severity) string {
	var list []string
	for _, code := range xid.Codes() {
		if e, _ := xid.Lookup(code); slices.Contains(of, e.Severity) {
			list = append(list, strconv.Itoa(code))
		}
	}
	return strings.Join(list, "|")
}

func collectorAlerts() []alert {
	reserved := queries.Is("reason", "reserved")
	ofReceiver := append(process[:len(process):len(process)], queries.OwnReceiver)
	scrapes := func(s queries.Selector) string {
		return queries.EachReceiver(queries.OwnScrapes, s, func(series string) string { return "rate(" + series + "[10m])" })
	}
	return []alert{
		{
			name: "GPUGatewayGone", severity: critical, wait: "2m",
			expr: "absent(" + queries.OwnServices + ") or (" + count("count_over_time("+queries.ServicePods+"[1h])", queries.Cluster) +
				" unless" + on(queries.Cluster) + count("count_over_time("+queries.ServicePods+"[5m])", queries.Cluster) + ")",
			summary: "The GPU telemetry gateway{{ with $labels." + queries.Cluster + " }} of cluster {{ . }}{{ end }} is gone.",
			meaning: "Services are not summarised, and no event about a service or a node is raised: the other alerts of this cluster mean nothing now.",
			check: []string{
				"`kubectl get statefulset,pods -l app.kubernetes.io/name=otelcol-gpu-gateway -A`, and the log of its last run.",
				"Whether Prometheus scrapes it: targets page. Its own metrics on 8888 are needed as well as 9464.",
			},
			do: []string{"Bring it back: OOMKilled needs more memory (and MEMORY_LIMIT_MIB), a full volume needs space. Agents hold their data for five minutes and send it then."},
		},
		{
			name: "GPUWatchdog", severity: "none",
			expr:    "vector(1)",
			summary: "Always fires: route it to a heartbeat that notifies when it stops.",
			meaning: "Shows that Prometheus evaluates these rules and Alertmanager delivers. If it stops, the pipeline is broken.",
			check:   []string{"When the heartbeat notifies: is Prometheus up, are the rules loaded, does Alertmanager deliver."},
			do:      []string{"Bring back what is down. Nothing is wrong while this alert fires."},
		},
		{
			name: "GPUCollectorDown", severity: warning, wait: "5m",
			expr:    `up{job=~".*otelcol-gpu.*"} == 0`,
			summary: "Prometheus cannot scrape {{ $labels.job }} at " + theProcess + ".",
			meaning: "An agent or a gateway does not answer, or its port is not open. Jobs are those with otelcol-gpu in their name.",
			check:   []string{"The pod, its log, and its health check on 13133.", "NetworkPolicy between Prometheus and it."},
			do:      []string{"Restart it, or open the port."},
		},
		{
			name: "GPUScrapesFailing", severity: warning, wait: "10m",
			expr: most(sum(scrapes(not("outcome", "ok")), append(ofReceiver, "outcome")...)+
				" /"+on(ofReceiver...)+"group_left () "+sum(scrapes(queries.All), ofReceiver...), append(slices.Clone(process), "outcome")...) + " > 0.1",
			summary: "{{ $labels.outcome }}: more than a tenth of the scrapes of " + theProcess + " fail.",
			meaning: "Exporters respond intermittently, so the series have gaps.",
			check:   []string{"`otelcol_RECEIVER_receiver_scrapes` by outcome, where RECEIVER is one of " + strings.Join(queries.Receivers, ", ") + ". The outcomes of exporters are connect, tls, timeout, http_status, redirect, cut_off, too_large, parse, empty, no_value, no_device, and that the page is not of this exporter; those of the driver are in [its table](../troubleshooting.md#nvidias-driver-nvml).", "How long scrapes take: `gpu_exporter_scrape_duration_seconds`."},
			do:      []string{"timeout: a longer timeout or fewer fields. cut_off: the exporter's proxy or memory. parse: the response is not an exporter's page, the log quotes its beginning. no_value: the host engine behind the exporter, `dmesg` for XIDs. The collector's log has cause and remedy of each."},
		},
		{
			name: "GPUTelemetryRefused", severity: warning, wait: "5m",
			expr:    grew(queries.OwnReceiverRefused, 10*time.Minute, "receiver"),
			summary: theProcess + " refuses telemetry from {{ $labels.receiver }}.",
			meaning: "The memory limit is reached, or the next component does not keep up. Senders try again for five minutes; then it is lost.",
			check:   []string{"Memory: `otelcol_process_memory_rss` against the limit.", "Which exporter's queue is full: dashboard GPU telemetry collector."},
			do:      []string{"More memory (MEMORY_LIMIT_MIB with it), or send raw telemetry past the gateway (config/agent-raw.yaml)."},
		},
		{
			// Not memory_limiter/apps: it refuses applications first, so that GPUs are not.
			name: "GPUCollectorRefusing", severity: critical, wait: "1m",
			expr:    grew(queries.Of(queries.OwnMemoryRefused, queries.Selector(`processor!="memory_limiter/apps"`)), 5*time.Minute, "processor"),
			summary: theProcess + " is short of memory and refuses telemetry ({{ $labels.processor }}).",
			meaning: "Pods and devices that are shown as missing or without data may be healthy: this collector does not accept their telemetry. There is no event for it, because this process would have to raise it; other events and webhooks continue.",
			check: []string{
				"Memory: `otelcol_process_memory_rss` against the limit of the container and MEMORY_LIMIT_MIB.",
				"What grows: `otelcol_extension_gpu_store_series`, queries of the store (`max_samples`), `otelcol_gpu_summary_pods_tracked`, telemetry of applications.",
			},
			do: []string{"More memory, and MEMORY_LIMIT_MIB with it; or less to hold: a lower `max_series` of gpu_store, applications elsewhere. When it accepts again, agents send what they kept for five minutes."},
		},
		{
			name: "GPUQueueFull", severity: warning, wait: "5m",
			expr:    "(" + most(queries.OwnQueueSize, append(slices.Clone(process), "exporter", "data_type")...) + " / " + most(queries.OwnQueueCapacity, append(slices.Clone(process), "exporter", "data_type")...) + ") > 0.8",
			summary: "The queue of {{ $labels.exporter }} at " + theProcess + " is {{ $value | humanizePercentage }} full.",
			meaning: "What it sends to is slow or away. When the queue is full, telemetry is dropped; of exporter webhook, events.",
			check: []string{
				"`otelcol_exporter_send_failed_metric_points`, and the log: it names the cause.",
				"The receiving end: gateway, Prometheus, store.",
				"Exporter webhook: the receiving end is an endpoint. `otelcol_exporter_webhook_queue_length` and `_retries_waiting` by receiver show which one; `gpuctl webhook test NAME`, and its lines in the audit log, show why.",
			},
			do: []string{
				"Repair the receiving end; the queue empties by itself. If it is always near full, give the receiving end more.",
				"Exporter webhook: fewer events for that endpoint (`events`, `min_severity`), or more `workers` for it. The queue is that of all endpoints together: GPUWebhookQueueFull fires when the queue of one of them drops events.",
			},
		},
		{
			name: "GPUTelemetryDropped", severity: critical,
			expr:    grew(queries.OwnEnqueueFailed, 10*time.Minute, "exporter") + " or " + grew(queries.OwnSendFailed, 10*time.Minute, "exporter"),
			summary: "{{ $labels.exporter }} at " + theProcess + " has lost {{ $value | humanize }} points in ten minutes.",
			meaning: "A queue was full, or retries were exhausted: what was dropped does not come back.",
			check:   []string{"The exporter's log lines.", "GPUQueueFull for the same exporter."},
			do:      []string{"Repair the receiving end. Mark the time: sums over it are too small."},
		},
		{
			name: "GPULimitReached", severity: warning,
			expr:    grew(queries.OwnSummaryLimits, 10*time.Minute, "limit"),
			summary: "gpu_summary at " + theProcess + " leaves points out: the limit of {{ $labels.limit }} is reached.",
			meaning: "There are more pods, services or devices than the configuration allows. Some services are not in the summary.",
			check:   []string{"`otelcol_gpu_summary_pods_tracked` and `_services_tracked`.", "A label that changes with every run (a job's id as service.name) makes services without end."},
			do:      []string{"Raise `max_pods` or `max_services`, with memory; or correct service.name."},
		},
		{
			name: "GPUReservedNames", severity: warning,
			expr:    grew(queries.Of(queries.OwnGuardPoints, reserved), 10*time.Minute) + " or " + grew(queries.Of(queries.OwnGuardRecords, reserved), 10*time.Minute),
			summary: "An application sends " + theProcess + " metrics or events under names of GPUs or of the collector.",
			meaning: "app_guard has dropped them, so what is shown of GPUs is right. An application may be trying to make a GPU or a service look other than it is.",
			check: []string{
				"The collector's log: app_guard names the sender and the first name of each cause.",
				"What that is: an exporter of GPUs or a collector that sends its own telemetry to the port of applications, or neither.",
			},
			do: []string{
				"Send what is about GPUs through the dcgm receiver, and a collector's own telemetry to Prometheus; or list names of the collector or of Prometheus in `allow` of app_guard.",
				"Neither: talk to the owner of the workload. A NetworkPolicy keeps others from that port.",
			},
		},
		{
			name: "GPUEventsRefused", severity: warning,
			expr:    grew(queries.OwnEventsRefused, 10*time.Minute, "event"),
			summary: "Events {{ $labels.event }} were not raised at " + theProcess + ".",
			meaning: "`max_subjects` conditions are raised already, or too many events wait.",
			check:   []string{"`otelcol_gpu_events_raised`, and whether the log pipeline stands still."},
			do:      []string{"Raise `max_subjects`, or repair what takes the events."},
		},
		{
			name: "GPUEventStateFailing", severity: warning,
			expr:    grew(queries.OwnEventsState, 10*time.Minute),
			summary: "gpu_events at " + theProcess + " cannot keep its state.",
			meaning: "After a restart conditions may be raised twice, or never be cleared.",
			check:   []string{"STATE_DIRECTORY: mounted, writable, not full."},
			do:      []string{"Give it space or rights; the state is written again with the next change."},
		},
		{
			name: "GPUStoreRefusingSamples", severity: warning,
			expr:    grew(queries.Of(queries.OwnStoreRefused, queries.Selector(`reason!~"duplicate|out_of_order"`)), 10*time.Minute, "reason"),
			summary: "gpu_store at " + theProcess + " refuses samples: {{ $labels.reason }}.",
			meaning: "The console and other clients of the store see incomplete data. Duplicates and late samples do not count here.",
			check:   []string{"The reason: max_series, max_bytes, disk_full and write_failed are the store's; too_old, too_new, invalid are the sender's."},
			do: []string{
				"max_series: raise it (STORE_MAX_SERIES) with memory, or use an engine of its own. disk_full, max_bytes: space, or a shorter retention.",
				"too_new: correct the sender's clock.",
			},
		},
		{
			name: "GPUStoreLogFailing", severity: warning,
			expr:    grew(queries.OwnStoreLogFailures, 10*time.Minute, "kind", "reason"),
			summary: "gpu_store at " + theProcess + " cannot keep its log of events: {{ $labels.reason }}.",
			meaning: "The console may not show every event and delivery. The audit file is not concerned.",
			check:   []string{"The store's directory: writable, not full."},
			do:      []string{"Give it space; damaged entries are skipped."},
		},
	}
}
