{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The files that the gateway gets of Secrets, and its volume.
*/}}

{{- define "otelcol-gpu.gateway.secretFiles" -}}
{{- if .Values.tls.enabled }}
- {name: tls, secret: {{ include "otelcol-gpu.tlsSecret" . | quote }}, keys: [tls.crt, tls.key]}
{{- end }}
{{- if .Values.auth.enabled }}
- {name: token, secret: {{ include "otelcol-gpu.tokenSecret" . | quote }}, keys: [token]}
{{- end }}
{{- if eq (include "otelcol-gpu.scaleOut" .) "true" }}
{{- include "otelcol-gpu.scaleOut.files" . }}
{{- end }}
{{- include "otelcol-gpu.outputFiles" . }}
{{- end -}}

{{- define "otelcol-gpu.claim" -}}
accessModes: {{ toJson .accessModes }}
{{- with .storageClassName }}
storageClassName: {{ . | quote }}
{{- end }}
resources: {requests: {storage: {{ .size }}}}
{{- end -}}
