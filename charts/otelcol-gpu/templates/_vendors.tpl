{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Vendors: what they are is in vendors.yaml. A template here is a loop over the vendors of
the cluster; none of them names one, but for what one vendor alone has.
*/}}

{{/* Entries of vendors.yaml, each with its name, in a fixed order. Values of a chart before have none. */}}
{{- define "otelcol-gpu.vendors" -}}
{{- $table := .Files.Get "vendors.yaml" | fromYaml -}}
{{- $chosen := default (list "nvidia") .Values.vendors -}}
{{- $vendors := list -}}
{{- range $name := list "nvidia" "amd" "gaudi" "intel" -}}
{{- if has $name $chosen -}}{{- $vendors = append $vendors (set (get $table $name) "name" $name) -}}{{- end -}}
{{- end -}}
{{- toJson $vendors -}}
{{- end -}}

{{/* A list (.key) of all vendors together. */}}
{{- define "otelcol-gpu.ofVendors" -}}
{{- $all := list -}}
{{- range include "otelcol-gpu.vendors" .root | fromJsonArray -}}{{- $all = concat $all (get . $.key) -}}{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Whether config/vendors.yaml is needed: there is a vendor beside or instead of NVIDIA. */}}
{{- define "otelcol-gpu.hasVendors" -}}
{{- $has := false -}}
{{- range include "otelcol-gpu.vendors" . | fromJsonArray -}}{{- if ne .name "nvidia" -}}{{- $has = true -}}{{- end -}}{{- end -}}
{{- $has -}}
{{- end -}}

{{/* Whether a vendor (.name) is one of the cluster's. */}}
{{- define "otelcol-gpu.hasVendor" -}}
{{- has .name (default (list "nvidia") .root.Values.vendors) -}}
{{- end -}}

{{/* Seconds between two scrapes of the vendor that is scraped least often. */}}
{{- define "otelcol-gpu.longestInterval" -}}
{{- $longest := include "otelcol-gpu.seconds" .Values.collectionInterval | int -}}
{{- range include "otelcol-gpu.vendors" . | fromJsonArray -}}{{- $longest = max $longest (int .interval) -}}{{- end -}}
{{- $longest -}}
{{- end -}}

{{/* All receivers of exporters, and that of NVIDIA's driver. */}}
{{- define "otelcol-gpu.receivers" -}}
{{- range include "otelcol-gpu.vendors" . | fromJsonArray }}
{{ .receiver }}:
  {{- include "otelcol-gpu.receiver" (dict "root" $ "vendor" .) | nindent 2 }}
{{- end }}
{{- with .Values.nvml }}
{{- if .enabled }}
{{- $groups := ternary (list "utilization" "memory" "power" "temperature" "clocks" "throttle" "profiling" "io" "errors" "xid" "inventory") (list "inventory" "xid") .alone }}
nvml:
  collection_interval: {{ $.Values.collectionInterval }}
  groups: {{ ternary (append $groups "processes") $groups (not (empty .processes)) | toJson }}
  processes: {by: {{ default "off" .processes | quote }}}
  xid: {kernel_log: {{ ternary "on" "off" .kernelLog | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* The receiver of a .vendor: how often, which names, which exporter. */}}
{{- define "otelcol-gpu.receiver" -}}
{{- $root := .root -}}
{{- $vendor := .vendor -}}
{{- $nvidia := eq $vendor.name "nvidia" -}}
{{- $slow := gt (int $vendor.interval) (include "otelcol-gpu.seconds" $root.Values.collectionInterval | int) -}}
{{- with index $root.Values $vendor.values -}}
collection_interval: {{ if $slow }}{{ $vendor.interval }}s{{ else }}{{ $root.Values.collectionInterval }}{{ end }}
names: {{ if and (not $nvidia) (eq $root.Values.names "dcgm") }}exporter{{ else }}{{ $root.Values.names }}{{ end }}
unmapped: {{ $root.Values.unmapped }}
exporter_interval: {{ if $nvidia }}{{ include "otelcol-gpu.exporterInterval" $root }}{{ else }}{{ .interval }}{{ end }}
cluster_name: "${env:K8S_CLUSTER_NAME}"
{{- if eq $vendor.name "amd" }}
sysfs_root: {{ $root.Values.agent.sysfsRoot | quote }}
{{- end }}
{{- if eq (default "exporter" .source) "sysfs" }}
source: sysfs
node_name: "${env:K8S_NODE_NAME}"
kubernetes: null
{{- else if .url }}
endpoints: [{{ .url | quote }}]
node_name: "${env:K8S_NODE_NAME}"
kubernetes: null
{{- else }}
{{- if and $nvidia (eq $root.Values.mode "standalone") }}
endpoints: []
{{- end }}
kubernetes:
  {{- (get ($root.Files.Get (ternary "files/agent.yaml" "files/vendors.yaml" $nvidia) | fromYaml).receivers $vendor.receiver).kubernetes | toYaml | nindent 2 }}
  {{- with .port }}
  port: {{ . }}
  {{- end }}
  {{- with .namespaces }}
  namespaces: {{ toJson . }}
  {{- end }}
  {{- with .labelSelector }}
  label_selector: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .scrape }}
