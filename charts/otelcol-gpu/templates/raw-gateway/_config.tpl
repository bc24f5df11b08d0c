{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The configuration of the raw gateways: the files of their ConfigMap.
*/}}

{{- define "otelcol-gpu.raw-gateway.data" -}}
raw-gateway.yaml: |
  {{- .Files.Get "files/raw-gateway.yaml" | nindent 2 }}
values.yaml: |
  # What the chart's values make of it: goes over the file above.
  {{- include "otelcol-gpu.tidy" (include "otelcol-gpu.raw-gateway.overlay" .) | nindent 2 }}
{{- with .Values.rawGateway.config }}
custom.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.raw-gateway.overlay" -}}
receivers:
  otlp:
    protocols:
      grpc:
        {{- if .Values.rawGateway.autoscaling.enabled }}
        # An agent keeps its connection for as long as it can: without this a gateway
        # that was added would get none.
        keepalive: {server_parameters: {max_connection_age: 30m, max_connection_age_grace: 1m}}
        {{- end }}
        {{- include "otelcol-gpu.serverSecurity" . | nindent 8 }}
      http:
        {{- include "otelcol-gpu.serverSecurity" . | nindent 8 }}
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
  extensions: [health_check{{ if .Values.auth.enabled }}, bearertokenauth/agents{{ end }}]
{{- end -}}

{{- define "otelcol-gpu.raw-gateway.secretFiles" -}}
{{- if .Values.tls.enabled }}
- {name: tls, secret: {{ include "otelcol-gpu.tlsSecret" . }}, keys: [tls.crt, tls.key]}
{{- end }}
{{- if .Values.auth.enabled }}
- {name: token, secret: {{ include "otelcol-gpu.tokenSecret" . }}, keys: [token]}
{{- end }}
{{- end -}}
