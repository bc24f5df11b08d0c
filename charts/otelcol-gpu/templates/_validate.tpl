{{/*
Copyright The otelcol-gpu Authors
SPDX-License-Identifier: Apache-2.0

Values that contradict each other. A line for each, with the value and the
remedy; all of them are told at once.
*/}}

{{- define "otelcol-gpu.contradictions" -}}
{{- $v := .Values -}}
{{- $cluster := eq $v.mode "cluster" -}}
{{- $summary := ne $v.mode "agent" -}}
{{- if not $v.clusterName }}
clusterName: it is empty, and becomes k8s.cluster.name of everything. Set it: --set clusterName=NAME
{{- end }}
{{- if not $v.image.repository }}
image.repository: it is empty, and no image is published. Build one (make image, docs/install.md), push it, and name it: --set image.repository=REGISTRY/otelcol-gpu
{{- end }}
{{- if hasKey $v.gateway "replicas" }}
gateway.replicas: there is exactly one gateway, because two would each see half of a service and call it partial. Leave it out; for large fleets set rawGateway.enabled
{{- end }}
{{- if and (eq $v.mode "agent") (not $v.exporter.endpoint) (not $v.exporter.url) }}
exporter.endpoint: mode agent sends to an OTLP endpoint that is there already. Set exporter.endpoint to its host:port (gRPC), or exporter.url (HTTP), or mode to cluster
{{- end }}
{{- if and (ne $v.mode "agent") (or $v.exporter.endpoint $v.exporter.url) }}
exporter.endpoint: only mode agent sends there. Set mode to agent, or use gateway.otlp to send from the gateway
{{- end }}
{{- if and $v.sharing (not $v.agent.podResources.enabled) }}
sharing: agents learn which pods there are from the kubelet, and agent.podResources.enabled is false. Set it to true, or leave sharing empty
{{- end }}
{{- with $v.exporter }}
{{- if and .endpoint .url }}
exporter.url: exporter.endpoint is set too. Agents send to one of them: leave one empty
{{- end }}
{{- if and .url .insecure }}
exporter.insecure: it is about gRPC. Leave it out, and write the url with http://
{{- end }}
{{- if and (hasPrefix "http://" .url) .token.existingSecret }}
exporter.url: a bearer token is never sent without TLS. Write it with https://, or leave exporter.token.existingSecret empty
{{- end }}
{{- if and .insecure .token.existingSecret }}
exporter.insecure: a bearer token is never sent without TLS. Set it to false, or leave exporter.token.existingSecret empty
{{- end }}
{{- if and .insecure (or .tls.caSecret .tls.clientSecret .tls.serverName .tls.insecureSkipVerify) }}
exporter.insecure: it means no TLS, and exporter.tls is set. Leave one of them out
{{- end }}
{{- end }}
{{- if and $cluster $v.auth.enabled (not $v.tls.enabled) }}
auth.enabled: a bearer token is never sent without TLS. Set tls.enabled to true, or auth.enabled to false too
{{- end }}
{{- if and $v.tls.existingSecret $v.tls.certManager.enabled }}
tls.existingSecret: cert-manager would write into that Secret. Leave it empty, or set tls.certManager.enabled to false
{{- end }}
{{- if and $v.tls.certManager.enabled (not $v.tls.enabled) }}
tls.certManager.enabled: tls.enabled is false. Set that to true, or this to false
{{- end }}
{{- if and $v.tls.enabled $v.tls.certManager.enabled (not $v.tls.certManager.issuerRef.name) }}
tls.certManager.issuerRef.name: cert-manager needs an issuer. Name an Issuer of this namespace, or a ClusterIssuer with issuerRef.kind
{{- end }}
{{- with $v.console }}
{{- if and .expose (not .enabled) }}
console.expose: console.enabled is false. Set that to true, or this to false
{{- end }}
{{- if and .expose (not .token.existingSecret) }}
console.token.existingSecret: a console that other machines can reach needs a token. Make a Secret (kubectl create secret generic NAME --from-literal=token=$(openssl rand -hex 32)) and name it, or set console.expose to false and use kubectl port-forward
{{- end }}
{{- if and .tlsSecret (not .expose) }}
console.tlsSecret: without console.expose the console is on loopback and has no TLS. Set console.expose to true, or leave it empty
{{- end }}
{{- end }}
{{- with $v.rawGateway }}
{{- if and .enabled (not $cluster) }}
rawGateway.enabled: raw gateways stand beside the gateway. Set mode to cluster, or this to false
{{- end }}
{{- if and (not .enabled) (or .backend.endpoint .remoteWrite.url) }}
rawGateway.enabled: it is false, and where raw gateways send is set. Set it to true, or leave rawGateway.backend.endpoint and rawGateway.remoteWrite.url empty
{{- end }}
{{- if and .enabled (not .backend.endpoint) (not .remoteWrite.url) }}
rawGateway.backend.endpoint: raw gateways need something to send to. Set it to the host:port of an OTLP/gRPC backend, or rawGateway.remoteWrite.url to the address of a remote write
{{- end }}
{{- if and .backend.endpoint .remoteWrite.url }}
rawGateway.remoteWrite.url: rawGateway.backend.endpoint is set too. Raw gateways send to one of them: leave one empty
{{- end }}
{{- if and .enabled .remoteWrite.url (ne $v.gateway.store.engine "prometheus") }}
gateway.store.engine: with rawGateway.remoteWrite.url telemetry is in that server and not in the gateway. Set it to prometheus, and gateway.store.url to where that server is asked
{{- end }}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) }}
rawGateway.autoscaling.minReplicas: {{ .autoscaling.minReplicas }} is above maxReplicas, {{ .autoscaling.maxReplicas }}. Lower it
{{- end }}
{{- end }}
{{- with $v.gateway.store }}
{{- if and $summary (eq .engine "prometheus") (not .url) }}
gateway.store.url: the engine prometheus reads a server. Set it to the address in front of /api/v1
{{- end }}
{{- if and $summary (eq .engine "embedded") }}
{{- range $part, $is := dict "gateway" $cluster "standalone" (eq $v.mode "standalone") }}
{{- $volume := get (index $v $part) "persistence" }}
{{- $unit := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $bytes := mulf (regexFind "^[0-9.]+" $volume.size | float64) (get $unit (regexFind "[KMGT]i$" $volume.size)) }}
{{- if and $is $volume.enabled (ge (float64 $v.gateway.store.maxBytes) $bytes) }}
{{ $part }}.persistence.size: {{ $volume.size }} is not above gateway.store.maxBytes, {{ $v.gateway.store.maxBytes | int64 }}, and the volume holds events, deliveries and the audit log besides. Raise it, or lower gateway.store.maxBytes
{{- end }}
{{- end }}
{{- end }}
{{- if and (ne .engine "prometheus") .url }}
gateway.store.url: it is set, and the engine is {{ .engine }}. Set gateway.store.engine to prometheus, or leave it empty
{{- end }}
{{- end }}
{{- if not $summary }}
{{- range $path, $set := dict "gateway.otlp" $v.gateway.otlp "gateway.prometheusRemoteWrite" $v.gateway.prometheusRemoteWrite "console.expose" $v.console.expose "cost.prices" $v.cost.prices "cost.pricesSecret" $v.cost.pricesSecret "cost.budgets" $v.cost.budgets "cost.carbon" $v.cost.carbon }}
{{- if $set }}
{{ $path }}: mode agent has no gateway and no console. Leave it out, or set mode to cluster
{{- end }}
{{- end }}
{{- end }}
{{- if and $v.cost.prices $v.cost.pricesSecret }}
cost.pricesSecret: cost.prices is set too, and prices come from one of them. Leave one empty
{{- end }}
{{- if and $summary (or $v.cost.pricesSecret $v.cost.budgets) (not (and $v.networkPolicy.enabled $v.networkPolicy.metricsFrom)) }}
networkPolicy.metricsFrom: {{ ternary "cost.pricesSecret" "cost.budgets" (not (empty $v.cost.pricesSecret)) }} is set, and prices and the costs of tenants are on port 9464, which every pod may read. Name who may scrape it: networkPolicy.metricsFrom, with networkPolicy.enabled
{{- end }}
{{- include "otelcol-gpu.contradictions.vendors" . }}
{{- include "otelcol-gpu.contradictions.applications" . }}
{{- include "otelcol-gpu.contradictions.scheduling" . }}
{{- include "otelcol-gpu.contradictions.labels" . }}
{{- include "otelcol-gpu.contradictions.webhooks" . }}
{{- include "otelcol-gpu.contradictions.times" . }}
{{- include "otelcol-gpu.contradictions.memory" . }}
{{- include "otelcol-gpu.contradictions.secrets" . }}
{{- if and (index $v "dcgm-exporter" "enabled") $v.dcgmExporter.url }}
dcgmExporter.url: dcgm-exporter.enabled installs an exporter that is found by its labels. Leave the url empty, or set dcgm-exporter.enabled to false
{{- end }}
{{- if regexMatch "^/var/lib/(cni|containerd|containers|crio|docker|etcd|kubelet|rancher)(/|$)" (default "" $v.agent.stateHostPath) }}
agent.stateHostPath: {{ $v.agent.stateHostPath }} belongs to the node, and agents would write into it. Name a folder of their own, as /var/lib/otelcol-gpu
{{- end }}
{{- if and $v.agent.stateHostPath (not (has (toString (dig "rollingUpdate" "maxSurge" 0 $v.agent.updateStrategy)) (list "0" "0%"))) }}
agent.updateStrategy.rollingUpdate.maxSurge: two agents of a node cannot share agent.stateHostPath. Leave it out and use maxUnavailable, or set agent.stateHostPath to empty
{{- end }}
{{- if and $v.agent.seLinuxOptions (ne (include "otelcol-gpu.agentIsRoot" .) "true") }}
agent.seLinuxOptions: without folders of the node the agent needs none. Leave it out
{{- end }}
{{- end -}}

