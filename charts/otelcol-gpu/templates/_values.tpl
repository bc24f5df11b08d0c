{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

What is computed from values: durations and secrets.
*/}}

{{/* Seconds of a duration such as 1m30s. */}}
{{- define "otelcol-gpu.seconds" -}}
{{- $total := 0 -}}
{{- $unit := dict "h" 3600 "m" 60 "s" 1 -}}
{{- range regexFindAll "[0-9]+[hms]" (toString .) -1 -}}
{{- $total = add $total (mul (regexFind "[0-9]+" .) (get $unit (regexFind "[hms]" .))) -}}
{{- end -}}
{{- $total -}}
{{- end -}}

{{/* .value, or where it is empty .times the longest interval between scrapes, and at least .least seconds. */}}
{{- define "otelcol-gpu.atLeast" -}}
{{- if .value -}}
{{- .value -}}
{{- else -}}
{{- max .least (mul .times (include "otelcol-gpu.longestInterval" .root)) -}}s
{{- end -}}
{{- end -}}

{{/* How often dcgm-exporter reads its GPUs. */}}
{{- define "otelcol-gpu.exporterInterval" -}}
{{- $own := index .Values "dcgm-exporter" -}}
{{- if $own.enabled -}}{{ $own.collectInterval }}{{- else -}}{{ .Values.dcgmExporter.interval }}{{- end -}}
{{- end -}}

{{/*
The environment variable that a secret reference becomes: from a path as "webhook
ops url". The digest tells names apart that differ in what a variable's name has
not: a receiver never gets another's secret.
*/}}
{{- define "otelcol-gpu.envName" -}}
SECRET_{{ regexReplaceAll "[^A-Z0-9]" (upper .) "_" }}_{{ sha256sum . | trunc 6 | upper }}
{{- end -}}

{{/*
Headers as the Collector takes them: secrets by their variable. Given .headers
(name to {value} or {secret, key}) and .path.
*/}}
{{- define "otelcol-gpu.headers" -}}
{{- range $name, $from := .headers }}
{{ $name | quote }}: {{ if $from.secret }}{{ printf "${env:%s}" (include "otelcol-gpu.envName" (printf "%s %s" $.path $name)) | quote }}{{ else }}{{ $from.value | toString | replace "$" "$$" | quote }}{{ end }}
{{- end -}}
{{- end -}}

{{/* The variables of those headers, for a container's env. */}}
{{- define "otelcol-gpu.headerEnv" -}}
{{- range $name, $from := .headers }}
{{- if $from.secret }}
{{ include "otelcol-gpu.secretEnv" (dict "path" (printf "%s %s" $.path $name) "from" $from) }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "otelcol-gpu.secretEnv" -}}
- name: {{ include "otelcol-gpu.envName" .path }}
  valueFrom: {secretKeyRef: {name: {{ .from.secret | quote }}, key: {{ .from.key | quote }}}}
{{- end -}}
