{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The configuration of the raw gateways: the files of their ConfigMap.
*/}}

{{- define "otelcol-gpu.raw-gateway.data" -}}
{{- $file := include "otelcol-gpu.raw-gateway.file" . }}
{{ $file }}: |
  {{- .Files.Get (printf "files/%s" $file) | nindent 2 }}
values.yaml: |
  # What the chart's values make of it: goes over the file above.
  {{- include "otelcol-gpu.tidy" (include "otelcol-gpu.raw-gateway.overlay" .) | nindent 2 }}
{{- with .Values.rawGateway.config }}
custom.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* OTLP or remote write: the one of config/ that does it. */}}
{{- define "otelcol-gpu.raw-gateway.file" -}}
{{- ternary "scale-out.yaml" "raw-gateway.yaml" (ne .Values.rawGateway.remoteWrite.url "") -}}
{{- end -}}

{{/* Whether raw gateways and gateway write to a server that the console reads. */}}
{{- define "otelcol-gpu.scaleOut" -}}
{{- and (eq (include "otelcol-gpu.raw" .) "true") (ne .Values.rawGateway.remoteWrite.url "") -}}
{{- end -}}

{{/* Headers and authority of that server, as both write to it. */}}
{{- define "otelcol-gpu.scaleOut.exporter" -}}
{{- with .Values.rawGateway.remoteWrite }}
{{- if or .headers .caSecret }}
prometheus_remote_write:
  http:
    {{- if .caSecret }}
    tls: {ca_file: /etc/otelcol-gpu-secrets/remote-write/ca.crt}
    {{- end }}
    {{- with .headers }}
    headers:
      {{- include "otelcol-gpu.headers" (dict "path" "raw write" "headers" .) | indent 6 }}
    {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.scaleOut.env" -}}
- {name: REMOTE_WRITE_URL, value: {{ .Values.rawGateway.remoteWrite.url | quote }}}
{{- include "otelcol-gpu.headerEnv" (dict "path" "raw write" "headers" .Values.rawGateway.remoteWrite.headers) }}
{{- end -}}

{{- define "otelcol-gpu.scaleOut.files" -}}
{{- with .Values.rawGateway.remoteWrite.caSecret }}
- {name: remote-write, secret: {{ . | quote }}, keys: [ca.crt]}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.raw-gateway.grpc" -}}
{{- if .Values.rawGateway.autoscaling.enabled }}
# An agent keeps its connection for as long as it can: without this a gateway that
# was added would get none.
keepalive: {server_parameters: {max_connection_age: 30m, max_connection_age_grace: 1m}}
{{- end }}
{{- include "otelcol-gpu.serverSecurity" . }}
{{- end -}}

{{- define "otelcol-gpu.raw-gateway.overlay" -}}
receivers:
  otlp:
    protocols:
      {{- include "otelcol-gpu.block" (dict "name" "grpc" "body" (include "otelcol-gpu.raw-gateway.grpc" .)) | nindent 6 }}
      {{- include "otelcol-gpu.block" (dict "name" "http" "body" (include "otelcol-gpu.serverSecurity" .)) | nindent 6 }}
{{- if eq (include "otelcol-gpu.scaleOut" .) "true" }}
{{- with include "otelcol-gpu.scaleOut.exporter" . }}
exporters:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.rawGateway.backend.headers }}
exporters:
  otlp_grpc:
    headers:
      {{- include "otelcol-gpu.headers" (dict "path" "raw" "headers" .) | indent 6 }}
{{- end }}
{{- if .Values.auth.enabled }}
extensions:
  bearertokenauth/agents: {filename: /etc/otelcol-gpu-secrets/token/token}
{{- end }}
service:
  extensions: {{ include "otelcol-gpu.list" (dict "root" . "file" (include "otelcol-gpu.raw-gateway.file" .) "key" "extensions" "add" (ternary (list "bearertokenauth/agents") list .Values.auth.enabled)) }}
{{- end -}}

{{- define "otelcol-gpu.raw-gateway.secretFiles" -}}
{{- if .Values.tls.enabled }}
- {name: tls, secret: {{ include "otelcol-gpu.tlsSecret" . | quote }}, keys: [tls.crt, tls.key]}
{{- end }}
{{- if .Values.auth.enabled }}
- {name: token, secret: {{ include "otelcol-gpu.tokenSecret" . | quote }}, keys: [token]}
{{- end }}
{{- include "otelcol-gpu.scaleOut.files" . }}
{{- end -}}
