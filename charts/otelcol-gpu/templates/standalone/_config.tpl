{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The configuration of mode standalone. config/standalone.yaml knows no Kubernetes:
discovery, the kubelet and the two processors that say what a pod is come from the
agent's file, so that both name services by the same rules.
*/}}

{{- define "otelcol-gpu.standalone.data" -}}
standalone.yaml: |
  {{- .Files.Get "files/standalone.yaml" | nindent 2 }}
{{- if .Values.nvml.enabled }}
nvml.yaml: |
  {{- .Files.Get "files/nvml.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.scheduling.enabled }}
scheduler.yaml: |
  {{- .Files.Get "files/scheduler.yaml" | nindent 2 }}
{{- end }}
values.yaml: |
  # What the chart's values make of it: goes over the files above.
  {{- include "otelcol-gpu.tidy" (include "otelcol-gpu.standalone.overlay" .) | nindent 2 }}
{{- with .Values.standalone.config }}
custom.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.standalone.overlay" -}}
{{- $agent := (.Files.Get "files/agent.yaml" | fromYaml).processors -}}
{{- with include "otelcol-gpu.cost.labels" . -}}{{- $_ := set $agent.k8s_attributes.extract "labels" (fromJsonArray .) -}}{{- end -}}
{{- $kubelet := .Values.agent.podResources.enabled -}}
receivers:
  {{- include "otelcol-gpu.receivers" . | nindent 2 }}
  {{- if $kubelet }}
  gpu_allocation:
    optional: false
    {{- include "otelcol-gpu.allocation" . | nindent 4 }}
  {{- end }}
  {{- include "otelcol-gpu.scheduling.receiver" . | indent 2 }}
processors:
  {{- with .Values.standalone.memoryLimitMiB }}
  memory_limiter: {limit_mib: {{ . | int64 }}, spike_limit_mib: {{ div . 4 }}}
  memory_limiter/apps: {limit_mib: {{ div (mul 5 .) 8 }}}
  {{- end }}
  gpu_pod: {service_name: none}
  {{- pick $agent "k8s_attributes" "transform/service" "gpu_pod/ends" | toYaml | nindent 2 }}
  gpu_summary:
    {{- include "otelcol-gpu.summary" . | nindent 4 }}
    storage: null # Kubernetes knows which pods should report
connectors:
  {{- include "otelcol-gpu.otlpConnector" . | indent 2 }}
  gpu_events:
    {{- include "otelcol-gpu.events" (dict "root" . "rules" (list "device" "service")) | nindent 4 }}
  gpu_cost:
    {{- include "otelcol-gpu.cost" . | nindent 4 }}
exporters:
  prometheus:
    endpoint: "${env:K8S_POD_IP}:9464"
    metric_expiration: {{ include "otelcol-gpu.expiration" . }}
  {{- include "otelcol-gpu.backends" . | indent 2 }}
  {{- include "otelcol-gpu.webhook" . | indent 2 }}
extensions:
  health_check: {endpoint: "${env:K8S_POD_IP}:13133"}
  {{- include "otelcol-gpu.extensions" . | nindent 2 }}
service:
  extensions: {{ include "otelcol-gpu.extensionNames" (dict "root" . "file" "standalone.yaml") }}
  telemetry:
    metrics:
      readers:
        - pull:
            exporter:
              prometheus: {host: "${env:K8S_POD_IP}", port: 8888}
  pipelines:
    metrics:
      receivers: {{ include "otelcol-gpu.metricsReceivers" (dict "root" . "file" "standalone.yaml" "without" (ternary list (list "gpu_allocation") $kubelet)) }}
      processors: [memory_limiter, gpu_pod, k8s_attributes, transform/service, gpu_pod/ends, gpu_summary]
      exporters: {{ include "otelcol-gpu.list" (dict "root" . "file" "standalone.yaml" "pipeline" "metrics" "key" "exporters" "add" (ternary (list "best_effort/otlp") list (not (empty .Values.gateway.otlp)))) }}
    {{- include "otelcol-gpu.outputs" (dict "root" . "file" "standalone.yaml") | nindent 4 }}
{{- end -}}
