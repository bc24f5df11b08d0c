{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

An upgrade with --reuse-values has the values of the chart before: what this chart has
added to values.yaml is absent, and null removes a value too. Both mean the default,
from a copy of values.yaml. Every file of templates/ that is rendered begins with it,
since Helm renders them in an order of its own.

It is so for blocks and single values. An absent list is an empty one. An absent event
or key of it has the connector's default, and of a map in Kubernetes' own words, as
resources, nothing is filled in: null takes a limit away.
*/}}
{{- define "otelcol-gpu.defaults" -}}
{{- if not (hasKey .Values "filledIn") -}}
{{- include "otelcol-gpu.fillIn" (list .Values (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- $_ := set .Values "filledIn" true -}}
{{- end -}}
{{- end -}}

{{/* Given values and their defaults. */}}
{{- define "otelcol-gpu.fillIn" -}}
{{- $values := index . 0 -}}
{{- range $key, $default := index . 1 -}}
{{- if has $key (list "events" "resources" "updateStrategy" "podSecurityContext" "labels") -}}
{{- else if kindIs "map" $default -}}
{{- if not (hasKey $values $key) -}}{{- $_ := set $values $key dict -}}{{- end -}}
{{- include "otelcol-gpu.fillIn" (list (get $values $key) $default) -}}
{{- else if not (or (kindIs "slice" $default) (kindIs "invalid" $default) (hasKey $values $key)) -}}
{{- $_ := set $values $key $default -}}
{{- end -}}
{{- end -}}
{{- end -}}
