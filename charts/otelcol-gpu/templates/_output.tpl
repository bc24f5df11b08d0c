{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

What gateway and standalone do with what they computed: store, console, backends,
webhooks. Secrets come as variables or files, never as text.
*/}}

{{- define "otelcol-gpu.backends" -}}
{{- range $name, $to := .Values.gateway.prometheusRemoteWrite }}
prometheus_remote_write/{{ $name }}:
  http:
    endpoint: {{ $to.url | replace "$" "$$" | quote }}
    timeout: 10s
    {{- with $to.headers }}
    headers:
      {{- include "otelcol-gpu.headers" (dict "path" (printf "write %s" $name) "headers" .) | indent 6 }}
    {{- end }}
  # The same names as those of the prometheus exporter.
  translation_strategy: UnderscoreEscapingWithSuffixes
  disable_scope_info: true
  target_info: {enabled: false}
  resource_to_telemetry_conversion: {enabled: true}
  # One consumer: what ends a series must not be overtaken by what began it.
  remote_write_queue: {num_consumers: 1, queue_size: 10000}
  max_batch_request_parallelism: 1
  retry_on_failure: {initial_interval: 1s, max_interval: 30s, max_elapsed_time: 5m}
{{- end }}
{{- range $name, $to := .Values.gateway.otlp }}
otlp_grpc/{{ $name }}:
  endpoint: {{ $to.endpoint | quote }}
  {{- if $to.insecure }}
  tls: {insecure: true}
  {{- end }}
  # One consumer: what ends a series must not be overtaken by what began it.
  sending_queue: {num_consumers: 1, sizer: bytes, queue_size: 67108864, batch: {flush_timeout: 200ms, min_size: 262144, max_size: 2097152}}
  retry_on_failure: {initial_interval: 1s, max_interval: 30s, max_elapsed_time: 5m}
  {{- with $to.headers }}
  headers:
    {{- include "otelcol-gpu.headers" (dict "path" (printf "otlp %s" $name) "headers" .) | indent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.otlpNames" -}}
{{- $names := list -}}
{{- range $name, $_ := .Values.gateway.otlp -}}{{- $names = append $names (printf "otlp_grpc/%s" $name) -}}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* Backends by OTLP are optional: one that takes nothing holds nothing else. */}}
{{- define "otelcol-gpu.otlpConnector" -}}
{{- if .Values.gateway.otlp }}
best_effort/otlp: {}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.hasWebhooks" -}}
{{- or (gt (len .Values.webhooks.receivers) 0) (ne .Values.webhooks.receiversSecret "") -}}
{{- end -}}

{{/* The pipelines at whose end backends and webhooks are. */}}
{{- define "otelcol-gpu.outputs" -}}
{{- $v := .root.Values -}}
{{- $written := list -}}
{{- if eq (include "otelcol-gpu.scaleOut" .root) "true" -}}{{- $written = append $written "prometheus_remote_write" -}}{{- end -}}
{{- range $name, $_ := $v.gateway.prometheusRemoteWrite -}}{{- $written = append $written (printf "prometheus_remote_write/%s" $name) -}}{{- end -}}
{{- $told := include "otelcol-gpu.otlpNames" .root | fromJsonArray -}}
{{- if eq (include "otelcol-gpu.hasWebhooks" .root) "true" -}}{{- $told = prepend $told "webhook" -}}{{- end -}}
{{- $unread := ternary list (list "gpu_store") (eq $v.gateway.store.engine "embedded") -}}
{{- range list "metrics/health" "metrics/usage" }}
{{ . }}:
  exporters: {{ include "otelcol-gpu.list" (dict "root" $.root "file" $.file "pipeline" . "key" "exporters" "add" (ternary (list "best_effort/otlp") list (not (empty $v.gateway.otlp)))) }}
{{- end }}
metrics/prometheus:
  exporters: {{ include "otelcol-gpu.list" (dict "root" .root "file" .file "pipeline" "metrics/prometheus" "key" "exporters" "add" $written "without" $unread) }}
{{- with include "otelcol-gpu.otlpNames" .root | fromJsonArray }}
metrics/otlp:
  receivers: [best_effort/otlp]
  exporters: [{{ join ", " . }}]
{{- end }}
logs/events:
  exporters: {{ include "otelcol-gpu.list" (dict "root" .root "file" .file "pipeline" "logs/events" "key" "exporters" "add" $told) }}
{{- end -}}

{{- define "otelcol-gpu.extensions" -}}
gpu_store:
  {{- include "otelcol-gpu.store" . | nindent 2 }}
{{- if .Values.console.enabled }}
gpu_console:
  {{- include "otelcol-gpu.console" . | nindent 2 }}
{{- if .Values.console.expose }}
bearertokenauth/console: {filename: /etc/otelcol-gpu-secrets/console-token/token}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.extensionNames" -}}
{{- $v := .root.Values -}}
{{- $names := list -}}
{{- if and $v.console.enabled $v.console.expose -}}{{- $names = append $names "bearertokenauth/console" -}}{{- end -}}
{{- if and (eq $v.mode "cluster") $v.auth.enabled -}}{{- $names = append $names "bearertokenauth/agents" -}}{{- end -}}
{{- include "otelcol-gpu.list" (dict "root" .root "file" .file "key" "extensions" "add" $names "without" (ternary list (list "gpu_console") $v.console.enabled)) -}}
{{- end -}}

