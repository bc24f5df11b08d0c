{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Secrets that were written into values: they would end in a ConfigMap. And those
that would be sent to strangers.
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
{{- $urls := dict "exporter.url" $v.exporter.url "rawGateway.remoteWrite.url" $v.rawGateway.remoteWrite.url -}}
{{- range $_, $vendor := .Files.Get "vendors.yaml" | fromYaml }}
{{- $_ := set $urls (printf "%s.url" $vendor.values) (index $v $vendor.values).url }}
{{- end }}
{{- range $name, $to := $v.gateway.prometheusRemoteWrite }}
{{- $_ := set $urls (printf "gateway.prometheusRemoteWrite.%s.url" $name) $to.url }}
{{- end }}
{{- range $path, $url := $urls }}
{{- range regexFindAll "[?&][^=&#]+=[^&#]+" (default "" $url) -1 }}
{{- $parameter := regexFind "[^?&=]+" . }}
{{- if and (eq (include "otelcol-gpu.soundsSecret" $parameter) "true") (not (contains "=${env:" .)) }}
{{ $path }}: its parameter {{ $parameter }} would be in a ConfigMap, for everybody who may read those. {{ if hasSuffix "Exporter.url" $path }}Write {{ $parameter }}=${env:NAME} with agent.extraEnv{{ else }}Send it as a header from a Secret: headers, {secret: NAME, key: KEY}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $_, $vendor := .Files.Get "vendors.yaml" | fromYaml }}
{{- include "otelcol-gpu.contradictions.scrape" (dict "exporter" (index $v $vendor.values) "path" $vendor.values "pods" $vendor.pods) }}
{{- end }}
{{- range $part := list "agent" "gateway" "rawGateway" "standalone" }}
{{- /* Of any component: only what is a secret in all of them. */}}
{{- include "otelcol-gpu.plainSecrets" (dict "map" (index $v $part).config "path" (printf "%s.config" $part) "name" "" "only" "(?i)^(proxy-)?(authorization|password|(bearer_)?token|client_secret|(x-)?api[-_]?key)$") }}
{{- end }}
{{- end -}}

{{/* Of the scrapes of an .exporter, a block of values at .path, of which .pods are named. */}}
{{- define "otelcol-gpu.contradictions.scrape" -}}
{{- include "otelcol-gpu.plainSecrets" (dict "map" .exporter.scrape "path" (printf "%s.scrape" .path) "name" "" "only" ".") }}
{{- $scrape := default dict .exporter.scrape -}}
{{- /* What the receiver would send to whoever labels a pod as the exporter. It refuses the same. */}}
{{- if and (not .exporter.url) (not .exporter.namespaces) }}
{{- $remedy := printf "it would go to every pod of the node that calls itself %s, in any namespace. Name the exporter's namespace in %s.namespaces, or set %s.url" .pods .path .path }}
{{- range list "basic_auth" "authorization" "oauth2" "bearer_token" "bearer_token_file" }}
{{- if get $scrape . }}
{{ $.path }}.scrape.{{ . }}: {{ $remedy }}
{{- end }}
{{- end }}
{{- $tls := $scrape.tls_config }}
{{- if and (kindIs "map" $tls) (or (get (default dict $tls) "cert") (get (default dict $tls) "cert_file")) }}
{{ .path }}.scrape.tls_config (a client certificate): {{ $remedy }}
{{- end }}
{{- if kindIs "map" $scrape.http_headers }}
{{- range $name, $header := $scrape.http_headers }}
{{- if and (kindIs "map" $header) (or $header.secrets $header.files) }}
{{ $.path }}.scrape.http_headers.{{ $name }}: {{ $remedy }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether something of this name is usually a secret, and no file's name: "" or "true". */}}
{{- define "otelcol-gpu.soundsSecret" -}}
{{- if and (not (regexMatch "(?i)_(file|ref)s?$" .)) (regexMatch "(?i)authorization|cookie|credential|token$|secret|passw|signature|^sig$|^x-auth|-team$|dsn$|key$" .) -}}true{{- end -}}
{{- end -}}

{{/*
What is written out in .map, at any depth, and sounds like a secret and like .only.
.name is what "values" in it belong to.
*/}}
{{- define "otelcol-gpu.plainSecrets" -}}
{{- range $key, $value := .map }}
{{- $path := printf "%s.%s" $.path $key }}
{{- $name := ternary $.name $key (eq $key "values") }}
{{- if kindIs "map" $value }}
{{- include "otelcol-gpu.plainSecrets" (dict "map" $value "path" $path "name" $key "only" $.only) }}
{{- else if or (and (eq $key "proxy_url") (contains "@" (toString $value))) (and (regexMatch $.only $name) (eq (include "otelcol-gpu.soundsSecret" $name) "true")) }}
{{- range ternary $value (list $value) (kindIs "slice" $value) }}
{{- if and . (not (contains "${env:" (toString .))) }}
{{ $path }}: it would be in a ConfigMap, for everybody who may read those. {{ if and (eq $.only ".") (regexMatch "^(password|credentials|client_secret|key)$" $key) }}Mount a Secret with extraVolumes and name its file ({{ $key }}_file), or write{{ else }}Write{{ end }} "${env:NAME}" with extraEnv
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
