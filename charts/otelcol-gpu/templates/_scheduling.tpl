{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

config/scheduler.yaml: gpu_scheduling and the pages of schedulers, in the gateway or in
the pod of mode standalone.
*/}}

{{/* What config/scheduler.yaml reads of the environment. */}}
{{- define "otelcol-gpu.scheduling.env" -}}
{{- with .Values.scheduling -}}
{{- if .enabled -}}
- {name: SCHEDULING_NODES, value: {{ .nodes | quote }}}
{{- $names := dict "kubeScheduler" "KUBE_SCHEDULER" "kueue" "KUEUE" "volcano" "VOLCANO" "kai" "KAI" "koordinator" "KOORDINATOR" }}
{{- range $key, $name := $names }}
{{- with get $.Values.scheduling.schedulers $key }}
- {name: {{ $name }}_METRICS, value: {{ toJson . | trimPrefix "[" | trimSuffix "]" | squote }}}
{{- end }}
{{- end }}
{{- if eq (include "otelcol-gpu.scheduling.token" $) "true" }}
- {name: SCHEDULER_TOKEN_FILE, value: /var/run/secrets/kubernetes.io/serviceaccount/token}
- {name: SCHEDULER_INSECURE_SKIP_VERIFY, value: {{ .insecureSkipVerify | quote }}}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a page is read with the token of the pod's account. */}}
{{- define "otelcol-gpu.scheduling.token" -}}
{{- $all := concat (default list .Values.scheduling.schedulers.kubeScheduler) (default list .Values.scheduling.schedulers.kueue) -}}
{{- and .Values.scheduling.enabled (not (empty $all)) -}}
{{- end -}}

{{/* What the values make of gpu_scheduling: it follows the devices that gpu_summary follows. */}}
{{- define "otelcol-gpu.scheduling.receiver" -}}
{{- if .Values.scheduling.enabled }}
gpu_scheduling:
  {{- include "otelcol-gpu.devices" (dict "root" . "classes" true) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.scheduling.rules" -}}
{{- if .Values.scheduling.enabled }}
# gpu_scheduling: what nodes have, and whether pods may go there.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- if .Values.dra.enabled }}
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, deviceclasses]
  verbs: [list, watch]
{{- end }}
{{- if eq (include "otelcol-gpu.scheduling.token" .) "true" }}
# Pages of kube-scheduler and Kueue.
- nonResourceURLs: [/metrics]
  verbs: [get]
{{- end }}
{{- end }}
{{- end -}}

{{/* Pages of schedulers, at whatever address; kube-scheduler is on the host's network. */}}
{{- define "otelcol-gpu.scheduling.egress" -}}
{{- $ports := list -}}
{{- if .Values.scheduling.enabled -}}
{{- range $_, $addresses := .Values.scheduling.schedulers -}}
{{- range $addresses -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" (regexReplaceAll "/.*$" (regexReplaceAll "^https?://" . "") "")) -}}
{{- $ports = append $ports (default (ternary "443" "80" (hasPrefix "https://" .)) $port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with uniq $ports | sortAlpha }}
# The pages of schedulers.
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.contradictions.scheduling" -}}
{{- $v := .Values -}}
{{- with $v.scheduling }}
{{- if and .enabled (eq $v.mode "agent") }}
scheduling.enabled: mode agent has no gateway, which computes it. Set it to false, or mode to cluster
{{- end }}
{{- if and .enabled $v.thresholds.summary.namespaces }}
scheduling.enabled: what is free on a node depends on the pods of all namespaces, and thresholds.summary.namespaces leaves the gateway rights in these alone. Set it to false, or leave the list empty
{{- end }}
{{- range $name, $addresses := .schedulers }}
{{- if and $addresses (not $v.scheduling.enabled) }}
scheduling.schedulers.{{ $name }}: nothing reads it. Set scheduling.enabled to true, or leave it empty
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