{{- define "otelcol-gpu.webhook" -}}
{{- if eq (include "otelcol-gpu.hasWebhooks" .) "true" }}
{{- with .Values.webhooks }}
webhook:
  {{- if .receivers }}
  receivers:
    {{- range $name, $r := .receivers }}
    {{ $name | quote }}:
      {{- if $r.url }}
      url: {{ printf "${env:%s}" (include "otelcol-gpu.envName" (printf "webhook %s url" $name)) | quote }}
      {{- end }}
      format: {{ default "standard" $r.format }}
      timeout: {{ default "10s" $r.timeout }}
      {{- with $r.events }}
      events: {{ toJson . }}
      {{- end }}
      {{- with $r.minSeverity }}
      min_severity: {{ . }}
      {{- end }}
      {{- if $r.routingKey }}
      routing_key: {{ printf "${env:%s}" (include "otelcol-gpu.envName" (printf "webhook %s routing" $name)) | quote }}
      {{- end }}
      {{- with $r.signing }}
      signing:
        {{- range $kind, $keys := . }}
        {{ $kind }}:
          {{- range $i, $_ := $keys }}
          - {{ printf "${env:%s}" (include "otelcol-gpu.envName" (printf "webhook %s %s %d" $name $kind $i)) | quote }}
          {{- else }} []
          {{- end }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if .receiversSecret }}
  receivers_dir: /etc/otelcol-gpu-secrets/receivers
  {{- end }}
  {{- with .allowCIDRs }}
  allow_cidrs: {{ toJson . }}
  {{- end }}
  allow_ports: {{ toJson .allowPorts }}
  retry: {enabled: {{ .retry }}}
  group_wait: {{ .groupWait }}
  storage: file_storage/state
  {{- if .proxy.url }}
  proxy_url: {{ printf "${env:%s}" (include "otelcol-gpu.envName" "webhook proxy") | quote }}
  {{- end }}
  {{- if .controlSecret }}
  control_endpoint: localhost:8481
  control_token_file: /etc/otelcol-gpu-secrets/webhook-control/token
  {{- end }}
  {{- if .audit.enabled }}
  audit:
    path: /var/lib/otelcol-gpu/audit.jsonl
    store: gpu_store
    {{- if .audit.keysSecret }}
    checkpoint_key_file: /etc/otelcol-gpu-secrets/audit/checkpoint.key
    fingerprint_key_file: /etc/otelcol-gpu-secrets/audit/fingerprint.key
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The variables that hold the secrets of all that. */}}
{{- define "otelcol-gpu.outputEnv" -}}
{{- include "otelcol-gpu.headerEnv" (dict "path" "store" "headers" .Values.gateway.store.headers) }}
{{- range $name, $to := .Values.gateway.prometheusRemoteWrite }}
{{- include "otelcol-gpu.headerEnv" (dict "path" (printf "write %s" $name) "headers" $to.headers) }}
{{- end }}
{{- range $name, $to := .Values.gateway.otlp }}
{{- include "otelcol-gpu.headerEnv" (dict "path" (printf "otlp %s" $name) "headers" $to.headers) }}
{{- end }}
{{- range $name, $r := .Values.webhooks.receivers }}
{{- if $r.url }}
{{ include "otelcol-gpu.secretEnv" (dict "path" (printf "webhook %s url" $name) "from" $r.url) }}
{{- end }}
{{- if $r.routingKey }}
{{ include "otelcol-gpu.secretEnv" (dict "path" (printf "webhook %s routing" $name) "from" $r.routingKey) }}
{{- end }}
{{- range $kind, $keys := $r.signing }}
{{- range $i, $key := $keys }}
{{ include "otelcol-gpu.secretEnv" (dict "path" (printf "webhook %s %s %d" $name $kind $i) "from" $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.webhooks.proxy.url }}
{{ include "otelcol-gpu.secretEnv" (dict "path" "webhook proxy" "from" .Values.webhooks.proxy.url) }}
{{- end }}
{{- end -}}

{{/* And the files. */}}
{{- define "otelcol-gpu.outputFiles" -}}
{{- with .Values.cost.pricesSecret }}
- {name: prices, secret: {{ . | quote }}, keys: [prices.yaml]}
{{- end }}
{{- with .Values.console }}
{{- if and .enabled .expose }}
- {name: console-token, secret: {{ .token.existingSecret | quote }}, keys: [{{ .token.key | quote }}], as: [token]}
{{- if .tlsSecret }}
- {name: console-tls, secret: {{ .tlsSecret | quote }}, keys: [tls.crt, tls.key]}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.webhooks }}
{{- if .receiversSecret }}
- {name: receivers, secret: {{ .receiversSecret | quote }}}
{{- end }}
{{- if and (or .receivers .receiversSecret) .audit.enabled .audit.keysSecret }}
- {name: audit, secret: {{ .audit.keysSecret | quote }}, keys: [checkpoint.key, fingerprint.key]}
{{- end }}
{{- if and (or .receivers .receiversSecret) .controlSecret }}
- {name: webhook-control, secret: {{ .controlSecret | quote }}, keys: [token]}
{{- end }}
{{- end }}
{{- end -}}
