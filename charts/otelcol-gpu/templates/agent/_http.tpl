{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Mode agent over OTLP/HTTP: in the place of each otlp_grpc exporter of
config/agent.yaml and config/host.yaml one with the same queue, and the pipelines
that end in it.
*/}}

{{- define "otelcol-gpu.agent.overHTTP" -}}
{{- and (eq .Values.mode "agent") (ne .Values.exporter.url "") -}}
{{- end -}}

{{- define "otelcol-gpu.agent.httpExporters" -}}
{{- $shipped := merge (.Files.Get "files/agent.yaml" | fromYaml).exporters (.Files.Get "files/host.yaml" | fromYaml).exporters }}
{{- range $suffix := list "" "/events" "/host" }}
{{- if or $.Values.agent.host.enabled (ne $suffix "/host") }}
otlp_http{{ $suffix }}:
  endpoint: {{ $.Values.exporter.url | replace "$" "$$" | quote }}
  {{- include "otelcol-gpu.agent.client" (dict "root" $) | nindent 2 }}
  {{- pick (get $shipped (printf "otlp_grpc%s" $suffix)) "sending_queue" "retry_on_failure" | toYaml | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.agent.pipelines" -}}
{{- $http := eq (include "otelcol-gpu.agent.overHTTP" .) "true" }}
{{- $kubelet := .Values.agent.podResources.enabled }}
{{- $vendors := or .Values.nvml.enabled (eq (include "otelcol-gpu.hasVendors" .) "true") }}
{{- if or $http $vendors (not $kubelet) }}
metrics:
  {{- if or $vendors (not $kubelet) }}
  receivers: {{ include "otelcol-gpu.metricsReceivers" (dict "root" . "file" "agent.yaml" "without" (ternary list (list "gpu_allocation") $kubelet)) }}
  {{- end }}
  {{- if $http }}
  exporters: {{ include "otelcol-gpu.list" (dict "root" . "file" "agent.yaml" "pipeline" "metrics" "key" "exporters" "add" (list "otlp_http") "without" (list "otlp_grpc")) }}
  {{- end }}
{{- end }}
{{- if $http }}
metrics/health: {exporters: [otlp_http]}
logs/events: {exporters: [otlp_http/events]}
{{- end }}
{{- if and $http .Values.agent.host.enabled }}
metrics/host: {exporters: [otlp_http/host]}
{{- end }}
{{- end -}}
