{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Rights: those of config/kubernetes, and of these only what the values ask for.
*/}}

{{/* Of whatever runs on the node. */}}
{{- define "otelcol-gpu.agentRules" -}}
# dcgm finds the node's exporter, k8s_attributes the node's pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if include "otelcol-gpu.cost.readsNamespaces" . }}
# k8s_attributes: labels of namespaces, by which tenants are found.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agent.podResources.enabled }}
# gpu_allocation: is its node cordoned, is MIG being changed on it.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- if has "koordinator" .Values.sharing }}
# gpu_allocation: which board has which number on the node.
- apiGroups: [scheduling.koordinator.sh]
  resources: [devices]
  verbs: [list, watch]
{{- end }}
{{- if .Values.dra.enabled }}
# gpu_allocation: devices that are held through DRA.
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get]
{{- end }}
{{- end }}
{{- if and .Values.agent.host.enabled (ne .Values.mode "standalone") }}
# kubelet_stats: the kubelet asks whether it may be read.
- apiGroups: [""]
  resources: [nodes/stats]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* Of whatever computes the summary: what expected pods are counted from. */}}
{{- define "otelcol-gpu.summaryRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if .Values.dra.enabled }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [list, watch]
{{- end }}
{{- include "otelcol-gpu.scheduling.rules" . }}
{{- end -}}

{{/* ClusterRole and its binding: root, part, account, name, rules. */}}
{{- define "otelcol-gpu.clusterRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}
  labels:
    {{- include "otelcol-gpu.labels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "otelcol-gpu.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "otelcol-gpu.serviceAccount" . }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* Objects without namespace: two releases of one name in two namespaces must not share them. */}}
{{- define "otelcol-gpu.clusterName" -}}
{{- $name := include "otelcol-gpu.part" . -}}
{{- if eq (include "otelcol-gpu.fullname" .root) .root.Release.Namespace -}}
{{ $name }}
{{- else -}}
{{ .root.Release.Namespace }}-{{ $name }}
{{- end -}}
{{- end -}}

{{/* The rights of summaryRules: everywhere, or a Role in each of the namespaces that are read. */}}
{{- define "otelcol-gpu.summaryRole" -}}
{{- $rules := include "otelcol-gpu.summaryRules" .root -}}
{{- $name := include "otelcol-gpu.clusterName" . -}}
{{- if .root.Values.thresholds.summary.namespaces -}}
{{- range .root.Values.thresholds.summary.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "otelcol-gpu.labels" $ | nindent 4 }}
rules:
  {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "otelcol-gpu.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "otelcol-gpu.serviceAccount" $ }}
    namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- else -}}
{{- include "otelcol-gpu.clusterRole" (merge (dict "name" $name "rules" $rules) .) }}
{{- end -}}
{{- end -}}
