{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The gateway's configuration: the files of its ConfigMap.
*/}}

{{- define "otelcol-gpu.gateway.data" -}}
gateway.yaml: |
  {{- .Files.Get "files/gateway.yaml" | nindent 2 }}
{{- if eq (include "otelcol-gpu.scaleOut" .) "true" }}
scale-out-gateway.yaml: |
  {{- .Files.Get "files/scale-out-gateway.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.gateway.applications.enabled }}
gateway-applications.yaml: |
  {{- .Files.Get "files/gateway-applications.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.gateway.inference.enabled }}
inference-gateways.yaml: |
  {{- .Files.Get "files/inference-gateways.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.scheduling.enabled }}
scheduler.yaml: |
  {{- .Files.Get "files/scheduler.yaml" | nindent 2 }}
{{- end }}
values.yaml: |
  # What the chart's values make of it: goes over the files above.
  {{- include "otelcol-gpu.tidy" (include "otelcol-gpu.gateway.overlay" .) | nindent 2 }}
{{- with .Values.gateway.config }}
custom.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.gateway.files" -}}
{{- $files := list "gateway.yaml" -}}
{{- if eq (include "otelcol-gpu.scaleOut" .) "true" -}}{{- $files = append $files "scale-out-gateway.yaml" -}}{{- end -}}
{{- if .Values.gateway.applications.enabled -}}{{- $files = append $files "gateway-applications.yaml" -}}{{- end -}}
{{- if .Values.gateway.inference.enabled -}}{{- $files = append $files "inference-gateways.yaml" -}}{{- end -}}
{{- if .Values.scheduling.enabled -}}{{- $files = append $files "scheduler.yaml" -}}{{- end -}}
{{- toJson (append $files "values.yaml") -}}
{{- end -}}

{{- define "otelcol-gpu.gateway.overlay" -}}
{{- $apps := .Values.gateway.applications -}}
{{- $embedded := eq .Values.gateway.store.engine "embedded" -}}
receivers:
  otlp:
    protocols:
      {{- include "otelcol-gpu.block" (dict "name" "grpc" "body" (include "otelcol-gpu.serverSecurity" .)) | nindent 6 }}
      {{- include "otelcol-gpu.block" (dict "name" "http" "body" (include "otelcol-gpu.serverSecurity" .)) | nindent 6 }}
  {{- if $apps.enabled }}
  otlp/apps:
    protocols:
      {{- include "otelcol-gpu.block" (dict "name" "grpc" "body" (include "otelcol-gpu.serverSecurity" .)) | nindent 6 }}
  {{- end }}
  {{- include "otelcol-gpu.scheduling.receiver" . | indent 2 }}
processors:
  gpu_summary:
    {{- include "otelcol-gpu.summary" . | nindent 4 }}
connectors:
  {{- include "otelcol-gpu.otlpConnector" . | indent 2 }}
  gpu_events:
    {{- include "otelcol-gpu.events" (dict "root" . "rules" (list "service")) | nindent 4 }}
  gpu_cost:
    {{- include "otelcol-gpu.cost" . | nindent 4 }}
exporters:
  prometheus:
    metric_expiration: {{ include "otelcol-gpu.expiration" . }}
  {{- if $apps.enabled }}
  prometheus/apps:
    metric_expiration: {{ include "otelcol-gpu.expiration" . }}
  {{- end }}
  {{- if eq (include "otelcol-gpu.scaleOut" .) "true" }}
  {{- include "otelcol-gpu.scaleOut.exporter" . | indent 2 }}
  {{- end }}
  {{- include "otelcol-gpu.backends" . | indent 2 }}
  {{- include "otelcol-gpu.webhook" . | indent 2 }}
extensions:
  {{- include "otelcol-gpu.extensions" . | nindent 2 }}
  {{- if .Values.auth.enabled }}
  bearertokenauth/agents: {filename: /etc/otelcol-gpu-secrets/token/token}
  {{- end }}
service:
  extensions: {{ include "otelcol-gpu.extensionNames" (dict "root" . "file" "gateway.yaml") }}
  pipelines:
    metrics:
      exporters: {{ include "otelcol-gpu.list" (dict "root" . "file" "gateway.yaml" "pipeline" "metrics" "key" "exporters" "add" (ternary (list "best_effort/otlp") list (not (empty .Values.gateway.otlp)))) }}
    {{- include "otelcol-gpu.outputs" (dict "root" . "file" "gateway.yaml") | nindent 4 }}
    {{- if and $apps.enabled (not $embedded) }}
    metrics/apps-prometheus:
      exporters: {{ include "otelcol-gpu.list" (dict "root" . "file" "gateway-applications.yaml" "pipeline" "metrics/apps-prometheus" "key" "exporters" "without" (list "gpu_store/apps")) }}
    {{- end }}
{{- end -}}
