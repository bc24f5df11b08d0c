{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

What the cluster does not let the values do. helm template sees no cluster: then
only API versions are judged, those given by --api-versions.
*/}}

{{- define "otelcol-gpu.obstacles" -}}
{{- include "otelcol-gpu.obstacles.kinds" . }}
{{- if .Values.clusterChecks }}
{{- include "otelcol-gpu.obstacles.nodes" . }}
{{- include "otelcol-gpu.obstacles.podSecurity" . }}
{{- include "otelcol-gpu.obstacles.exporter" . }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.obstacles.kinds" -}}
{{- $v := .Values -}}
{{- $operator := "Install the Prometheus operator's CRDs first" -}}
{{- range $want := list
  (list $v.podMonitor.enabled "podMonitor.enabled" "monitoring.coreos.com/v1/PodMonitor" $operator)
  (list $v.serviceMonitor.enabled "serviceMonitor.enabled" "monitoring.coreos.com/v1/ServiceMonitor" $operator)
  (list $v.prometheusRule.enabled "prometheusRule.enabled" "monitoring.coreos.com/v1/PrometheusRule" $operator)
  (list (and (eq $v.mode "cluster") $v.tls.certManager.enabled) "tls.certManager.enabled" "cert-manager.io/v1/Certificate" "Install cert-manager first")
  (list $v.openshift.enabled "openshift.enabled" "security.openshift.io/v1/SecurityContextConstraints" "It is for OpenShift alone")
}}
{{- if and (index $want 0) (not ($.Capabilities.APIVersions.Has (index $want 2))) }}
{{ index $want 1 }}: the cluster has no {{ index $want 2 }}. {{ index $want 3 }}, or set it to false. With helm template: --api-versions {{ index $want 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.obstacles.nodes" -}}
{{- if eq .Values.mode "standalone" }}
{{- $nodes := len (dig "items" list (lookup "v1" "Node" "" "")) }}
{{- if gt $nodes 1 }}
mode: standalone is for a cluster of one node, and this one has {{ $nodes }}: the pod would see the GPUs of its own node alone. Set mode to cluster
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.obstacles.podSecurity" -}}
{{- $labels := dig "metadata" "labels" dict (lookup "v1" "Namespace" "" .Release.Namespace) }}
{{- $level := dig "pod-security.kubernetes.io/enforce" "" $labels }}
{{- $remedy := printf "kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged" .Release.Namespace }}
{{- if has $level (list "baseline" "restricted") }}
{{- if eq (include "otelcol-gpu.agentIsRoot" .) "true" }}
agent.podResources: the namespace {{ .Release.Namespace }} enforces the pod security level {{ $level }}, which forbids hostPath. Allow it ({{ $remedy }}), or set agent.podResources.enabled=false, agent.stateHostPath= and agent.host.enabled=false and read in README.md what is lost
{{- end }}
{{- if index .Values "dcgm-exporter" "enabled" }}
dcgm-exporter.enabled: the namespace {{ .Release.Namespace }} enforces the pod security level {{ $level }}, which forbids what an exporter needs. Allow it ({{ $remedy }}), or install the exporter elsewhere
{{- end }}
{{- end }}
{{- end -}}

{{/* Names of DaemonSets of the exporter of a .vendor that are not this release's. */}}
{{- define "otelcol-gpu.exporters" -}}
{{- $vendor := .vendor }}
{{- $root := .root }}
{{- range dig "items" list (lookup "apps/v1" "DaemonSet" "" "") }}
{{- $labels := default dict .spec.template.metadata.labels }}
{{- $own := and (eq .metadata.namespace $root.Release.Namespace) (eq (dig "app.kubernetes.io/instance" "" $labels) $root.Release.Name) }}
{{- $text := printf "%s;%s;%s" (dig "app" "" $labels) (dig "app.kubernetes.io/name" "" $labels) (dig "k8s-app" "" $labels) }}
{{- if and (regexMatch $vendor.exporter $text) (not $own) }}
{{ .metadata.namespace }}/{{ .metadata.name }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.obstacles.exporter" -}}
{{- if index .Values "dcgm-exporter" "enabled" }}
{{- with include "otelcol-gpu.exporters" (dict "root" . "vendor" (dict "exporter" "dcgm-exporter")) | trim }}
dcgm-exporter.enabled: there is a dcgm-exporter already ({{ splitList "\n" . | join ", " }}), and two on one GPU disturb each other's profiling. Set dcgm-exporter.enabled to false; it is found by its labels
{{- end }}
{{- end }}
{{- end -}}

{{/* How many nodes have one of the labels of agent.nodeSelectorTerms; empty where no node can be seen. */}}
{{- define "otelcol-gpu.gpuNodes" -}}
{{- $nodes := dig "items" list (lookup "v1" "Node" "" "") -}}
{{- if $nodes -}}
{{- $found := 0 -}}
{{- $terms := include "otelcol-gpu.nodeTerms" $ | fromJsonArray -}}
{{- range $nodes -}}
{{- $labels := dig "metadata" "labels" dict . -}}
{{- $matches := not $terms -}}
{{- range $terms -}}
{{- if and (hasKey $labels .key) (or (not .values) (has (get $labels .key) .values)) -}}{{- $matches = true -}}{{- end -}}
{{- end -}}
{{- if $matches -}}{{- $found = add1 $found -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}
{{- end -}}
