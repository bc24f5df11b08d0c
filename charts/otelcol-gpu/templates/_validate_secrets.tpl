{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Secrets that were written into values: they would end in a ConfigMap.
*/}}

{{- define "otelcol-gpu.contradictions.secrets" -}}
{{- $v := .Values -}}
{{- $headers := dict "exporter.headers" $v.exporter.headers "agent.applications.headers" $v.agent.applications.headers "gateway.store.headers" $v.gateway.store.headers "rawGateway.backend.headers" $v.rawGateway.backend.headers "rawGateway.remoteWrite.headers" $v.rawGateway.remoteWrite.headers -}}
{{- range $name, $to := $v.gateway.prometheusRemoteWrite }}
{{- $_ := set $headers (printf "gateway.prometheusRemoteWrite.%s.headers" $name) (default dict $to.headers) }}
{{- end }}
{{- range $name, $to := $v.gateway.otlp }}
{{- $_ := set $headers (printf "gateway.otlp.%s.headers" $name) (default dict $to.headers) }}
{{- end }}
{{- range $path, $all := $headers }}
{{- range $name, $from := $all }}
{{- if and (hasKey $from "value") (regexMatch "(?i)^(proxy-)?authorization$|api-?key|token|secret|password" $name) }}
{{ $path }}.{{ $name }}: its value would be in a ConfigMap, for everybody who may read those. Put it into a Secret, and set {secret: NAME, key: KEY}
{{- end }}
{{- end }}
{{- end }}
{{- $scrape := $v.dcgmExporter.scrape }}
{{- range list "basic_auth.password" "authorization.credentials" "oauth2.client_secret" "tls_config.key" "bearer_token" }}
{{- $value := $scrape }}
{{- range splitList "." . }}
{{- $value = ternary (get (default dict (ternary $value dict (kindIs "map" $value))) .) "" (kindIs "map" $value) }}
{{- end }}
{{- if and $value (not (hasPrefix "${env:" (toString $value))) }}
dcgmExporter.scrape.{{ . }}: it would be in a ConfigMap, for everybody who may read those. Mount a Secret with extraVolumes and name its file ({{ . }}_file), or write "${env:NAME}" with extraEnv
{{- end }}
{{- end }}
{{- end -}}