scrape:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Receivers of pipelines that config/ has with dcgm: .file and .without. */}}
{{- define "otelcol-gpu.metricsReceivers" -}}
{{- $add := list -}}
{{- $nvml := .root.Values.nvml -}}
{{- $dcgm := and (eq (include "otelcol-gpu.hasVendor" (dict "root" .root "name" "nvidia")) "true") (not (and $nvml.enabled $nvml.alone)) -}}
{{- $without := ternary list (list "dcgm") $dcgm -}}
{{- if $nvml.enabled -}}{{- $add = append $add "nvml" -}}{{- end -}}
{{- range include "otelcol-gpu.vendors" .root | fromJsonArray -}}
{{- if ne .name "nvidia" -}}{{- $add = append $add .receiver -}}{{- end -}}
{{- end -}}
{{- include "otelcol-gpu.list" (dict "root" .root "file" .file "pipeline" "metrics" "key" "receivers" "add" $add "without" (concat $without .without)) -}}
{{- end -}}

{{/* The vendors' devices, for gpu_allocation and gpu_summary: resource_names are the values' where there are some. */}}
{{- define "otelcol-gpu.devices" -}}
dra:
  enabled: {{ .root.Values.dra.enabled }}
  drivers: {{ include "otelcol-gpu.ofVendors" (dict "root" .root "key" "drivers") }}
  {{- if .classes }}
  device_classes: {{ include "otelcol-gpu.ofVendors" (dict "root" .root "key" "classes") }}
  {{- end }}
resource_names: {{ .root.Values.resourceNames | default (include "otelcol-gpu.ofVendors" (dict "root" .root "key" "resources") | fromJsonArray) | toJson }}
{{- end -}}

{{/* Terms of nodes: those of the values, and the vendors' where the values have the default. */}}
{{- define "otelcol-gpu.nodeTerms" -}}
{{- $terms := default list .Values.agent.nodeSelectorTerms -}}
{{- $default := (.Files.Get "files/values.yaml" | fromYaml).agent.nodeSelectorTerms -}}
{{- if eq (toJson $terms) (toJson $default) -}}{{- $terms = concat $terms (include "otelcol-gpu.ofVendors" (dict "root" . "key" "nodes") | fromJsonArray) -}}{{- end -}}
{{- toJson $terms -}}
{{- end -}}

