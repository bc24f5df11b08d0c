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
{{- if and (hasKey $from "value") (eq (include "otelcol-gpu.soundsSecret" $name) "true") }}
{{ $path }}.{{ $name }}: its value would be in a ConfigMap, for everybody who may read those. Put it into a Secret, and set {secret: NAME, key: KEY}
{{- end }}
{{- end }}
{{- end }}
{{- $urls := dict "exporter.url" $v.exporter.url "rawGateway.remoteWrite.url" $v.rawGateway.remoteWrite.url "dcgmExporter.url" $v.dcgmExporter.url -}}
{{- range $name, $to := $v.gateway.prometheusRemoteWrite }}
{{- $_ := set $urls (printf "gateway.prometheusRemoteWrite.%s.url" $name) $to.url }}
{{- end }}
{{- range $path, $url := $urls }}
{{- range regexFindAll "[?&][^=&#]+=[^&#]+" (default "" $url) -1 }}
{{- $parameter := regexFind "[^?&=]+" . }}
{{- if and (eq (include "otelcol-gpu.soundsSecret" $parameter) "true") (not (contains "=${env:" .)) }}
{{ $path }}: its parameter {{ $parameter }} would be in a ConfigMap, for everybody who may read those. {{ if eq $path "dcgmExporter.url" }}Write {{ $parameter }}=${env:NAME} with agent.extraEnv{{ else }}Send it as a header from a Secret: headers, {secret: NAME, key: KEY}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- include "otelcol-gpu.scrapeSecrets" (dict "map" $v.dcgmExporter.scrape "path" "dcgmExporter.scrape" "name" "") }}
{{- end -}}

{{/* Whether something of this name is usually a secret: "" or "true". */}}
{{- define "otelcol-gpu.soundsSecret" -}}
{{- if regexMatch "(?i)authorization|cookie|credential|token$|secret|passw|signature|^sig$|^x-auth|-team$|dsn$|key$" . -}}true{{- end -}}
{{- end -}}

{{/* The secrets of a scrape_config in .map, at any depth. .name is what "values" there belong to. */}}
{{- define "otelcol-gpu.scrapeSecrets" -}}
{{- range $key, $value := .map }}
{{- $path := printf "%s.%s" $.path $key }}
{{- if kindIs "map" $value }}
{{- include "otelcol-gpu.scrapeSecrets" (dict "map" $value "path" $path "name" $key) }}
{{- else if or (and (eq $key "proxy_url") (contains "@" (toString $value))) (eq (include "otelcol-gpu.soundsSecret" (ternary $.name $key (eq $key "values"))) "true") }}
{{- range ternary $value (list $value) (kindIs "slice" $value) }}
{{- if and . (not (contains "${env:" (toString .))) }}
{{ $path }}: it would be in a ConfigMap, for everybody who may read those. {{ if regexMatch "^(password|credentials|client_secret|key)$" $key }}Mount a Secret with extraVolumes and name its file ({{ $key }}_file), or write{{ else }}Write{{ end }} "${env:NAME}" with extraEnv
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
