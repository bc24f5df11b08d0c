// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

// drawing is one way to use the chart.
type drawing struct {
	name    string
	values  string   // YAML
	apis    []string // that the cluster has beside Kubernetes' own
	started bool     // the real binary is started with its configurations, not only asked to validate them
}

// operator are the APIs that Prometheus' operator brings.
var operator = []string{
	"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule",
	"monitoring.coreos.com/v1",
}

// drawings is the matrix: every value that changes what is rendered is in one.
var drawings = []drawing{
	{name: "defaults", started: true},
	{name: "no-tls", started: true, values: `
tls: {enabled: false}
auth: {enabled: false}
`},
	{name: "tls-without-token", started: true, values: `
auth: {enabled: false}
`},
	{name: "own-secrets", values: `
tls: {existingSecret: gateway-tls}
auth: {existingSecret: gateway-token}
`},
	{name: "scheduling", started: true, values: `
scheduling:
  enabled: true
  nodes: false
  schedulers: {kueue: ["kueue-controller-manager-metrics-service.kueue-system.svc:8443"], volcano: ["http://[fd00::1]:8080/metrics", "https://controllers.volcano.svc"]}
  insecureSkipVerify: true
networkPolicy: {enabled: true, egress: {enabled: true}}
`},
	{name: "scheduling-standalone", values: `
mode: standalone
scheduling: {enabled: true, schedulers: {koordinator: ["koord-scheduler.koordinator-system.svc:10251"]}}
networkPolicy: {enabled: true, egress: {enabled: true}}
dra: {enabled: false}
`},
	{name: "nvml-beside-dcgm", started: true, values: `
vendors: [nvidia, amd]
nvml: {enabled: true, processes: container, runtimeClassName: nvidia}
`},
	{name: "nvml-alone", started: true, apis: []string{"security.openshift.io/v1/SecurityContextConstraints"}, values: `
nvml: {enabled: true, alone: true, migDevices: true, kernelLog: true}
openshift: {enabled: true}
`},
	{name: "nvml-standalone", started: true, values: `
mode: standalone
nvml: {enabled: true, alone: true, migDevices: true}
agent: {podResources: {enabled: false}}
`},
	{name: "cert-manager", apis: []string{"cert-manager.io/v1", "cert-manager.io/v1/Certificate"}, values: `
tls:
  certManager: {enabled: true, issuerRef: {name: own-ca, kind: ClusterIssuer}}
`},
	{name: "agent-alone", started: true, values: `
mode: agent
exporter:
  endpoint: otlp.example.com:4317
  token: {existingSecret: backend-token}
  headers: {x-scope: {value: gpu}, api-key: {secret: backend, key: api-key}}
  tls: {caSecret: backend-ca, clientSecret: backend-client, serverName: otlp.example.com}
`},
	{name: "agent-alone-plain", started: true, values: `
mode: agent
exporter: {endpoint: "collector.monitoring.svc:4317", insecure: true}
`},
	{name: "agent-alone-over-http", started: true, values: `
mode: agent
exporter: {url: "https://otlp.example.com/otlp", token: {existingSecret: backend-token}}
`},
	{name: "inference-and-host", started: true, values: `
agent: {inference: {enabled: true, interval: 30s}, host: {enabled: true, kubeletInsecureSkipVerify: true}, applications: {endpoint: "otlp.example.com:4317"}}
`},
	{name: "applications", started: true, apis: operator, values: `
agent: {applications: {enabled: true}, inference: {enabled: true}, memoryLimitMiB: 380}
gateway: {applications: {enabled: true, maxSeries: 5000}, inference: {enabled: true, interval: 30s}}
serviceMonitor: {enabled: true}
networkPolicy: {egress: {enabled: true}}
`},
	{name: "applications-elsewhere", started: true, values: `
mode: agent
exporter: {url: "https://otlp.example.com/otlp"}
agent:
  applications: {enabled: true, podDevices: true, endpoint: "otlp.example.com:4317", headers: {api-key: {secret: backend, key: api-key}}}
  host: {enabled: true}
`},
	{name: "applications-beside-raw-gateways", values: `
agent: {applications: {enabled: true}, host: {enabled: true}}
rawGateway: {enabled: true, remoteWrite: {url: "https://mimir.example.com/api/v1/push"}}
gateway: {applications: {enabled: true}, store: {engine: prometheus, url: "https://mimir.example.com/prometheus"}}
`},
	{name: "ipv6", values: `
ipv6: true
`},
	{name: "standalone", started: true, values: `
mode: standalone
`},
	{name: "standalone-everything", values: `
mode: standalone
names: both
console: {expose: true, token: {existingSecret: console-token}}
webhooks: {receivers: {ops: {url: {secret: hooks, key: ops}}}}
gateway:
  prometheusRemoteWrite: {mimir: {url: "https://mimir.example.com/api/v1/push"}}
standalone: {memoryLimitMiB: 700, resources: {limits: {memory: 1Gi}}, persistence: {size: 5Gi, storageClassName: fast}}
`},
	{name: "raw-gateways", started: true, values: `
rawGateway:
  enabled: true
  backend: {endpoint: "mimir.example.com:4317", headers: {Authorization: {secret: mimir, key: header}}}
  autoscaling: {enabled: true}
`},
	{name: "raw-gateways-plain", values: `
tls: {enabled: false}
auth: {enabled: false}
rawGateway:
  enabled: true
  replicas: 3
  backend: {endpoint: "mimir.example.com:4317", insecure: true}
  podDisruptionBudget: {enabled: false}
`},
	{name: "raw-gateways-remote-write", started: true, values: `
rawGateway:
  enabled: true
  remoteWrite: {url: "https://mimir.example.com/api/v1/push", headers: {Authorization: {secret: mimir, key: header}}, caSecret: backend-ca}
gateway: {store: {engine: prometheus, url: "https://mimir.example.com/prometheus"}}
`},
	{name: "monitors", apis: operator, values: `
podMonitor: {enabled: true, labels: {release: kube-prometheus-stack}}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true, inference: true}
dashboards: {enabled: true, annotations: {grafana_folder: GPUs}}
`},
	{name: "pod-monitor-alone", apis: operator, values: `
podMonitor: {enabled: true, interval: 1m}
rawGateway: {enabled: true, backend: {endpoint: "mimir.example.com:4317"}}
`},
	{name: "openshift", apis: []string{"security.openshift.io/v1", "security.openshift.io/v1/SecurityContextConstraints"}, values: `
openshift: {enabled: true}
`},
	{name: "webhooks", started: true, values: `
webhooks:
  receivers:
    ops:
      url: {secret: hooks, key: ops}
      format: slack
      timeout: 10s
      events: ["gpu.service.*", gpu.xid]
      minSeverity: warn
    convox:
      url: {secret: hooks, key: convox}
      format: convox
      signing: {standard: [{secret: hooks, key: ops-whsec}]}
    pager:
      url: {secret: hooks, key: pager}
      format: pagerduty
      routingKey: {secret: hooks, key: routing}
  allowCIDRs: [10.0.0.0/8]
  groupWait: 5s
`},
	{name: "webhooks-of-a-secret", values: `
webhooks:
  receiversSecret: hooks-files
  proxy: {url: {secret: proxy, key: url}}
  allowPorts: [443, 3128]
  audit: {keysSecret: audit-keys}
  controlSecret: control-token
`},
	{name: "remote-write", started: true, values: `
gateway:
  prometheusRemoteWrite:
    mimir:
      url: https://mimir.example.com/api/v1/push
      headers: {X-Scope-OrgID: {value: gpu}, Authorization: {secret: mimir, key: header}}
  otlp:
    vendor: {endpoint: "otlp.example.com:4317", headers: {api-key: {secret: vendor, key: token}}}
`},
	{name: "store-elsewhere", values: `
gateway:
  store:
    engine: prometheus
    url: https://mimir.example.com/prometheus
    headers: {X-Scope-OrgID: {value: gpu}, Authorization: {secret: mimir, key: header}}
  prometheusRemoteWrite: {mimir: {url: "https://mimir.example.com/api/v1/push"}}
`},
	{name: "subchart", values: `
dcgm-exporter: {enabled: true}
`},
	{name: "cost", started: true, values: `
cost:
  currency: EUR
  prices:
    - {match: {host.type: "gpu-h100-*", node.label.example.com/pool: own}, instance_hour: "23.60", gpus: 8, price_fraction: "0.9", valid_from: "2026-05-01", kind: contracted, source: "$ list"}
    - {match: {hw.model: "*A100*"}, gpu_hour: "1.10"}
  tenant: {from: [k8s.namespace.label.team, k8s.pod.label.kueue.x-k8s.io/queue-name, k8s.pod.label.app.kubernetes.io/component, k8s.namespace.name]}
  budgets: [{name: ml, tenant: "ml*", cost: "5000", period: month, timezone: Europe/Berlin}]
  carbon: {pue: 1.2, intensity: [{region: eu-north1, grams_per_kwh: 45, kind: average}]}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
`},
	{name: "cost-of-a-secret", values: `
mode: standalone
cost: {pricesSecret: prices, tenant: {from: [k8s.namespace.label.team]}, nodeLabels: [example.com/pool]}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
`},
	{name: "vendors", started: true, values: `
vendors: [nvidia, amd, gaudi, intel]
networkPolicy: {egress: {enabled: true}}
`},
	{name: "vendors-without-nvidia", started: true, values: `
vendors: [intel, gaudi]
names: dcgm
gaudiExporter: {namespaces: [habana-ai-operator], labelSelector: app=gaudi, port: 41612, interval: 6s}
intelExporter: {port: 29998}
agent: {podResources: {enabled: false}, stateHostPath: ""}
`},
	{name: "vendors-past-the-gateway", values: `
vendors: [amd]
rawGateway: {enabled: true, backend: {endpoint: "mimir.example.com:4317"}}
resourceNames: [amd.com/gpu, amd.com/mi250x]
amdExporter: {url: "https://${env:K8S_NODE_IP}:5000/metrics", scrape: {body_size_limit: 64MB}}
agent: {nodeSelectorTerms: [{key: pool, values: [gpu]}], sysfsRoot: /host/sys}
`},
	{name: "partitions", apis: []string{"security.openshift.io/v1", "security.openshift.io/v1/SecurityContextConstraints"}, values: `
vendors: [amd]
openshift: {enabled: true}
agent: {amd: {partitionAccess: true}}
`},
	{name: "vendors-in-one-pod", started: true, values: `
mode: standalone
vendors: [nvidia, amd, intel]
amdExporter: {source: sysfs}
`},
	{name: "sharing", started: true, values: `
sharing: [hami, volcano, koordinator, kai]
`},
	{name: "sharing-in-one-pod", values: `
mode: standalone
sharing: [kai]
`},
	{name: "no-network-policy", values: `
networkPolicy: {enabled: false}
`},
	{name: "network-policy-egress", values: `
networkPolicy:
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  applicationsFrom: [{podSelector: {}}]
  egress: {enabled: true, apiServerCIDRs: [10.0.0.1/32], extra: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 443, protocol: TCP}]}]}
`},
	{name: "console-exposed", started: true, values: `
console:
  expose: true
  token: {existingSecret: console-token}
  pathPrefix: /gpu
  grafana: {url: "https://grafana.example.com"}
  service: {type: ClusterIP, annotations: {example.com/a: b}}
networkPolicy: {consoleFrom: [{namespaceSelector: {}}]}
`},
	{name: "no-console", values: `
console: {enabled: false}
`},
	{name: "slow-and-classic", started: true, values: `
collectionInterval: 5m
names: dcgm
unmapped: drop
`},
	{name: "thresholds", values: `
names: both
thresholds:
  summary: {staleness: 2m, warmup: 3m, partial_threshold: 0.5, idle_for: 30m, namespaces: [inference, training], max_pods: 1000}
  events:
    gpu.temperature: {enabled: true, high: 80, critical: 88}
    gpu.idle_held: {enabled: false}
`},
	{name: "without-the-kubelet", started: true, values: `
agent: {podResources: {enabled: false}, stateHostPath: ""}
dra: {enabled: false}
`},
	{name: "exporter-by-address", values: `
dcgmExporter: {url: "http://${env:K8S_NODE_IP}:9400/metrics"}
`},
	{name: "exporter-chosen", values: `
dcgmExporter: {namespaces: [gpu-operator], labelSelector: app=nvidia-dcgm-exporter, port: 9401, interval: 1s}
`},
	{name: "own-keys", started: true, values: `
agent:
  config: {processors: {memory_limiter: {limit_mib: 300}}}
  memoryLimitMiB: 350
  extraEnv: [{name: EXTRA, value: "1"}]
  podAnnotations: {a: b}
  podLabels: {team: gpu}
  nodeSelector: {pool: gpu}
  priorityClassName: system-node-critical
  seLinuxOptions: {type: spc_t}
gateway:
  config: {exporters: {debug/events: {verbosity: detailed}}}
  persistence: {whenDeleted: Retain, storageClassName: fast, annotations: {a: b}}
  nodeSelector: {pool: cpu}
`},
	{name: "names-and-images", values: `
fullnameOverride: gpus
clusterDomain: corp.internal
commonLabels: {team: gpu}
image: {repository: registry.example.com/otelcol-gpu, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
`},
	{name: "accounts-of-others", values: `
agent: {serviceAccount: {create: false, name: agents}, rbac: {create: false}}
gateway: {serviceAccount: {create: false, name: gateways}, rbac: {create: false}, persistence: {enabled: false}}
`},
}
