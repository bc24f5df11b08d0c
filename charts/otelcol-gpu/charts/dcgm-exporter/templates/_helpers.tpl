{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0
*/}}

{{- define "dcgm-exporter.name" -}}
{{ .Release.Name | trunc 48 | trimSuffix "-" }}-dcgm-exporter
{{- end -}}

{{/* The receiver finds the exporter by app.kubernetes.io/name. */}}
{{- define "dcgm-exporter.selectorLabels" -}}
app.kubernetes.io/name: dcgm-exporter
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: dcgm-exporter
{{- end -}}

{{- define "dcgm-exporter.labels" -}}
{{ include "dcgm-exporter.selectorLabels" . }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* An exporter ends over a name that it does not know. A tag begins with DCGM's version. */}}
{{- define "dcgm-exporter.countersFile" -}}
{{- $dcgm := default .Chart.AppVersion .Values.image.tag | trimPrefix "v" | regexFind "^[0-9]+[.][0-9]+" -}}
{{- if and $dcgm (semverCompare ">=4.7" $dcgm) -}}
files/counters-4.9.csv
{{- else -}}
files/counters.csv
{{- end -}}
{{- end -}}

{{- define "dcgm-exporter.counters" -}}
{{- $text := default (.Files.Get (include "dcgm-exporter.countersFile" .)) .Values.counters -}}
{{- if .Values.profiling -}}
{{- $text -}}
{{- else -}}
{{- regexReplaceAll "(?m)^DCGM_FI_PROF_.*\n?" $text "" -}}
{{- end -}}
{{- end -}}

{{/* collectInterval in milliseconds, as the exporter wants it. */}}
{{- define "dcgm-exporter.milliseconds" -}}
{{- $total := 0 -}}
{{- $unit := dict "m" 60000 "s" 1000 -}}
{{- range regexFindAll "[0-9]+[ms]" .Values.collectInterval -1 -}}
{{- $total = add $total (mul (regexFind "[0-9]+" .) (get $unit (regexFind "[ms]" .))) -}}
{{- end -}}
{{- $total -}}
{{- end -}}
