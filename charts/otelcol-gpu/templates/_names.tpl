{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Names and labels. A "part" is agent, gateway, raw-gateway or standalone; it is
given as (dict "root" $ "part" "agent").
*/}}

{{- define "otelcol-gpu.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for -gateway-0 and the hash of a revision. */}}
{{- define "otelcol-gpu.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "otelcol-gpu.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-gpu.part" -}}
{{- $suffix := dict "agent" "-agent" "gateway" "-gateway" "raw-gateway" "-raw" "standalone" "" -}}
{{- include "otelcol-gpu.fullname" .root }}{{ get $suffix .part -}}
{{- end -}}

{{- define "otelcol-gpu.selectorLabels" -}}
app.kubernetes.io/name: {{ include "otelcol-gpu.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{/* Of objects that belong to no part: without the component. */}}
{{- define "otelcol-gpu.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.sharedLabels" -}}
app.kubernetes.io/name: {{ include "otelcol-gpu.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "otelcol-gpu.commonLabels" . }}
{{- end -}}

{{- define "otelcol-gpu.labels" -}}
{{ include "otelcol-gpu.selectorLabels" . }}
{{ include "otelcol-gpu.commonLabels" .root }}
{{- end -}}

{{/* The image of a .part: that with the helper of the nvml receiver where the part has it. */}}
{{- define "otelcol-gpu.image" -}}
{{- $image := .root.Values.image -}}
{{- $tag := default .root.Chart.AppVersion $image.tag -}}
{{- $digest := $image.digest -}}
{{- if and .root.Values.nvml.enabled (has .part (list "agent" "standalone")) -}}
{{- $tag = default (ternary $tag (printf "%s-nvml" $tag) (hasSuffix "-nvml" $tag)) .root.Values.nvml.image.tag -}}
{{- $digest = .root.Values.nvml.image.digest -}}
{{- end -}}
{{ $image.repository }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end -}}

{{/* The account of a part; values of the part in .account */}}
{{- define "otelcol-gpu.serviceAccount" -}}
{{- default (include "otelcol-gpu.part" .) .account.name -}}
{{- end -}}

{{/* DNS name of a part's Service, as clients call it and its certificate says. */}}
{{- define "otelcol-gpu.host" -}}
{{ include "otelcol-gpu.part" . }}.{{ .root.Release.Namespace }}.svc
{{- end -}}

{{- define "otelcol-gpu.tlsSecret" -}}
{{- default (printf "%s-tls" (include "otelcol-gpu.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "otelcol-gpu.tokenSecret" -}}
{{- default (printf "%s-token" (include "otelcol-gpu.fullname" .)) .Values.auth.existingSecret -}}
{{- end -}}
