// Answers by the name of a scenario. Each is a function of the time, so that what
// is waited for can appear without a reload.
import { events } from "./events.mjs";
import { bareNode, lostNode, migNode, partitionedNode, sharedNode, trouble } from "./extras.mjs";
import { average, total } from "./numbers.mjs";
import { endpointsOf, explain, ofFleet, pressing } from "./reasons.mjs";
import { build, countHealth, coverageOf, fewer, finishNode, iso, noValues, plan, told } from "./world.mjs";

const staleAfter = 45;

export const config = {
  windows: ["5m", "30m", "1h", "24h"], refresh: 15, warmup: 90, idle_threshold: 0.05, idle_for: 900, partial_threshold: 0.25, thresholds_from: "gpu_summary", remembered: 3600,
  limits: { max_services_per_request: 100, max_concurrent_requests: 10, max_points_per_series: 5000, max_series_per_range: 50 },
  grafana: {
    dashboard_url: "https://grafana.example.com/d/gpu-service",
    variables: [{ name: "app", value: "service" }, { name: "service", value: "service" }, { name: "namespace", value: "namespace" }, { name: "rack", value: "cluster" }],
  },
};

const services = (list) => ({ plan: list });
const demo = (over) => plan.map((s) => ({ ...s, ...(over?.(s) ?? {}) }));
const healthy = demo(() => ({ missing: 0, degraded: 0, idle: 0, warming: 0, off: 0, pending: 0, load: undefined })).map((s, i) => ({ ...s, load: plan[i].load || 0.4, memory: plan[i].memory || 0.4 }));

const hostile = [
  { cluster: "<img src=x onerror=alert(1)>", namespace: "a/b?c=d&e#f", service: "<script>alert('x')</script>", pods: 2, gpus: 1, model: "l4", load: 0.4, memory: 0.4, missing: 1, podNames: ['"><svg onload=alert(1)>', "p".repeat(253)] },
  { cluster: null, namespace: "ml", service: "n".repeat(253), pods: 2, gpus: 1, model: "l4", load: 0.4, memory: 0.4 },
  { cluster: "東京-1", namespace: "推論", service: "翻訳サービス", pods: 2, gpus: 1, model: "l4", load: 0.4, memory: 0.4 },
  { cluster: "eu", namespace: "ml", service: "admin\u202egpj.exe\u0007", pods: 1, gpus: 1, model: "l4", load: 0.4, memory: 0.4 },
  { cluster: "eu", namespace: "ml", service: "a b+c%20d'e\\f", pods: 1, gpus: 1, model: "l4", load: 0.4, memory: 0.4 },
];

const large = Array.from({ length: 240 }, (_, i) => ({
  cluster: ["eu-west-1", "us-east-1", "ap-south-1"][i % 3], namespace: ["inference", "batch", "research"][(i >> 2) % 3], service: `service-${String(i).padStart(3, "0")}`,
  pods: 2 + (i % 5), gpus: [1, 2, 4, 8][i % 4], model: ["h100", "h200", "a100", "l4"][i % 4], load: 0.1 + ((i * 37) % 80) / 100, memory: 0.2 + ((i * 53) % 70) / 100,
}));

/** Services with an inference engine that reports everything, of which no time per output token is known, that knows no tokens, and without any. */
const served = [{ engine: "vllm" }, { engine: "sglang" }, { engine: "triton" }, {}];

/** Services of jobs of Slurm, one beside a namespace of its account's name. */
const jobs = [
  { ...healthy.find((s) => s.namespace === "research"), missing: 0 },
  { cluster: null, slurm_cluster: "hpc", namespace: "research", service: "ada/train", pods: 2, gpus: 4, model: "h100", load: 0.9, memory: 0.8 },
  { cluster: null, slurm_cluster: "hpc", namespace: "chemistry", service: "bob/sweep", pods: 3, gpus: 1, model: "a100", load: 0.3, memory: 0.2 },
];

/** A service of AMD, one of Gaudi, and two of NVIDIA. */
const vendors = healthy.slice(0, 4).map((s, i) => ({ ...s, model: ["mi300x", "gaudi"][i] ?? s.model }));

