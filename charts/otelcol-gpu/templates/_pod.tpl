{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

What the pods of all parts have in common. Given root, part, and values: those of
the part.
*/}}

{{- define "otelcol-gpu.podMeta" -}}
annotations:
  # A changed configuration starts the pod anew: the Collector does not watch it.
  checksum/config: {{ include (printf "otelcol-gpu.%s.data" .part) .root | sha256sum }}
  {{- if and (eq .root.Values.mode "cluster") .root.Values.tls.enabled }}
  checksum/tls: {{ include "otelcol-gpu.tlsChecksum" .root }}
  {{- end }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
labels:
  {{- include "otelcol-gpu.selectorLabels" . | nindent 2 }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "otelcol-gpu.podSpec" -}}
serviceAccountName: {{ include "otelcol-gpu.serviceAccount" (dict "root" .root "part" .part "account" .values.serviceAccount) }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
{{- if and .root.Values.nvml.enabled (has .part (list "agent" "standalone")) }}
{{- with .root.Values.nvml.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- if .root.Values.nvml.processes }}
# The driver names processes by the node's ids.
hostPID: true
{{- end }}
{{- end }}
{{- end -}}

{{/*
The files that --config names, in order: what is shipped, what values change, what
the user adds. writes: whether there is a remote write.
*/}}
{{- define "otelcol-gpu.args" -}}
{{- range .files }}
- --config
- /etc/otelcol-gpu/{{ . }}
{{- end }}
{{- if .values.config }}
- --config
- /etc/otelcol-gpu/custom.yaml
{{- end }}
{{- if .writes }}
# Without it what a server refuses with 429, because it is too much, is lost.
- --feature-gates
- exporter.prometheusremotewritexporter.RetryOn429
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.container" -}}
image: {{ include "otelcol-gpu.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
readinessProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 10
  failureThreshold: 6
# It reads what the last process left.
startupProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 5
  failureThreshold: 36
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end -}}

{{/* Variables of every part. */}}
{{- define "otelcol-gpu.env" -}}
- name: K8S_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
# The kubelet's answers are believed when this pod is in them.
- name: K8S_POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: K8S_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $name, $path := dict "K8S_POD_IP" "status.podIP" "K8S_NODE_IP" "status.hostIP" }}
- name: {{ $name }}{{ if $.root.Values.ipv6 }}_PLAIN{{ end }}
  valueFrom: {fieldRef: {fieldPath: {{ $path }}}}
{{- if $.root.Values.ipv6 }}
# As it stands before a port.
- {name: {{ $name }}, value: "[$({{ $name }}_PLAIN)]"}
{{- end }}
{{- end }}
- {name: K8S_CLUSTER_NAME, value: {{ .root.Values.clusterName | quote }}}
- {name: STATE_DIRECTORY, value: /var/lib/otelcol-gpu}
{{- if and .root.Values.nvml.enabled (has .part (list "agent" "standalone")) }}
# The container toolkit brings the driver's library and devices.
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- if .root.Values.nvml.migDevices }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
- {name: NVML_RELEASE_FILE, value: /var/lib/otelcol-gpu/release}
{{- end }}
{{- end -}}

{{/* Security of a container that is not root. */}}
{{- define "otelcol-gpu.restricted" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/*
Security of the container that asks the kubelet. Only user 0 may enter the
kubelet's folder and write into the node's; nothing else of root's is needed.
*/}}
{{- define "otelcol-gpu.agentSecurity" -}}
{{- if eq (include "otelcol-gpu.agentIsRoot" .) "true" -}}
runAsUser: 0
runAsGroup: 0
{{- if eq (include "otelcol-gpu.privileged" .) "true" }}
# The kernel shows a partition's node of the KFD to who may open its device, and opens its
# log to no other container.
privileged: true
{{- else if not (and .Values.nvml.enabled .Values.nvml.migDevices) }}
allowPrivilegeEscalation: false
{{- end }}
readOnlyRootFilesystem: true
{{- if and .Values.nvml.enabled .Values.nvml.migDevices }}
# The container toolkit gives devices of MIG to no other container.
capabilities: {drop: [ALL], add: [SYS_ADMIN]}
{{- else }}
capabilities: {drop: [ALL]}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- $selinux := .Values.agent.seLinuxOptions }}
{{- if and (not $selinux) .Values.openshift.enabled }}
{{- $selinux = dict "type" "spc_t" }}
{{- end }}
{{- with $selinux }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else -}}
{{- if not .Values.openshift.enabled }}
runAsUser: 10001
runAsGroup: 10001
{{- end }}
{{ include "otelcol-gpu.restricted" . }}
{{- end -}}
{{- end -}}

{{/* Whether the part on the node is a privileged container. */}}
{{- define "otelcol-gpu.privileged" -}}
{{- or .Values.agent.amd.partitionAccess (and .Values.nvml.enabled .Values.nvml.kernelLog) -}}
{{- end -}}

{{/* Whether the part on the node needs user 0: for folders of the node, and for rights of nvml. */}}
{{- define "otelcol-gpu.agentIsRoot" -}}
{{- $agent := .Values.agent -}}
{{- $nvml := and .Values.nvml.enabled (or .Values.nvml.migDevices .Values.nvml.kernelLog) -}}
{{- or $agent.podResources.enabled $nvml (and (ne .Values.mode "standalone") (or (ne $agent.stateHostPath "") $agent.host.enabled)) -}}
{{- end -}}

{{- define "otelcol-gpu.nodeAffinity" -}}
{{- with include "otelcol-gpu.nodeTerms" . | fromJsonArray }}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range . }}
      - matchExpressions:
          {{- if .values }}
          - {key: {{ .key | quote }}, operator: In, values: {{ toJson .values }}}
          {{- else }}
          - {key: {{ .key | quote }}, operator: Exists}
          {{- end }}
      {{- end }}
{{- end }}
{{- end -}}

{{/* Without the empty lines and spaces that templates leave. */}}
{{- define "otelcol-gpu.tidy" -}}
{{- regexReplaceAll "[ \t]*\n([ \t]*\n)*" (trim .) "\n" -}}
{{- end -}}