{{/* Where telemetry of applications goes: never to where GPUs' does unasked. */}}
{{- define "otelcol-gpu.contradictions.applications" -}}
{{- $v := .Values -}}
{{- $gateway := $v.gateway.applications -}}
{{- with $v.agent.applications }}
{{- if and (not .endpoint) (or .insecure .headers) }}
agent.applications.endpoint: it is empty, and insecure or headers of it are set. Set it to a host:port, or leave them out
{{- end }}
{{- if and (ne $v.mode "standalone") (or .enabled $v.agent.inference.enabled) (not .endpoint) (not $gateway.enabled) }}
agent.applications.endpoint: it is empty, and {{ ternary "agent.applications.enabled" "agent.inference.enabled" .enabled }} needs somewhere to send. Set it to the host:port of an OTLP/gRPC backend{{ if eq $v.mode "cluster" }}, or gateway.applications.enabled to true (metrics alone){{ end }}
{{- end }}
{{- if and .endpoint $gateway.enabled }}
agent.applications.endpoint: {{ .endpoint }} gets what applications send, and gateway.applications.enabled waits for it too. Leave it empty, or set gateway.applications.enabled to false
{{- end }}
{{- if and .podDevices (not (and .enabled .endpoint $v.agent.podResources.enabled)) }}
agent.applications.podDevices: spans need agent.applications.enabled, an agent.applications.endpoint that takes them, and agent.podResources.enabled, which knows the devices. Set those, or podDevices to false
{{- end }}
{{- end }}
{{- if and $gateway.enabled (ne $v.mode "cluster") }}
gateway.applications.enabled: mode {{ $v.mode }} has no gateway. Set it to false, or mode to cluster
{{- end }}
{{- if and $gateway.enabled (eq $v.gateway.store.engine "embedded") (ge (int64 $gateway.maxSeries) (int64 $v.gateway.store.maxSeries)) }}
gateway.applications.maxSeries: {{ $gateway.maxSeries | int64 }} is not below gateway.store.maxSeries, {{ $v.gateway.store.maxSeries | int64 }}: applications would take the place of GPUs. Lower it, or raise that
{{- end }}
{{- if and $v.gateway.inference.enabled (not $gateway.enabled) }}
gateway.inference.enabled: what it scrapes goes where metrics of applications go. Set gateway.applications.enabled to true, or it to false
{{- end }}
{{- if and $v.gateway.inference.enabled $v.thresholds.summary.namespaces }}
gateway.inference.enabled: it looks for pods in the whole cluster, and thresholds.summary.namespaces leaves the gateway rights in these alone. Set it to false, or leave the list empty
{{- end }}
{{- if and (eq $v.mode "standalone") (or $v.agent.applications.enabled $v.agent.inference.enabled $v.agent.host.enabled) }}
agent.applications.enabled, agent.inference.enabled, agent.host.enabled: mode standalone has no agent that sends on what they read. Set them to false, or mode to cluster
{{- end }}
{{- end -}}

