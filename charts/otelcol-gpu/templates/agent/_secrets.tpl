{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The files that the agent gets of Secrets: never a key of the gateway's.
*/}}

{{- define "otelcol-gpu.agent.secretFiles" -}}
{{- if eq .Values.mode "cluster" }}
{{- if .Values.tls.enabled }}
- {name: tls, secret: {{ include "otelcol-gpu.tlsSecret" . | quote }}, keys: [ca.crt]}
{{- end }}
{{- if .Values.auth.enabled }}
- {name: token, secret: {{ include "otelcol-gpu.tokenSecret" . | quote }}, keys: [token]}
{{- end }}
{{- else }}
{{- with .Values.exporter }}
{{- if .tls.caSecret }}
- {name: tls, secret: {{ .tls.caSecret | quote }}, keys: [ca.crt]}
{{- end }}
{{- if .tls.clientSecret }}
- {name: client, secret: {{ .tls.clientSecret | quote }}, keys: [tls.crt, tls.key]}
{{- end }}
{{- if .token.existingSecret }}
- {name: token, secret: {{ .token.existingSecret | quote }}, keys: [{{ .token.key | quote }}], as: [token]}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.agent.secretMounts" -}}
{{- include "otelcol-gpu.fileMounts" (include "otelcol-gpu.agent.secretFiles" .) -}}
{{- end -}}

{{- define "otelcol-gpu.agent.secretVolumes" -}}
{{- include "otelcol-gpu.fileVolumes" (include "otelcol-gpu.agent.secretFiles" .) -}}
{{- end -}}

{{/*
Mounts and volumes of a YAML list of {name, secret, keys, as}: folders below
/etc/otelcol-gpu-secrets. Without keys all keys of the Secret.
*/}}
{{- define "otelcol-gpu.fileMounts" -}}
{{- range fromYamlArray . }}
- {name: secret-{{ .name }}, mountPath: /etc/otelcol-gpu-secrets/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.fileVolumes" -}}
{{- range fromYamlArray . }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    {{- if .keys }}
    items:
      {{- $as := .as }}
      {{- range $i, $key := .keys }}
      - {key: {{ $key | quote }}, path: {{ if $as }}{{ index $as $i | quote }}{{ else }}{{ $key | quote }}{{ end }}}
      {{- end }}
    {{- end }}
{{- end }}
{{- end -}}
