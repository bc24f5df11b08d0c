{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

What GPUs cost and who pays: gpu_cost where the summary is computed, and in the agents
the labels of nodes, namespaces and pods that it needs.
*/}}

{{- define "otelcol-gpu.cost" -}}
staleness: {{ include "otelcol-gpu.atLeast" (dict "root" . "value" "" "times" 3 "least" 45) }}
{{- with .Values.cost }}
currency: {{ .currency }}
{{- if .prices }}
prices: {{ toJson .prices | replace "$" "$$" }}
{{- end }}
{{- if .pricesSecret }}
prices_file: /etc/otelcol-gpu-secrets/prices/prices.yaml
{{- end }}
{{- with .tenant.from }}
tenant: {from: {{ toJson . | replace "$" "$$" }}}
{{- end }}
{{- with .budgets }}
budgets: {{ toJson . | replace "$" "$$" }}
{{- end }}
{{- with .carbon }}
carbon: {{ toJson . | replace "$" "$$" }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Labels of nodes that prices depend on. */}}
{{- define "otelcol-gpu.cost.nodeLabels" -}}
{{- $keys := default list .Values.cost.nodeLabels -}}
{{- range .Values.cost.prices -}}
{{- range $key, $_ := .match -}}
{{- if hasPrefix "node.label." $key -}}{{- $keys = append $keys (trimPrefix "node.label." $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $keys | toJson -}}
{{- end -}}

{{/*
The labels that k8s_attributes takes of pods and namespaces: those of config/agent.yaml,
and those that a tenant is found by. Empty where there are no more.
*/}}
{{- define "otelcol-gpu.cost.labels" -}}
{{- $shipped := (.Files.Get "files/agent.yaml" | fromYaml).processors.k8s_attributes.extract.labels -}}
{{- $names := list -}}
{{- range $shipped -}}{{- $names = append $names .tag_name -}}{{- end -}}
{{- $more := list -}}
{{- range $name := uniq (default list .Values.cost.tenant.from) -}}
{{- range $from := list "namespace" "pod" -}}
{{- $prefix := printf "k8s.%s.label." $from -}}
{{- if and (hasPrefix $prefix $name) (not (has $name $names)) -}}
{{- $more = append $more (dict "tag_name" $name "key" (trimPrefix $prefix $name) "from" $from) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $more }}{{ concat $shipped $more | toJson | replace "$" "$$" }}{{ end -}}
{{- end -}}

{{/* Whether a tenant is found by a label of its namespace: empty where not. */}}
{{- define "otelcol-gpu.cost.readsNamespaces" -}}
{{- range .Values.cost.tenant.from -}}
{{- if hasPrefix "k8s.namespace.label." . -}}true{{- end -}}
{{- end -}}
{{- end -}}
