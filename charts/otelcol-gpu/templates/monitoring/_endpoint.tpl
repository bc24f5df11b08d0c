{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

An endpoint of a PodMonitor or ServiceMonitor. The alerts look for a job with
otelcol-gpu in its name, whatever the release is called.
*/}}

{{- define "otelcol-gpu.endpoint" -}}
- port: {{ .port }}
  interval: {{ .interval }}
  relabelings:
    - {targetLabel: job, replacement: otelcol-gpu-{{ .part }}}
    {{- if has .port (list "prometheus" "prometheus-apps") }}
    # What the gateway says is about the fleet: its pod is not part of a series'
    # identity, and a restart begins no new ones.
    - {targetLabel: instance, replacement: {{ ternary "otelcol-gpu" "otelcol-gpu-apps" (eq .port "prometheus") }}}
    - {action: labeldrop, regex: pod|container|endpoint|service}
    {{- end }}
{{- end -}}
