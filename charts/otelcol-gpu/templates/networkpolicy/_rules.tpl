{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Who may come in, and what a pod may reach. The kubelet's probes come from the node
and are always let in.
*/}}

{{- define "otelcol-gpu.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "otelcol-gpu.part" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "otelcol-gpu.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "otelcol-gpu.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress{{ if .root.Values.networkPolicy.egress.enabled }}, Egress{{ end }}]
  ingress:
    {{- .ingress | trim | nindent 4 }}
  {{- if .root.Values.networkPolicy.egress.enabled }}
  egress:
    {{- include "otelcol-gpu.policy.egress" . | trim | nindent 4 }}
    {{- .egress | trim | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* .peers, or every pod of the cluster. */}}
{{- define "otelcol-gpu.policy.from" -}}
from:
  {{- if .peers }}
  {{- toYaml .peers | nindent 2 }}
  {{- else }}
  - namespaceSelector: {}
  {{- end }}
{{- end -}}

{{- define "otelcol-gpu.policy.metrics" -}}
- {{ include "otelcol-gpu.policy.from" (dict "peers" .root.Values.networkPolicy.metricsFrom) | indent 2 | trim }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}

{{/* An exposed console: from whoever is named, else from everywhere. */}}
{{- define "otelcol-gpu.policy.console" -}}
{{- if and .Values.console.enabled .Values.console.expose }}
- ports:
    - {protocol: TCP, port: 8480}
  {{- with .Values.networkPolicy.consoleFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The pods of a part of this release. */}}
{{- define "otelcol-gpu.policy.part" -}}
- podSelector:
    matchLabels:
      {{- include "otelcol-gpu.selectorLabels" . | nindent 6 }}
{{- end -}}

{{- define "otelcol-gpu.policy.egress" -}}
# DNS
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- if ne .part "raw-gateway" }}
# The API server
- ports:
    - {protocol: TCP, port: 443}
    - {protocol: TCP, port: 6443}
  {{- with .root.Values.networkPolicy.egress.apiServerCIDRs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
  {{- end }}
{{- end }}
{{- with .root.Values.networkPolicy.egress.extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The exporters of the node: in any namespace, or on the host's network. */}}
{{- define "otelcol-gpu.policy.exporter" -}}
- ports:
    {{- range include "otelcol-gpu.vendors" . | fromJsonArray }}
    {{- $port := (index $.Values .values).port }}
    {{- range ternary (list $port) .ports (gt (int $port) 0) }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
    {{- end }}
{{- end -}}
