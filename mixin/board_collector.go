// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func collectorBoard() board {
	here := queries.And(chosen("job", "job"), chosen("instance", "instance"))
	with := func(labels []string) string {
		legend := "{{instance}}"
		if len(labels) > 0 {
			legend += " " + name(labels...)
		}
		return legend
	}
	gauge := func(title, description, unit, metric string, labels ...string) panel {
		return lines(title, description, unit, query{expr: most(last(queries.Of(metric, here)), append(process[:len(process):len(process)], labels...)...), legend: with(labels)})
	}
	flow := func(title, description, metric string, labels ...string) panel {
		return lines(title, description, units.CountsPerSecond, query{expr: sum(rate(queries.Of(metric, here)), append(process[:len(process):len(process)], labels...)...), legend: with(labels)})
	}
	queue := gauge("Queues", "What waits to be sent. At the capacity, telemetry is dropped.", units.Short, queries.OwnQueueSize, "exporter", "data_type")
	queue.queries = append(queue.queries, query{
		expr: most(last(queries.Of(queries.OwnQueueCapacity, here)), append(process[:len(process):len(process)], "exporter", "data_type")...), legend: with([]string{"exporter", "data_type"}) + " capacity",
	})
	cpu := lines("CPU", "Cores in use by the process.", units.PercentUnit, query{expr: sum(rate(queries.Of(queries.OwnCPU, here)), process...), legend: with(nil)})
	evaluation := lines("Evaluation of services, p99", "How long gpu_summary takes for all services.", units.Seconds, query{
		expr:   "histogram_quantile(0.99, " + sum(rate(queries.Of(queries.OwnEvaluation+"_bucket", here)), append(process[:len(process):len(process)], "le")...) + ")",
		legend: with(nil),
	})
	return board{
		uid: "otelcol-gpu-collector", title: "GPU telemetry collector",
		description: "Agents and gateways themselves: what comes in, what goes out, what is refused, webhooks and their audit. Needs a scrape of their port 8888.",
		variables: []variable{
			{"job", "Job", "Prometheus job of the scrape of port 8888.", queries.OwnUptime + ", job"},
			{"instance", "Instance", "Agent or gateway.", queries.Of(queries.OwnUptime, chosen("job", "job")) + ", instance"},
		},
		rows: []row{
			{"Process", []panel{
				gauge("Memory", "Resident memory of the process.", units.BytesIEC, queries.OwnMemory), cpu,
				gauge("Uptime", "A fall is a restart.", units.Seconds, queries.OwnUptime), evaluation,
			}},
			{"Telemetry", []panel{
				flow("Received", "Points a second, by receiver.", queries.OwnReceived, "receiver"),
				flow("Sent", "Points a second, by exporter.", queries.OwnSent, "exporter"),
				flow("Refused", "Points that receivers had to refuse: the memory limit, or what comes next.", queries.OwnReceiverRefused, "receiver"),
				queue,
				flow("Scrapes of GPU exporters", "By outcome; anything but ok is a hole.", queries.OwnScrapes, "outcome"),
				flow("Rows without data", "By reason. Sentinels and stale markers are normal.", queries.OwnRowsRefused, "reason"),
			}},
			{"GPUs", []panel{
				gauge("Devices", "On the newest pages of all exporters.", units.Short, queries.OwnDevices),
				gauge("Devices without a known owner", "Neither owned, nor free, nor shared.", units.Short, queries.OwnUnattributed),
				gauge("Services", "In memory of gpu_summary.", units.Short, queries.OwnServices),
				gauge("Pods", "In memory of gpu_summary.", units.Short, queries.OwnPods),
				gauge("Age of the kubelet's answer", "Of agents. After three intervals owners are no longer reported.", units.Seconds, queries.OwnSnapshotAge),
			}},
			{"Events and webhooks", []panel{
				gauge("Events", "Raised and cleared since the start.", units.Short, queries.OwnEvents, "event", "state"),
				gauge("Raised now", "Conditions that are not over.", units.Short, queries.OwnEventsRaised),
				gauge("Deliveries", "To webhooks, by what became of them.", units.Short, queries.OwnDeliveries, "receiver", "outcome"),
				gauge("Webhook queues", "Deliveries that wait for their receiver.", units.Short, queries.OwnWebhookQueue, "receiver"),
				gauge("Audit records", "Written to the audit file.", units.Short, queries.OwnAuditWritten),
				gauge("Audit failures", "Operations on the audit file that failed.", units.Short, queries.OwnAuditFailures),
			}},
			{"Store", []panel{
				flow("Samples", "Samples stored a second.", queries.OwnStoreSamples),
				gauge("Series", "Series in the memory of gpu_store.", units.Short, queries.OwnStoreSeries),
				gauge("Size", "Of the files with samples.", units.BytesIEC, queries.OwnStoreSize),
			}},
		},
	}
}