/** What is different from an ordinary fleet, by the scenario's name. */
export const scenarios = {
  ready: { ...services(plan), extras: true },
  healthy: services(healthy),
  not_enabled: { ...services([]), state: "not_enabled", ever: false },
  no_services: { ...services([]), state: "no_services", freeNodes: true },
  one_machine: { ...services([]), state: "no_services", bare: "workstation", young: 150, noEvents: true },
  warming: (elapsed) => (elapsed > 20_000 ? services(healthy.slice(0, 3)) : { ...services(healthy.slice(0, 3).map((s) => ({ ...s, warming: s.pods }))), state: "warming_up" }),
  scraper_down: { ...services(healthy.map((s) => ({ ...s, age: 312 }))), state: "scraper_down", down: true },
  partial: services(demo((s) => (s.service === "chat-70b" ? {} : { missing: 0 }))),
  store_unreachable: { ...services(plan), state: "store_unreachable", unreachable: { error: "The store does not answer.", reason: "upstream_unreachable", detail: "dial tcp 10.0.0.7:9090: connect: connection refused." } },
  store_html: { ...services(plan), state: "store_unreachable", unreachable: { error: "What answers is not a Prometheus API.", reason: "upstream_invalid", detail: "The answer is text/html; see that gpu_store's url is that of the API and needs no login." } },
  disk_full: { ...services(healthy), problems: [["samples", "disk_full", 25], ["events", "disk_full", 20]] },
  not_stored: { ...services(healthy.map((s) => ({ ...s, age: 312 }))), state: "not_stored", problems: [["samples", "disk_full", 312]] },
  never_stored: { ...services([]), state: "not_stored", ever: false, problems: [["samples", "disk_full", 312]] },
  stale: services(healthy.map((s) => ({ ...s, age: 252 }))),
  gaps: { ...services(demo((s) => ({ missing: s.service === "chat-8b" ? 0 : s.missing }))), gaps: true },
  busy: { ...services(plan), busy: true },
  hostile: services(hostile),
  no_cluster: services(healthy.slice(0, 4).map((s) => ({ ...s, cluster: null }))),
  large: services(large),
  quiet: { ...services(healthy), noEvents: true },
  login: { ...services(plan), extras: true, token: "correct-horse" },
  inference: services(healthy.slice(0, 4).map((s, i) => ({ ...s, ...served[i] }))),
  no_prices: { ...services(healthy), cost: { free: true } },
  no_usage: { ...services(healthy), cost: { reason: "no_usage" } },
  usage_not_kept: { ...services(healthy), cost: { reason: "not_kept" } },
  young_usage: { ...services(healthy), cost: { young: 0.1 } },
  slurm: services(jobs),
  vendors: { ...services(vendors), partitioned: true },
  no_grafana: { ...services(healthy), noGrafana: true },
};

/** What the scenario makes of the moment `now`; it began at `began`. */
export function worldOf(name, now, began) {
  const found = scenarios[name];
  const s = typeof found === "function" ? found(now - began) : found;
  const world = build(now, s.plan, staleAfter);
  if (s.extras) {
    const mig = world.nodes.findIndex((n) => n.node === "gpu-h100-eu-02");
    world.nodes[mig] = trouble(now, world.nodes[mig]);
    world.nodes.push(migNode(now), sharedNode(now), lostNode(now));
  }
  if (s.partitioned) world.nodes.push(partitionedNode(now));
  if (s.freeNodes) {
    const free = build(now, healthy.slice(0, 2)).nodes.map((n) => finishNode(now, { ...n, devices: n.devices.map((d) => ({ ...d, state: "free", holders: [], idle: true, values: { ...d.values, utilization: 0 } })) }));
    world.nodes.push(...free);
  }
  if (s.bare) world.nodes.push(bareNode(now, s.bare));
  if (s.down) world.nodes = world.nodes.map((n) => ({ ...n, state: "exporter_down", exporter: "down", devices: n.devices.map((d) => ({ ...d, ...told(now, 312, staleAfter) })), ...told(now, 312, staleAfter) }));
  if (s.state === "not_stored") world.nodes = world.nodes.map((n) => ({ ...n, state: "unknown", exporter: "unknown", ...told(now, 312, staleAfter) }));
  // What was known when a device or the world is made is counted when all of it is there.
  for (const s of world.services) s.devices.health = countHealth(world.nodes.flatMap((n) => n.devices).filter((d) => d.parent === null && d.holders.some((h) => h.service === s.service && h.namespace === s.namespace)));
  explain(world);
  const happened = s.noEvents || s.ever === false ? [] : events(now);
  const endpoints = endpointsOf(happened);
  return { ...s, ...world, summary: { ...summary(world), ...ofFleet(world, endpoints) }, events: happened, endpoints };
}

