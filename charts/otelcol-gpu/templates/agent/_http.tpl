{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Mode agent over OTLP/HTTP: in the place of each otlp_grpc exporter of
config/agent.yaml one with the same queue, and the pipelines that end in it.
*/}}

{{- define "otelcol-gpu.agent.overHTTP" -}}
{{- and (eq .Values.mode "agent") (ne .Values.exporter.url "") -}}
{{- end -}}

{{/* Applications have an exporter of their own where they have an endpoint of their own. */}}
{{- define "otelcol-gpu.agent.appsOverHTTP" -}}
{{- and (eq (include "otelcol-gpu.agent.overHTTP" .) "true") (eq .Values.agent.applications.endpoint "") -}}
{{- end -}}

{{- define "otelcol-gpu.agent.httpExporters" -}}
{{- $shipped := (.Files.Get "files/agent.yaml" | fromYaml).exporters -}}
{{- $apps := eq (include "otelcol-gpu.agent.appsOverHTTP" .) "true" }}
{{- range $suffix := list "" "/events" "/apps" }}
{{- if or $apps (ne $suffix "/apps") }}
otlp_http{{ $suffix }}:
  endpoint: {{ $.Values.exporter.url | replace "$" "$$" | quote }}
  {{- include "otelcol-gpu.agent.client" (dict "root" $) | nindent 2 }}
  {{- pick (get $shipped (printf "otlp_grpc%s" $suffix)) "sending_queue" "retry_on_failure" | toYaml | nindent 2 }}
{{- end }}
{{- end }}
{{- if not $apps }}
{{ include "otelcol-gpu.block" (dict "name" "otlp_grpc/apps" "body" (include "otelcol-gpu.agent.apps" .)) }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.agent.pipelines" -}}
{{- $http := eq (include "otelcol-gpu.agent.overHTTP" .) "true" }}
{{- if or $http (not .Values.agent.podResources.enabled) }}
metrics:
  {{- if not .Values.agent.podResources.enabled }}
  receivers: {{ include "otelcol-gpu.list" (dict "root" . "file" "agent.yaml" "pipeline" "metrics" "key" "receivers" "without" (list "gpu_allocation")) }}
  {{- end }}
  {{- if $http }}
  exporters: {{ include "otelcol-gpu.list" (dict "root" . "file" "agent.yaml" "pipeline" "metrics" "key" "exporters" "add" (list "otlp_http") "without" (list "otlp_grpc")) }}
  {{- end }}
{{- end }}
{{- if $http }}
logs/events: {exporters: [otlp_http/events]}
{{- end }}
{{- if eq (include "otelcol-gpu.agent.appsOverHTTP" .) "true" }}
{{- $names := list "metrics/apps" "logs/apps" "traces/apps" }}
{{- if .Values.agent.inference.enabled }}{{ $names = append $names "metrics/inference" }}{{ end }}
{{- if .Values.agent.host.enabled }}{{ $names = append $names "metrics/host" }}{{ end }}
{{- range $names }}
{{ . }}: {exporters: [otlp_http/apps]}
{{- end }}
{{- end }}
{{- end -}}