{{/* Values about a vendor that contradict each other, or that nothing reads. */}}
{{- define "otelcol-gpu.contradictions.vendors" -}}
{{- $table := .Files.Get "vendors.yaml" | fromYaml -}}
{{- range $name := list "nvidia" "amd" "gaudi" "intel" }}
{{- $block := (get $table $name).values }}
{{- $has := eq (include "otelcol-gpu.hasVendor" (dict "root" $ "name" $name)) "true" }}
{{- with index $.Values $block }}
{{- if and (not $has) (or .url .namespaces .labelSelector .scrape) }}
{{ $block }}: vendors is {{ default (list "nvidia") $.Values.vendors | join ", " }}, and has no {{ $name }}. Add it: --set 'vendors={ {{- append (default (list "nvidia") $.Values.vendors) $name | join "," -}} }', or leave {{ $block }} out
{{- end }}
{{- if and (eq (default "exporter" .source) "sysfs") (or .url .namespaces .labelSelector .scrape) }}
{{ $block }}.source: with sysfs the kernel is read and no exporter, and an exporter is named. Set it to exporter, or leave url, namespaces, labelSelector and scrape out
{{- end }}
{{- $interval := ternary (include "otelcol-gpu.exporterInterval" $) .interval (eq $name "nvidia") }}
{{- $seconds := include "otelcol-gpu.seconds" $interval | int }}
{{- if and $has (or (lt $seconds 1) (gt $seconds 300)) }}
{{ ternary "dcgm-exporter.collectInterval" (printf "%s.interval" $block) (and (eq $name "nvidia") (index $.Values "dcgm-exporter" "enabled")) }}: {{ $interval }} is not between 1s and 5m. Set it to {{ ternary "what the exporter's --collect-interval is" "how often the exporter reads its devices" (eq $name "nvidia") }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (index .Values "dcgm-exporter" "enabled") (ne (include "otelcol-gpu.hasVendor" (dict "root" . "name" "nvidia")) "true") }}
dcgm-exporter.enabled: it is for NVIDIA's GPUs, and vendors has no nvidia. Add it to vendors, or set dcgm-exporter.enabled to false
{{- end }}
{{- with .Values.nvml }}
{{- if and (not .enabled) (or .alone .image.tag .image.digest .runtimeClassName .processes .migDevices .kernelLog) }}
nvml.enabled: it is false, and another value of nvml is set. Set it to true, or leave the others out
{{- end }}
{{- if .enabled }}
{{- if ne (include "otelcol-gpu.hasVendor" (dict "root" $ "name" "nvidia")) "true" }}
nvml.enabled: it is for NVIDIA's GPUs, and vendors has no nvidia. Add it to vendors, or set nvml.enabled to false
{{- end }}
{{- if and $.Values.image.digest (not .image.digest) }}
nvml.image.digest: image.digest is the static image, which cannot load the driver's library. Set this to the digest of the image -nvml (make image FLAVOUR=nvml), or use tags
{{- end }}
{{- if and .image.digest (eq .image.digest $.Values.image.digest) }}
nvml.image.digest: it is image.digest, the static image, which cannot load the driver's library. Set it to the digest of the image -nvml (make image FLAVOUR=nvml)
{{- end }}
{{- if and .image.tag (eq .image.tag (default $.Chart.AppVersion $.Values.image.tag)) }}
nvml.image.tag: {{ .image.tag }} is the static image, which cannot load the driver's library. Leave it empty for {{ .image.tag }}-nvml, or name another (make image FLAVOUR=nvml)
{{- end }}
{{- if and .alone (index $.Values "dcgm-exporter" "enabled") }}
nvml.alone: no agent would read the dcgm-exporter of dcgm-exporter.enabled. Set one of them to false
{{- end }}
{{- if and .alone (or $.Values.dcgmExporter.url $.Values.dcgmExporter.namespaces $.Values.dcgmExporter.labelSelector $.Values.dcgmExporter.scrape) }}
nvml.alone: no agent would read the exporter of dcgmExporter. Set it to false, or leave dcgmExporter out
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.agent.amd.partitionAccess }}
{{- if ne (include "otelcol-gpu.hasVendor" (dict "root" . "name" "amd")) "true" }}
agent.amd.partitionAccess: vendors has no amd. Add it to vendors, or set this to false
{{- else if not .Values.agent.podResources.enabled }}
agent.amd.partitionAccess: it is for the ids that the kubelet has of partitions, and agent.podResources.enabled is false. Set that to true, or this to false
{{- end }}
{{- end }}
{{- end -}}
