// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func webhookAlerts() []alert {
	return []alert{
		{
			name: "GPUWebhookFailing", severity: warning,
			expr:    grew(queries.Of(queries.OwnDeliveries, matching("outcome", "failed|blocked")), 15*time.Minute, "receiver", queries.ErrorType),
			summary: "Webhook {{ $labels.receiver }} does not get its events: {{ $labels." + queries.ErrorType + " }}.",
			meaning: "Deliveries were given up. This endpoint does not receive its events.",
			check:   []string{"The audit log: `grep '\"receiver\":\"NAME\"' audit.jsonl | tail` has status, error and durations.", "`gpuctl webhook test NAME`."},
			do: []string{
				"http_4xx: URL, key or format. ssrf_blocked: `allow_cidrs` or `allow_ports`, if the address is meant. dns, connect, tls, timeout: the way to it.",
				"`gpuctl webhook replay EVENT-ID --receiver NAME` sends again what was lost.",
			},
		},
		{
			name: "GPUWebhookQueueFull", severity: critical,
			expr:    grew(queries.Of(queries.OwnDeliveries, queries.Is(queries.ErrorType, "queue_full")), 15*time.Minute, "receiver"),
			summary: "The queue of webhook {{ $labels.receiver }} is full: events are dropped.",
			meaning: "The receiver is slower than events come.",
			check:   []string{"`otelcol_exporter_webhook_queue_length` and `_retries_waiting` of the receiver.", "How long it takes to answer: audit log, durations."},
			do:      []string{"Fewer events for it (`events`, `min_severity`), `group_wait`, a shorter timeout; or a faster receiver."},
		},
		{
			name: "GPUWebhookDisabled", severity: warning,
			expr:    most(queries.OwnReceiverDisabled, append(process[:len(process):len(process)], "receiver")...) + " == 1",
			summary: "Webhook {{ $labels.receiver }} answered 410 Gone and gets nothing.",
			meaning: "The endpoint reports that it no longer exists.",
			check:   []string{"Whether its URL changed."},
			do:      []string{"If the answer was a mistake (a proxy or ingress in between): `gpuctl webhook enable RECEIVER`.", "Else change its configuration, which enables it too, or remove it."},
		},
		{
			name: "GPUWebhookFilesSkipped", severity: warning,
			expr:    grew(queries.OwnWebhookFilesSkipped, 15*time.Minute, "reason"),
			summary: "A file in receivers_dir cannot be used: {{ $labels.reason }}.",
			meaning: "A configured receiver does not exist.",
			check:   []string{"The Collector's log: it names the file."},
			do:      []string{"Correct the ConfigMap or Secret; it is read again without a restart."},
		},
		{
			name: "GPUWebhookStorageFailing", severity: warning,
			expr:    grew(queries.OwnWebhookStorage, 15*time.Minute, "operation"),
			summary: "The webhook exporter at " + theProcess + " cannot {{ $labels.operation }} its storage.",
			meaning: "Deliveries go on, and may not survive a restart.",
			check:   []string{"STATE_DIRECTORY: mounted, writable, not full."},
			do:      []string{"Give it space or rights."},
		},
		{
			name: "GPUAuditFailing", severity: warning,
			expr:    grew(queries.OwnAuditFailures, 10*time.Minute) + " or " + most(queries.OwnAuditBuffered, process...) + " > 0",
			wait:    "1m",
			summary: "The audit file of " + theProcess + " cannot be written.",
			meaning: "Deliveries go on. Their records wait in memory, and are lost if the process ends before the file can be written.",
			check:   []string{"The disk of the audit file: space, rights, read-only.", "`gpuctl audit verify FILE`: is what is there whole."},
			do:      []string{"Make space; the records that wait are written then, in order."},
		},
		{
			name: "GPUAuditRecordsLost", severity: critical,
			expr:    grew(queries.OwnAuditLost, time.Hour),
			summary: "{{ $value | humanize }} audit records of " + theProcess + " are lost.",
			meaning: "The audit file could not be written for too long: attempts were made of which there is no record in it.",
			check:   []string{"As for GPUAuditFailing.", "The Collector's log and gpu_store's log of deliveries: they may still have them."},
			do:      []string{"Make space, and note the gap where your audit requires it."},
		},
		{
			name: "GPUAuditSetAside", severity: critical,
			expr:    most(queries.OwnAuditSetAside, process...) + " > 0",
			summary: "The audit log that " + theProcess + " found at its start did not verify.",
			meaning: "The log was changed, cut or deleted, or its key or its disk was replaced. It is under another name beside the new log, unchanged; deliveries go on. The alert ends with the next start that finds its log whole.",
			check:   []string{"The Collector's log: `the audit log does not verify` names the line, the cause and the files.", "`gpuctl audit verify` with those files, the public keys and the last anchor that you keep elsewhere.", "Whether the checkpoint key, the volume or the storage was replaced."},
			do:      []string{"A key that was replaced: name the former one in `audit::previous_keys_file` from now on.", "Else keep the files as evidence, and find out who can write the folder."},
		},
	}
}