function summary({ services: list, nodes }) {
  const physical = nodes.flatMap((n) => n.devices.filter((d) => d.parent === null));
  const sum = (key) => nodes.reduce((t, n) => t + n.counts[key], 0);
  return {
    services: list.length, attention: list.filter((s) => pressing(s.reasons)).length,
    devices: sum("devices"), devices_held: sum("held"), devices_busy: physical.filter((d) => (d.values.utilization ?? 0) >= 0.05).length,
    devices_idle: sum("idle"), devices_free: sum("free"), devices_lost: sum("lost"), devices_unknown: sum("unknown"),
    utilization: average(physical.map((d) => d.values.utilization)), memory_used: total(physical.map((d) => d.values.memory_used)),
    memory_total: total(physical.map((d) => d.values.memory_total)), power: total(physical.map((d) => d.values.power)),
    coverage: fewer(coverageOf(physical)),
    pods_pending: list.reduce((t, s) => t + (s.pods.pending ?? 0), 0),
    health: countHealth(physical),
  };
}

/** The freshness of an answer made at `now` from data of the world. */
export function freshness(now, world) {
  const ages = [...world.services, ...world.nodes].map((x) => x.data_age).filter((a) => a !== null);
  return { evaluated_at: iso(now), ...told(now, world.unreachable || !ages.length ? null : Math.min(...ages), staleAfter), stale_after: staleAfter };
}

export function status(now, world) {
  const known = !world.unreachable;
  const n = (value) => (known ? value : null);
  const seen = (value) => (world.state === "not_stored" ? null : n(value));
  const down = world.nodes.filter((x) => x.exporter === "down");
  const heard = world.nodes.filter((x) => x.exporter === "up");
  return {
    freshness: freshness(now, world), version: "0.6.0", state: world.state ?? "ready",
    store: { engine: world.unreachable ? "prometheus" : "embedded", reachable: known, error: world.unreachable ?? null, circuit_open: false, retention: known ? 86_400 : null,
      problems: (world.problems ?? []).map(([part, reason, seconds]) => ({ part, reason, since: iso(now - seconds * 1000), last: iso(now), ended: null, refused: 14_906, detail: "too little is free on the disk of directory; make room" })) },
    telemetry: {
      exporters_up: seen(heard.length), exporters_down: seen(down.length), exporters_frozen: seen(0), exporters_unrecognized: seen(0), down_exporters: known ? down.slice(0, 20).map((x) => ({ cluster: x.cluster, node: x.node, address: "10.4.7.19:9400", state: "down", data_time: iso(now), data_age: 0 })) : [],
      devices: n(world.summary.devices), services: n(world.services.length),
      services_partial: n(world.services.filter((s) => s.partial).length), services_no_data: n(world.services.filter((s) => s.attention.includes("no_data")).length),
      pods_warming: n(world.services.reduce((t, s) => t + s.pods.warming, 0)),
      raised_events: n(raised(world.events)), notices: n(world.events.filter((e) => e.notice).length),
      kubernetes: n(!world.bare), window: n(world.young ? "5m" : "1h"),
    },
    endpoints: world.endpoints,
    config: { ...config, grafana: world.noGrafana ? null : config.grafana },
  };
}

export function raised(list) {
  const seen = new Set();
  let count = 0;
  for (const e of list) {
    if (e.notice || seen.has(e.key) || e.state === null) continue;
    seen.add(e.key);
    if (e.state === "raised") count++;
  }
  return count;
}

export { noValues };
