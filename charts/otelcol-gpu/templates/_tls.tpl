{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

The certificate between agents and gateways, and the token.
*/}}

{{/* The names that the certificate has to have, one a line. */}}
{{- define "otelcol-gpu.certificateNames" -}}
{{- range $part := list "gateway" "raw-gateway" }}
{{- $name := include "otelcol-gpu.part" (dict "root" $ "part" $part) }}
{{ $name }}
{{ $name }}.{{ $.Release.Namespace }}
{{ $name }}.{{ $.Release.Namespace }}.svc
{{ $name }}.{{ $.Release.Namespace }}.svc.{{ $.Values.clusterDomain }}
{{- end }}
{{- end -}}

{{/*
ca.crt, tls.crt and tls.key, in base64, of the Secret that is there, else new
ones. They are made once in a rendering: every template has to see the same.
The key of the authority is kept nowhere: to rotate is to make both anew.
*/}}
{{- define "otelcol-gpu.tlsData" -}}
{{- if not (hasKey .Values "madeTLS") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "otelcol-gpu.tlsSecret" .) -}}
{{- $data := dict -}}
{{- if and $there $there.data (index $there.data "ca.crt") (index $there.data "tls.crt") (index $there.data "tls.key") -}}
{{- $data = pick $there.data "ca.crt" "tls.crt" "tls.key" -}}
{{- else -}}
{{- $days := int .Values.tls.validityDays -}}
{{- $names := splitList "\n" (include "otelcol-gpu.certificateNames" . | trim) | toJson | fromJsonArray -}}
{{- $ca := genCA (printf "%s-ca" (include "otelcol-gpu.fullname" .)) $days -}}
{{- $cert := genSignedCert (first $names) nil $names $days $ca -}}
{{- $data = dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key) -}}
{{- end -}}
{{- $_ := set .Values "madeTLS" $data -}}
{{- end -}}
{{- toYaml .Values.madeTLS -}}
{{- end -}}

{{/* Changes with the certificate where the chart knows it, so that pods read it. */}}
{{- define "otelcol-gpu.tlsChecksum" -}}
{{- if or .Values.tls.existingSecret .Values.tls.certManager.enabled -}}
{{- include "otelcol-gpu.tlsSecret" . | sha256sum -}}
{{- else -}}
{{- include "otelcol-gpu.tlsData" . | sha256sum -}}
{{- end -}}
{{- end -}}