{{/* What is the chart's own would be there twice, and selectors would find nothing. */}}
{{- define "otelcol-gpu.contradictions.labels" -}}
{{- $own := list "helm.sh/chart" "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" -}}
{{- $all := dict "commonLabels" .Values.commonLabels -}}
{{- range $part := list "agent" "gateway" "rawGateway" "standalone" }}
{{- $_ := set $all (printf "%s.podLabels" $part) (index $.Values $part).podLabels }}
{{- end }}
{{- range $path, $labels := $all }}
{{- range $name, $_ := $labels }}
{{- if or (has $name $own) (and (ne $path "commonLabels") (hasKey (default dict $.Values.commonLabels) $name)) }}
{{ $path }}.{{ $name }}: {{ if has $name $own }}the chart sets this label{{ else }}commonLabels has it too{{ end }}. Leave it out
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "otelcol-gpu.contradictions.webhooks" -}}
{{- with .Values.webhooks }}
{{- if and (or .receivers .receiversSecret) (eq $.Values.mode "agent") }}
webhooks: in mode agent events leave as logs, and nobody here posts them. Set mode to cluster, or leave webhooks.receivers and webhooks.receiversSecret empty
{{- end }}
{{- range $name, $r := .receivers }}
{{- if and (not $r.url) (ne (default "standard" $r.format) "pagerduty") }}
webhooks.receivers.{{ $name }}.url: it is missing. Set {secret: NAME, key: KEY} to the Secret that holds the URL
{{- end }}
{{- if and (eq (default "standard" $r.format) "pagerduty") (not $r.routingKey) }}
webhooks.receivers.{{ $name }}.routingKey: the format pagerduty needs it. Set {secret: NAME, key: KEY} to the Secret that holds the integration key
{{- end }}
{{- if and $r.routingKey (ne (default "standard" $r.format) "pagerduty") }}
webhooks.receivers.{{ $name }}.routingKey: only the format pagerduty has one. Set format to pagerduty, or leave it out
{{- end }}
{{- end }}
{{- if and .controlSecret (not (or .receivers .receiversSecret)) }}
webhooks.controlSecret: there is no receiver to test. Add webhooks.receivers or webhooks.receiversSecret, or leave it empty
{{- end }}
{{- end }}
{{- end -}}

