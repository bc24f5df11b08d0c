{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Blocks of values.yaml, the second configuration file: what several parts have in
it. Lists take the place of those in config/, maps are merged.
*/}}

{{/*
A key of .name and a map of .body. Without body it is an empty map, which changes
nothing: a key without value would take away what the file before it says.
*/}}
{{- define "otelcol-gpu.block" -}}
{{- with trim .body -}}
{{ $.name }}:
  {{- . | nindent 2 }}
{{- else -}}
{{ .name }}: {}
{{- end -}}
{{- end -}}

{{/*
A list of a shipped .file, with .add and .without: service::extensions (.key), or
receivers, processors or exporters (.key) of a .pipeline. The Collector replaces
lists and does not merge them, so what config/ has in it is read there.
*/}}
{{- define "otelcol-gpu.list" -}}
{{- $service := (.root.Files.Get (printf "files/%s" .file) | fromYaml).service -}}
{{- $shipped := ternary $service (get $service.pipelines (default "" .pipeline)) (not .pipeline) -}}
{{- $names := list -}}
{{- range concat (get $shipped .key) (default list .add) -}}
{{- if not (has . (default list $.without)) -}}{{- $names = append $names . -}}{{- end -}}
{{- end -}}
[{{ join ", " $names }}]
{{- end -}}

{{- define "otelcol-gpu.allocation" -}}
{{- if eq .Values.mode "standalone" }}
{{ (.Files.Get "files/agent.yaml" | fromYaml).receivers.gpu_allocation | toYaml }}
{{- end }}
{{ include "otelcol-gpu.devices" (dict "root" .) }}
{{- if eq (include "otelcol-gpu.hasVendors" .) "true" }}
sysfs_root: {{ .Values.agent.sysfsRoot | quote }}
{{- end }}
{{- with .Values.sharing }}
sharing: {{ toJson . }}
{{- end }}
{{- with include "otelcol-gpu.cost.nodeLabels" . | fromJsonArray }}
node_labels: {{ toJson . }}
{{- end }}
{{- end -}}

{{/*
gpu_events: .rules device, service or both. A point is believed for three intervals.
An event or a key that the values do not have keeps the connector's default, but for
lost_after, which follows the interval.
*/}}
{{- define "otelcol-gpu.events" -}}
{{- $service := list "gpu.node.lost" "gpu.service.partial" "gpu.service.no_data" "gpu.idle_held" "gpu.straggler" -}}
staleness: {{ include "otelcol-gpu.atLeast" (dict "root" .root "value" "" "times" 3 "least" 45) }}
{{- if has "service" .rules }}
restored_ttl: {{ add 300 (include "otelcol-gpu.seconds" (include "otelcol-gpu.serviceTTL" .root)) }}s
{{- end }}
{{- $lost := dict "gpu.node.lost" (dict "lost_after" (include "otelcol-gpu.lostAfter" .root)) }}
{{- $events := dict }}
{{- range $name, $event := mergeOverwrite (deepCopy .root.Values.thresholds.events) $lost }}
{{- if has (ternary "service" "device" (has $name $service)) $.rules }}
{{- $_ := set $events $name $event }}
{{- end }}
{{- end }}
events:
  {{- toYaml $events | nindent 2 }}
{{- end -}}

{{- define "otelcol-gpu.lostAfter" -}}
{{- include "otelcol-gpu.atLeast" (dict "root" . "value" (dig "gpu.node.lost" "lost_after" "" .Values.thresholds.events) "times" 3 "least" 120) -}}
{{- end -}}

{{- define "otelcol-gpu.serviceTTL" -}}
{{- include "otelcol-gpu.atLeast" (dict "root" . "value" .Values.thresholds.summary.service_ttl "times" 4 "least" 600) -}}
{{- end -}}

