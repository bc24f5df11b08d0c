// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefused is that values which contradict each other, or which no cluster
// could do anything with, are refused with their key and with what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	both := helms(t)
	for _, r := range []struct {
		values string
		want   []string
	}{
		// What contradicts.
		{"clusterName: ''", []string{"clusterName", "it is empty", "--set clusterName=NAME"}},
		{"image: {tag: '1'}", []string{"image.repository", "no image is published", "--set image.repository="}},
		{"agent: {stateHostPath: /}", []string{"/agent/stateHostPath"}},
		{"agent: {stateHostPath: /var/lib/../../etc}", []string{"/agent/stateHostPath"}},
		{"agent: {podResources: {hostPath: /etc}}", []string{"/agent/podResources/hostPath"}},
		{"networkPolicy: {egress: {apiServerCIDRs: [any]}}", []string{"/networkPolicy/egress/apiServerCIDRs"}},
		{"agent: {applications: {enabled: true, endpoint: 'u:password@host:4317'}}", []string{"/agent/applications/endpoint"}},
		{"mode: agent", []string{"exporter.endpoint", "host:port"}},
		{"exporter: {endpoint: 'a.example.com:4317'}", []string{"exporter.endpoint", "only mode agent"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317', insecure: true, token: {existingSecret: a}}}", []string{"exporter.insecure", "never sent without TLS"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317', insecure: true, tls: {caSecret: a}}}", []string{"exporter.insecure", "Leave one of them out"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317', url: 'https://a.example.com'}}", []string{"exporter.url", "leave one empty"}},
		{"{mode: agent, exporter: {url: 'https://a.example.com', insecure: true}}", []string{"exporter.insecure", "http://"}},
		{"{mode: agent, exporter: {url: 'http://a.example.com', token: {existingSecret: a}}}", []string{"exporter.url", "never sent without TLS"}},
		{"rawGateway: {enabled: true, backend: {endpoint: 'a.example.com:4317'}, remoteWrite: {url: 'https://a.example.com/push'}}", []string{"rawGateway.remoteWrite.url", "leave one empty"}},
		{"rawGateway: {enabled: true, remoteWrite: {url: 'https://a.example.com/push'}}", []string{"gateway.store.engine", "Set it to prometheus"}},
		{"{mode: standalone, agent: {host: {enabled: true}}}", []string{"agent.host.enabled", "mode to cluster"}},
		{"tls: {enabled: false}", []string{"auth.enabled", "never sent without TLS"}},
		{"tls: {existingSecret: a, certManager: {enabled: true, issuerRef: {name: a}}}", []string{"tls.existingSecret", "cert-manager would write"}},
		{"{tls: {enabled: false, certManager: {enabled: true, issuerRef: {name: a}}}, auth: {enabled: false}}", []string{"tls.certManager.enabled", "tls.enabled is false"}},
		{"tls: {certManager: {enabled: true}}", []string{"tls.certManager.issuerRef.name", "Issuer"}},
		{"console: {enabled: false, expose: true, token: {existingSecret: a}}", []string{"console.expose", "console.enabled is false"}},
		{"console: {expose: true}", []string{"console.token.existingSecret", "kubectl port-forward"}},
		{"console: {tlsSecret: a}", []string{"console.tlsSecret", "console.expose"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317'}, rawGateway: {enabled: true, backend: {endpoint: 'a.example.com:4317'}}}", []string{"rawGateway.enabled", "Set mode to cluster"}},
		{"rawGateway: {enabled: true}", []string{"rawGateway.backend.endpoint", "host:port"}},
		{"rawGateway: {enabled: true, backend: {endpoint: 'a.example.com:4317'}, autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}}", []string{"rawGateway.autoscaling.minReplicas", "above maxReplicas"}},
		{"agent: {stateHostPath: /var/lib/kubelet}", []string{"agent.stateHostPath: /var/lib/kubelet", "folder of their own"}},
		{"agent: {stateHostPath: /var/lib/kubelet/pods}", []string{"agent.stateHostPath"}},
		{"cost: {pricesSecret: a}", []string{"networkPolicy.metricsFrom: cost.pricesSecret", "Name who may scrape it"}},
		{"cost: {budgets: [{name: ml, tenant: ml, cost: '1', period: month, timezone: UTC}]}", []string{"networkPolicy.metricsFrom: cost.budgets"}},
		{"{cost: {pricesSecret: a}, networkPolicy: {enabled: false, metricsFrom: [{podSelector: {}}]}}", []string{"networkPolicy.metricsFrom"}},
		{"cost: {prices: [{gpu_hour: '1'}], pricesSecret: a}", []string{"cost.pricesSecret", "Leave one empty"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317'}, cost: {pricesSecret: a}}", []string{"cost.pricesSecret", "mode agent"}},
		{"cost: {prices: [{gpu_hour: 1.5}]}", []string{"/cost/prices/0/gpu_hour"}},
		{"{sharing: [kai], agent: {podResources: {enabled: false}}}", []string{"sharing", "agent.podResources.enabled"}},
		{"sharing: [slurm]", []string{"/sharing/0"}},
		{"amdExporter: {url: 'http://a.example.com/metrics'}", []string{"amdExporter: vendors is nvidia", "--set 'vendors={nvidia,amd}'"}},
		{"{vendors: [amd], dcgmExporter: {namespaces: [a]}}", []string{"dcgmExporter: vendors is amd", "--set 'vendors={amd,nvidia}'"}},
		{"{vendors: [amd], amdExporter: {source: sysfs, labelSelector: a=b}}", []string{"amdExporter.source", "Set it to exporter"}},
		{"{vendors: [amd], dcgm-exporter: {enabled: true}}", []string{"dcgm-exporter.enabled", "Add it to vendors"}},
		{"agent: {amd: {partitionAccess: true}}", []string{"agent.amd.partitionAccess", "Add it to vendors"}},
		{"{vendors: [amd], agent: {amd: {partitionAccess: true}, podResources: {enabled: false}}}", []string{"agent.amd.partitionAccess", "agent.podResources.enabled is false"}},
		{"nvml: {processes: container}", []string{"nvml.enabled: it is false", "Set it to true"}},
		{"{vendors: [amd], nvml: {enabled: true}}", []string{"nvml.enabled", "vendors has no nvidia"}},
		{"{image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}, nvml: {enabled: true}}", []string{"nvml.image.digest", "static image", "FLAVOUR=nvml"}},
		{"{image: {tag: '1'}, nvml: {enabled: true, image: {tag: '1'}}}", []string{"nvml.image.tag: 1 is the static image", "Leave it empty for 1-nvml"}},
		{"{nvml: {enabled: true, alone: true}, dcgm-exporter: {enabled: true}}", []string{"nvml.alone", "Set one of them to false"}},
		{"{nvml: {enabled: true, alone: true}, dcgmExporter: {namespaces: [a]}}", []string{"nvml.alone", "leave dcgmExporter out"}},
		{"nvml: {enabled: true, processes: pods}", []string{"/nvml/processes", "container"}},
		{"{vendors: [gaudi], gaudiExporter: {interval: 10m}}", []string{"gaudiExporter.interval", "between 1s and 5m"}},
		{"{vendors: [gaudi], thresholds: {summary: {staleness: 50s}}}", []string{"thresholds.summary.staleness", "Raise it to 75s"}},
		{"{vendors: [intel], intelExporter: {scrape: {authorization: {credentials_file: /x}}}}", []string{"intelExporter.scrape.authorization", "xpumd", "intelExporter.namespaces"}},
		{"{vendors: [intel], intelExporter: {url: 'http://a.example.com/?token=b'}}", []string{"intelExporter.url", "${env:NAME}"}},
		{"vendors: []", []string{"/vendors"}},
		{"vendors: [amd, amd]", []string{"/vendors"}},
		{"vendors: [tpu]", []string{"/vendors/0", "gaudi"}},
		{"amdExporter: {source: kernel}", []string{"/amdExporter/source", "sysfs"}},
		{"agent: {sysfsRoot: sys}", []string{"/agent/sysfsRoot", "absolute_path"}},
		{"cost: {currency: euro}", []string{"/cost/currency", "ISO_4217"}},
		{"gateway: {store: {engine: prometheus}}", []string{"gateway.store.url", "/api/v1"}},
		{"gateway: {store: {url: 'https://a.example.com'}}", []string{"gateway.store.url", "engine"}},
		{"{mode: agent, exporter: {endpoint: 'a.example.com:4317'}, webhooks: {receiversSecret: a}}", []string{"webhooks", "mode agent"}},
		{"webhooks: {receivers: {ops: {format: slack}}}", []string{"webhooks.receivers.ops.url", "{secret: NAME, key: KEY}"}},
		{"webhooks: {receivers: {ops: {format: pagerduty, url: {secret: a, key: b}}}}", []string{"webhooks.receivers.ops.routingKey", "integration key"}},
		{"webhooks: {receivers: {ops: {url: {secret: a, key: b}, routingKey: {secret: a, key: b}}}}", []string{"webhooks.receivers.ops.routingKey", "pagerduty"}},
		{"webhooks: {controlSecret: a}", []string{"webhooks.controlSecret", "no receiver"}},
		{"thresholds: {summary: {staleness: 20s}}", []string{"thresholds.summary.staleness", "two collection intervals"}},
		{"thresholds: {summary: {service_ttl: 60s}}", []string{"thresholds.summary.service_ttl", "forgotten before"}},
		{"thresholds: {events: {gpu.node.lost: {lost_after: 20s}}}", []string{"gpu.node.lost.lost_after", "Raise it"}},
		{"thresholds: {events: {gpu.temperature: {high: 95}}}", []string{"gpu.temperature.critical", "is not above high"}},
		{"thresholds: {events: {gpu.memory.pressure: {high: 0.99}}}", []string{"gpu.memory.pressure.critical", "is not above high"}},
		{"thresholds: {events: {gpu.temperature: {amd_high: 100}}}", []string{"gpu.temperature.amd_critical", "is not above amd_high"}},
		{"thresholds: {events: {gpu.temperature: {memory_high: 110}}}", []string{"gpu.temperature.memory_critical", "is not above memory_high"}},
		{"thresholds: {events: {gpu.memory.pressure: {hysteresis: 0.96}}}", []string{"gpu.memory.pressure.hysteresis", "is not below high"}},
		{"gateway: {persistence: {size: 1Gi}}", []string{"gateway.persistence.size", "gateway.store.maxBytes"}},
		{"agent: {updateStrategy: {rollingUpdate: {maxSurge: 1}}}", []string{"agent.updateStrategy.rollingUpdate.maxSurge", "agent.stateHostPath"}},
		{"agent: {podResources: {enabled: false}, stateHostPath: '', seLinuxOptions: {type: spc_t}}", []string{"agent.seLinuxOptions", "Leave it out"}},
		{"dcgm-exporter: {enabled: true, collectInterval: 10m}", []string{"dcgm-exporter:", "collectInterval", "from_1s_to_5m"}},
		{"dcgmExporter: {interval: 10m}", []string{"dcgmExporter.interval", "between 1s and 5m"}},
		{"agent: {memoryLimitMiB: 600}", []string{"agent.memoryLimitMiB", "agent.resources.limits.memory"}},
		{"gateway: {resources: {limits: {memory: 1Gi}}}", []string{"gateway.memoryLimitMiB", "the kernel would end"}},
		{"{dcgm-exporter: {enabled: true}, dcgmExporter: {url: 'http://a:9400/metrics'}}", []string{"dcgmExporter.url", "dcgm-exporter.enabled"}},
		// What a cluster lacks.
		{"podMonitor: {enabled: true}", []string{"podMonitor.enabled", "monitoring.coreos.com/v1/PodMonitor", "CRDs"}},
		{"serviceMonitor: {enabled: true}", []string{"serviceMonitor.enabled", "CRDs"}},
		{"prometheusRule: {enabled: true}", []string{"prometheusRule.enabled", "CRDs"}},
		{"tls: {certManager: {enabled: true, issuerRef: {name: a}}}", []string{"tls.certManager.enabled", "Install cert-manager first"}},
		{"openshift: {enabled: true}", []string{"openshift.enabled", "OpenShift alone"}},
		// What would be ignored, misread, or land in a ConfigMap.
		{"fullnameOverride: My_Gpu", []string{"fullnameOverride"}},
		{"nameOverride: 'a b'", []string{"nameOverride"}},
		{"clusterDomain: 'a b'", []string{"clusterDomain"}},
		{"image: {repository: 'a b', tag: 'c d'}", []string{"/image/repository", "/image/tag"}},
		{"thresholds: {summary: {namespaces: [Bad_NS]}}", []string{"namespaces"}},
		{"gateway: {store: {engine: prometheus, url: 'https://a.example.com/?b=c'}}", []string{"gateway/store/url"}},
		{"console: {pathPrefix: '/gpu/'}", []string{"console/pathPrefix"}},
		{"commonLabels: {app.kubernetes.io/name: a}", []string{"commonLabels.app.kubernetes.io/name", "Leave it out"}},
		{"{commonLabels: {team: a}, agent: {podLabels: {team: b}}}", []string{"agent.podLabels.team", "commonLabels has it too"}},
		{"{mode: agent, exporter: {url: 'https://a.example.com/otlp?token=b'}}", []string{"exporter.url", "parameter token", "{secret: NAME, key: KEY}"}},
		{"gateway: {prometheusRemoteWrite: {a: {url: 'https://a.example.com/push?api_key=b'}}}", []string{"gateway.prometheusRemoteWrite.a.url", "api_key"}},
		{"gateway: {otlp: {a: {endpoint: 'a:4317', headers: {Cookie: {value: b}}}}}", []string{"gateway.otlp.a.headers.Cookie", "ConfigMap"}},
		{"dcgmExporter: {scrape: {http_headers: {X-Api-Key: {values: [b]}}}}", []string{"dcgmExporter.scrape.http_headers.X-Api-Key.values", "${env:NAME}"}},
		{"dcgmExporter: {scrape: {proxy_url: 'http://a:b@c:1'}}", []string{"dcgmExporter.scrape.proxy_url"}},
		{"dcgmExporter: {scrape: {oauth2: {tls_config: {key: b}}}}", []string{"oauth2.tls_config.key", "key_file"}},
		{"gateway: {config: {exporters: {otlp_http/a: {headers: {Authorization: b}}}}}", []string{"gateway.config.exporters.otlp_http/a.headers.Authorization", "${env:NAME}"}},
		{"{mode: agent, exporter: {endpoint: 'a:4317'}, gateway: {otlp: {a: {endpoint: 'a:4317'}}}}", []string{"gateway.otlp", "mode agent has no gateway"}},
		{"agent: {applications: {insecure: true}}", []string{"agent.applications.endpoint", "leave them out"}},
		{"agent: {applications: {enabled: true}}", []string{"agent.applications.endpoint", "agent.applications.enabled", "host:port", "gateway.applications.enabled"}},
		{"agent: {inference: {enabled: true}}", []string{"agent.applications.endpoint", "agent.inference.enabled", "host:port"}},
		{"{agent: {applications: {enabled: true, endpoint: 'a:4317'}}, gateway: {applications: {enabled: true}}}", []string{"agent.applications.endpoint", "Leave it empty"}},
		{"{mode: agent, exporter: {endpoint: 'a:4317'}, gateway: {applications: {enabled: true}}}", []string{"gateway.applications.enabled", "mode to cluster"}},
		{"gateway: {applications: {enabled: true, maxSeries: 100000}}", []string{"gateway.applications.maxSeries", "gateway.store.maxSeries"}},
		{"gateway: {inference: {enabled: true}}", []string{"gateway.inference.enabled", "gateway.applications.enabled"}},
		{"{gateway: {inference: {enabled: true}, applications: {enabled: true}}, thresholds: {summary: {namespaces: [a]}}}", []string{"gateway.inference.enabled", "thresholds.summary.namespaces"}},
		{"{agent: {applications: {enabled: true, podDevices: true}}, gateway: {applications: {enabled: true}}}", []string{"agent.applications.podDevices", "agent.applications.endpoint"}},
		{"agent: {podResources: {enabled: false}, applications: {enabled: true, podDevices: true, endpoint: 'a:4317'}}", []string{"agent.applications.podDevices", "agent.podResources.enabled"}},
		{"{mode: standalone, agent: {applications: {enabled: true}}}", []string{"agent.applications.enabled", "mode to cluster"}},
		{"agent: {applications: {enabled: true, endpoint: 'u:password@a:4317'}}", []string{"agent/applications/endpoint", "without_credentials"}},
		{"{mode: agent, exporter: {endpoint: 'u:password@a:4317'}}", []string{"exporter/endpoint", "without_credentials"}},
		{"rawGateway: {backend: {endpoint: 'a:4317'}}", []string{"rawGateway.enabled", "Set it to true"}},
		{"dcgmExporter: {scrape: {authorization: {credentials_file: /x}}}", []string{"dcgmExporter.namespaces", "dcgmExporter.scrape.authorization"}},
		// What the schema does not let through.
		{"clusterName: 'a b'", []string{"clusterName"}},
		{"clusterName: 7", []string{"clusterName"}},
		{"mode: both", []string{"mode", "standalone"}},
		{"names: prometheus", []string{"names", "dcgm"}},
		{"collectionInterval: 5s", []string{"collectionInterval"}},
		{"collectionInterval: 301s", []string{"collectionInterval"}},
		{"collectionInterval: 6m", []string{"collectionInterval"}},
		{"collectionInterval: 15", []string{"collectionInterval"}},
		{"collectionIntervall: 15s", []string{"collectionIntervall"}},
		{"gateway: {replicas: 2}", []string{"gateway.replicas", "exactly one gateway"}},
		{"agent: {updateStrategyy: {}}", []string{"updateStrategyy"}},
		{"webhooks: {receivers: {ops: {url: 'https://hooks.example.com/T0/B0/secret'}}}", []string{"ops", "url"}},
		{"webhooks: {receivers: {ops: {url: {secret: a, key: b}, format: teams}}}", []string{"format"}},
		{"webhooks: {receivers: {ops: {url: {secret: a, key: b}, minSeverity: high}}}", []string{"minSeverity"}},
		{"webhooks: {allowCIDRs: [10.0.0.0]}", []string{"allowCIDRs"}},
		{"thresholds: {summary: {partial_threshold: 25}}", []string{"partial_threshold"}},
		{"thresholds: {summary: {warmup: soon}}", []string{"warmup"}},
		{"thresholds: {events: {gpu.tempratur: {enabled: false}}}", []string{"gpu.tempratur"}},
		{"image: {digest: 'latest'}", []string{"digest"}},
		{"image: {pullPolicy: Sometimes}", []string{"pullPolicy"}},
		{"gateway: {persistence: {whenDeleted: Keep}}", []string{"whenDeleted"}},
		{"gateway: {persistence: {size: big}}", []string{"size"}},
		{"{mode: agent, exporter: {endpoint: 'https://a.example.com/'}}", []string{"endpoint"}},
		{"exporter: {token: {existingSecret: 'Not A Name'}}", []string{"existingSecret"}},
		{"gateway: {prometheusRemoteWrite: {mimir: {}}}", []string{"mimir", "url"}},
		{"gateway: {prometheusRemoteWrite: {mimir: {url: 'https://user:secret@a.example.com/push'}}}", []string{"url"}},
	} {
		t.Run(r.values, func(t *testing.T) {
			for _, h := range both {
				_, err := h.template(t, r.values)
				if !assert.Error(t, err, h.name) {
					continue
				}
				for _, part := range r.want {
					assert.Contains(t, err.Error(), part, h.name)
				}
			}
		})
	}
	// Everything that is wrong is reported at once.
	_, err := both[0].template(t, "{tls: {enabled: false}, console: {expose: true}, rawGateway: {enabled: true}}")
	require.Error(t, err)
	for _, key := range []string{"- auth.enabled: ", "- console.token.existingSecret: ", "- rawGateway.backend.endpoint: "} {
		assert.Contains(t, err.Error(), key)
	}
}