{{/* Durations that are shorter than what they wait for. */}}
{{- define "otelcol-gpu.contradictions.times" -}}
{{- $interval := include "otelcol-gpu.longestInterval" . | int -}}
{{- with .Values.thresholds.summary }}
{{- $staleness := include "otelcol-gpu.seconds" .staleness | int }}
{{- if and .staleness (lt $staleness (mul 2 $interval | int)) }}
thresholds.summary.staleness: {{ .staleness }} is below two collection intervals of {{ $interval }}s: one late scrape would make pods missing. Raise it to {{ div (mul 5 $interval) 2 }}s, or leave it empty
{{- end }}
{{- $least := max (include "otelcol-gpu.seconds" .warmup | int) $staleness (div (mul 5 $interval) 2) 45 | int }}
{{- if and .service_ttl (le (include "otelcol-gpu.seconds" .service_ttl | int) $least) }}
thresholds.summary.service_ttl: {{ .service_ttl }} is not above {{ $least }}s, the larger of warmup and staleness: a silent service would be forgotten before it is partial. Raise it, or leave it empty
{{- end }}
{{- end }}
{{- $events := .Values.thresholds.events }}
{{- $lost := dig "gpu.node.lost" "lost_after" "" $events }}
{{- if and $lost (lt (include "otelcol-gpu.seconds" $lost | int) (max 30 (mul 2 $interval) | int)) }}
thresholds.events.gpu.node.lost.lost_after: {{ $lost }} is below two collection intervals of {{ $interval }}s or 30s: nodes would be lost between scrapes. Raise it, or leave it empty
{{- end }}
{{- /* An absent one has the connector's default, which the connector compares. */}}
{{- range $pair := list
      (list "gpu.temperature" "critical" "high")
      (list "gpu.temperature" "memory_critical" "memory_high")
      (list "gpu.temperature" "amd_critical" "amd_high")
      (list "gpu.memory.pressure" "critical" "high") }}
{{- $event := get $events (index $pair 0) | default dict }}
{{- $upper := index $pair 1 }}
{{- $lower := index $pair 2 }}
{{- if and (hasKey $event $upper) (hasKey $event $lower) (le (get $event $upper | float64) (get $event $lower | float64)) }}
thresholds.events.{{ index $pair 0 }}.{{ $upper }}: {{ get $event $upper }} is not above {{ $lower }}, {{ get $event $lower }}. Raise it
{{- end }}
{{- end }}
{{- with get $events "gpu.memory.pressure" }}
{{- if and (hasKey . "hysteresis") (hasKey . "high") (ge (float64 .hysteresis) (float64 .high)) }}
thresholds.events.gpu.memory.pressure.hysteresis: {{ .hysteresis }} is not below high, {{ .high }}. Lower it
{{- end }}
{{- end }}
{{- end -}}

{{/* memory_limiter has to act before the kernel does. */}}
{{- define "otelcol-gpu.contradictions.memory" -}}
{{- range $part, $default := dict "agent" 400 "gateway" 1024 "rawGateway" 1024 "standalone" 512 }}
{{- $values := index $.Values $part }}
{{- $limit := dig "limits" "memory" "" $values.resources | toString }}
{{- if regexMatch "^[0-9]+(Mi|Gi)$" $limit }}
{{- $mib := mul (regexFind "^[0-9]+" $limit) (ternary 1 1024 (hasSuffix "Mi" $limit)) | int }}
{{- $own := default $default $values.memoryLimitMiB | int }}
{{- if ge $own $mib }}
{{ $part }}.memoryLimitMiB: {{ $own }} is not below {{ $part }}.resources.limits.memory, {{ $limit }}: the kernel would end the process before it refuses data. Lower it, or raise the limit
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