{{- define "otelcol-gpu.summary" -}}
{{- with .Values.thresholds.summary -}}
expected_pods: kubernetes
auth_type: "${env:K8S_AUTH_TYPE:-serviceAccount}"
cluster_name: "${env:K8S_CLUSTER_NAME}"
initial_interval: {{ include "otelcol-gpu.longestInterval" $ }}s
staleness: {{ default "0s" .staleness }}
warmup: {{ .warmup }}
reconnect_grace: {{ .reconnect_grace }}
partial_threshold: {{ .partial_threshold }}
idle_threshold: {{ .idle_threshold }}
idle_for: {{ .idle_for }}
service_ttl: {{ include "otelcol-gpu.serviceTTL" $ }}
max_pods: {{ .max_pods | int64 }}
max_services: {{ .max_services | int64 }}
{{ include "otelcol-gpu.devices" (dict "root" $ "classes" true) }}
{{- with .namespaces }}
namespaces: {{ toJson . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The prometheus exporter: a series is gone when two scrapes of its device are missed. */}}
{{- define "otelcol-gpu.expiration" -}}
{{- include "otelcol-gpu.atLeast" (dict "root" . "value" "" "times" 3 "least" 300) -}}
{{- end -}}

{{- define "otelcol-gpu.store" -}}
{{- with .Values.gateway.store -}}
engine: {{ .engine }}
max_interval: {{ include "otelcol-gpu.atLeast" (dict "root" $ "value" "" "times" 1 "least" 60) }}
{{- if eq .engine "prometheus" }}
prometheus:
  url: {{ .url | replace "$" "$$" | quote }}
  {{- with .headers }}
  headers:
    {{- include "otelcol-gpu.headers" (dict "path" "store" "headers" .) | indent 4 }}
  {{- end }}
{{- else }}
retention: {{ .retention }}
max_bytes: {{ .maxBytes | int64 }}
max_series: {{ .maxSeries | int64 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.console" -}}
{{- with .Values.console -}}
{{- if .expose }}
endpoint: "${env:K8S_POD_IP}:8480"
auth: {authenticator: bearertokenauth/console}
{{- with .tlsSecret }}
tls: {cert_file: /etc/otelcol-gpu-secrets/console-tls/tls.crt, key_file: /etc/otelcol-gpu-secrets/console-tls/tls.key, reload_interval: 5m}
{{- end }}
{{- end }}
{{- with .pathPrefix }}
path_prefix: {{ . | quote }}
{{- end }}
stale_after: {{ include "otelcol-gpu.atLeast" (dict "root" $ "value" "" "times" 3 "least" 90) }}
warmup: {{ $.Values.thresholds.summary.warmup }}
idle_threshold: {{ $.Values.thresholds.summary.idle_threshold }}
idle_for: {{ $.Values.thresholds.summary.idle_for }}
partial_threshold: {{ $.Values.thresholds.summary.partial_threshold }}
{{- with .grafana }}
{{- if .url }}
grafana: {url: {{ .url | quote }}, dashboard: {{ .dashboard | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* TLS and token of a server for agents. */}}
{{- define "otelcol-gpu.serverSecurity" -}}
{{- if .Values.tls.enabled }}
tls: {cert_file: /etc/otelcol-gpu-secrets/tls/tls.crt, key_file: /etc/otelcol-gpu-secrets/tls/tls.key, reload_interval: 5m}
{{- end }}
{{- if .Values.auth.enabled }}
auth: {authenticator: bearertokenauth/agents}
{{- end }}
{{- end -}}

{{/* TLS and token of a client: the gateway of .part. */}}
{{- define "otelcol-gpu.clientSecurity" -}}
{{- if .root.Values.tls.enabled }}
tls: {ca_file: /etc/otelcol-gpu-secrets/tls/ca.crt, server_name_override: {{ include "otelcol-gpu.host" . | quote }}}
{{- end }}
{{- if .root.Values.auth.enabled }}
auth: {authenticator: bearertokenauth/gateway}
{{- end }}
{{- end -}}
