{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The agent's configuration: the files of its ConfigMap.
*/}}

{{- define "otelcol-gpu.agent.data" -}}
agent.yaml: |
  {{- .Files.Get "files/agent.yaml" | nindent 2 }}
{{- if eq (include "otelcol-gpu.hasVendors" .) "true" }}
vendors.yaml: |
  {{- .Files.Get "files/vendors.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.nvml.enabled }}
nvml.yaml: |
  {{- .Files.Get "files/nvml.yaml" | nindent 2 }}
{{- end }}
{{- if eq (include "otelcol-gpu.raw" .) "true" }}
agent-raw.yaml: |
  {{- .Files.Get "files/agent-raw.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.agent.applications.enabled }}
applications.yaml: |
  {{- .Files.Get "files/applications.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.agent.inference.enabled }}
inference.yaml: |
  {{- .Files.Get "files/inference.yaml" | nindent 2 }}
{{- end }}
{{- if .Values.agent.host.enabled }}
host.yaml: |
  {{- .Files.Get "files/host.yaml" | nindent 2 }}
{{- end }}
values.yaml: |
  # What the chart's values make of it: goes over the files above.
  {{- include "otelcol-gpu.tidy" (include "otelcol-gpu.agent.overlay" .) | nindent 2 }}
{{- with .Values.agent.config }}
custom.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.agent.files" -}}
{{- $files := list "agent.yaml" -}}
{{- if eq (include "otelcol-gpu.hasVendors" .) "true" -}}{{- $files = append $files "vendors.yaml" -}}{{- end -}}
{{- if .Values.nvml.enabled -}}{{- $files = append $files "nvml.yaml" -}}{{- end -}}
{{- if eq (include "otelcol-gpu.raw" .) "true" -}}{{- $files = append $files "agent-raw.yaml" -}}{{- end -}}
{{- if .Values.agent.applications.enabled -}}{{- $files = append $files "applications.yaml" -}}{{- end -}}
{{- if .Values.agent.inference.enabled -}}{{- $files = append $files "inference.yaml" -}}{{- end -}}
{{- if .Values.agent.host.enabled -}}{{- $files = append $files "host.yaml" -}}{{- end -}}
{{- toJson (append $files "values.yaml") -}}
{{- end -}}

{{/* Whether everything goes past the gateway. */}}
{{- define "otelcol-gpu.raw" -}}
{{- and (eq .Values.mode "cluster") .Values.rawGateway.enabled -}}
{{- end -}}

{{/* What an exporter of the agent needs to be let in by whom it sends to. */}}
{{- define "otelcol-gpu.agent.client" -}}
{{- if eq .root.Values.mode "cluster" }}
{{- include "otelcol-gpu.clientSecurity" . }}
{{- else }}
{{- with .root.Values.exporter }}
{{- if not .insecure }}
{{- if or .tls.caSecret .tls.clientSecret .tls.serverName .tls.insecureSkipVerify }}
tls:
  {{- if .tls.caSecret }}
  ca_file: /etc/otelcol-gpu-secrets/tls/ca.crt
  {{- end }}
  {{- if .tls.clientSecret }}
  cert_file: /etc/otelcol-gpu-secrets/client/tls.crt
  key_file: /etc/otelcol-gpu-secrets/client/tls.key
  reload_interval: 5m
  {{- end }}
  {{- with .tls.serverName }}
  server_name_override: {{ . | quote }}
  {{- end }}
  {{- if .tls.insecureSkipVerify }}
  insecure_skip_verify: true
  {{- end }}
{{- end }}
{{- end }}
{{- if .token.existingSecret }}
auth: {authenticator: bearertokenauth/gateway}
{{- end }}
{{- with .headers }}
headers:
  {{- include "otelcol-gpu.headers" (dict "path" "exporter" "headers" .) | indent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether the agent has telemetry of applications, of their own or scraped. */}}
{{- define "otelcol-gpu.agent.hasApps" -}}
{{- or .Values.agent.applications.enabled .Values.agent.inference.enabled -}}
{{- end -}}

{{/* What the exporter of applications needs: the gateway's port for them, or elsewhere. */}}
{{- define "otelcol-gpu.agent.apps" -}}
{{- if .Values.agent.applications.endpoint }}
{{- with .Values.agent.applications.headers }}
headers:
  {{- include "otelcol-gpu.headers" (dict "path" "apps" "headers" .) | indent 2 }}
{{- end }}
{{- else }}
{{- include "otelcol-gpu.agent.client" (dict "root" . "part" "gateway") }}
{{- end }}
{{- end -}}

{{/* Whether the agent shows a token. */}}
{{- define "otelcol-gpu.agent.hasToken" -}}
{{- if eq .Values.mode "cluster" -}}
{{- .Values.auth.enabled -}}
{{- else -}}
{{- ne .Values.exporter.token.existingSecret "" -}}
{{- end -}}
{{- end -}}

{{/* Whether the agent checks the other side by an authority of its own. It is read
at the start alone: when it is replaced, the agent has to read it again. */}}
{{- define "otelcol-gpu.agent.hasAuthority" -}}
{{- if eq .Values.mode "cluster" -}}
{{- .Values.tls.enabled -}}
{{- else -}}
{{- and (not .Values.exporter.insecure) (ne .Values.exporter.tls.caSecret "") -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-gpu.agent.overlay" -}}
{{- $raw := eq (include "otelcol-gpu.raw" .) "true" -}}
{{- $gateway := dict "root" . "part" "gateway" -}}
{{- $rawGateway := dict "root" . "part" "raw-gateway" -}}
{{- $token := eq (include "otelcol-gpu.agent.hasToken" .) "true" -}}
{{- $authority := eq (include "otelcol-gpu.agent.hasAuthority" .) "true" -}}
receivers:
  {{- include "otelcol-gpu.receivers" . | nindent 2 }}
  gpu_allocation:
    {{- include "otelcol-gpu.allocation" . | nindent 4 }}
{{- $labels := include "otelcol-gpu.cost.labels" . }}
{{- if or .Values.agent.memoryLimitMiB $labels }}
processors:
  {{- with .Values.agent.memoryLimitMiB }}
  memory_limiter: {limit_mib: {{ . | int64 }}, spike_limit_mib: {{ div . 4 }}}
  {{- end }}
  {{- with $labels }}
  k8s_attributes: {extract: {labels: {{ . }}}}
  {{- end }}
{{- end }}
connectors:
  gpu_events:
    {{- include "otelcol-gpu.events" (dict "root" . "rules" (list "device")) | nindent 4 }}
exporters:
  {{- if eq (include "otelcol-gpu.agent.overHTTP" .) "true" }}
  {{- include "otelcol-gpu.agent.httpExporters" . | nindent 2 }}
  {{- else }}
  {{- range $name := list "otlp_grpc" "otlp_grpc/events" }}
  {{- include "otelcol-gpu.block" (dict "name" $name "body" (include "otelcol-gpu.agent.client" $gateway)) | nindent 2 }}
  {{- end }}
  {{- if $raw }}
  {{- include "otelcol-gpu.block" (dict "name" "otlp_grpc/raw" "body" (include "otelcol-gpu.agent.client" $rawGateway)) | nindent 2 }}
  {{- end }}
  {{- if .Values.agent.host.enabled }}
  {{- include "otelcol-gpu.block" (dict "name" "otlp_grpc/host" "body" (include "otelcol-gpu.agent.client" (ternary $rawGateway $gateway $raw))) | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- if eq (include "otelcol-gpu.agent.hasApps" .) "true" }}
  {{- include "otelcol-gpu.block" (dict "name" "otlp_grpc/apps" "body" (include "otelcol-gpu.agent.apps" .)) | nindent 2 }}
  {{- end }}
{{- if or $token $authority }}
extensions:
  {{- if $token }}
  bearertokenauth/gateway: {filename: /etc/otelcol-gpu-secrets/token/token}
  {{- end }}
  {{- if $authority }}
  reload_on_change: {files: [/etc/otelcol-gpu-secrets/tls/ca.crt]}
  {{- end }}
{{- end }}
service:
  extensions: {{ include "otelcol-gpu.list" (dict "root" . "file" "agent.yaml" "key" "extensions" "add" (concat (ternary (list "bearertokenauth/gateway") list $token) (ternary (list "reload_on_change") list $authority))) }}
  {{- with include "otelcol-gpu.agent.pipelines" . | trim }}
  pipelines:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}
