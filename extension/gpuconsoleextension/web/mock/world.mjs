// A fleet as the API tells of it: services, their pods, nodes and devices.
import { inference } from "./inference.mjs";
import { average, clamp, random, round, total, wave } from "./numbers.mjs";

const GiB = 1024 ** 3;
const models = {
  h100: { name: "NVIDIA H100 80GB HBM3", memory: 80 * GiB, limit: 700, idle: 72 },
  h200: { name: "NVIDIA H200", memory: 141 * GiB, limit: 700, idle: 76 },
  a100: { name: "NVIDIA A100-SXM4-80GB", memory: 80 * GiB, limit: 400, idle: 55 },
  l4: { name: "NVIDIA L4", memory: 24 * GiB, limit: 72, idle: 16 },
  mi300x: { name: "AMD Instinct MI300X", vendor: "AMD", memory: 192 * GiB, limit: 750, idle: 140 },
  gaudi: { name: "Gaudi", vendor: "Intel", memory: 128 * GiB, limit: 900, idle: 220 },
};

export const noValues = { utilization: null, memory_used: null, memory_total: null, tensor: null, sm: null, dram: null, fp16: null, fp32: null, power: null };

/** The further figures of a device that reports nothing. */
export const noGauges = { temperature: null, memory_temperature: null, xid: null, uncorrected_errors: null, corrected_errors: null, remapped_rows: null, remapped_rows_rise: null };

/** What the demonstration fleet is made of. */
export const plan = [
  { cluster: "eu-west-1", namespace: "inference", service: "chat-70b", pods: 6, gpus: 4, model: "h100", load: 0.71, memory: 0.91, missing: 2 },
  { cluster: "eu-west-1", namespace: "inference", service: "chat-8b", pods: 6, gpus: 1, model: "h100", load: 0.58, memory: 0.74 },
  { cluster: "eu-west-1", namespace: "inference", service: "embeddings", pods: 4, gpus: 1, model: "l4", load: 0.34, memory: 0.41, warming: 1 },
  { cluster: "eu-west-1", namespace: "inference", service: "rerank", pods: 2, gpus: 1, model: "l4", load: 0.22, memory: 0.33, noFp16: true },
  { cluster: "eu-west-1", namespace: "research", service: "pretrain-13b", pods: 4, gpus: 8, model: "h100", load: 0.94, memory: 0.88, degraded: 1 },
  { cluster: "eu-west-1", namespace: "research", service: "notebooks", pods: 5, gpus: 1, model: "a100", load: 0.01, memory: 0.12, idle: 4 },
  { cluster: "eu-west-1", namespace: "research", service: "ablation-sweep", pods: 3, gpus: 1, model: "a100", load: 0, memory: 0, off: 3, pending: 2 },
  { cluster: "us-east-1", namespace: "batch", service: "transcribe", pods: 6, gpus: 1, model: "l4", load: 0.83, memory: 0.66 },
  { cluster: "us-east-1", namespace: "batch", service: "render", pods: 4, gpus: 2, model: "a100", load: 0.88, memory: 0.47 },
  { cluster: "us-east-1", namespace: "inference", service: "vision", pods: 3, gpus: 2, model: "h200", load: 0.47, memory: 0.62 },
  { cluster: "us-east-1", namespace: "inference", service: "speech", pods: 2, gpus: 1, model: "h100", load: 0.29, memory: 0.5, missing: 2 },
];

export function deviceId(seed) {
  const r = random(seed);
  const hex = (n) => Array.from({ length: n }, () => Math.floor(r() * 16).toString(16)).join("");
  return `GPU-${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`;
}

const iso = (ms) => new Date(ms).toISOString();
const told = (now, age, staleAfter) => ({ data_time: age === null ? null : iso(now - age * 1000), data_age: age, stale: age !== null && age > staleAfter });

function values(name, model, load, memory, second, share = 1) {
  const u = clamp(wave(name, load, load > 0.05 && load < 0.9 ? 0.16 : 0.012, second));
  return {
    utilization: round(u),
    memory_used: Math.round(models[model].memory * share * clamp(memory + (u - load) * 0.04)),
    memory_total: Math.round(models[model].memory * share),
    tensor: round(u * 0.46),
    sm: round(u * 0.82),
    dram: round(u * 0.51),
    fp16: round(u * 0.08),
    fp32: round(u * 0.11),
    power: round(models[model].idle + (models[model].limit - models[model].idle) * u * 0.92, 1),
  };
}

/** Of a board against which nothing is known; with reasons, as [name, state, action, text, value, threshold], it is in the state of the worst, which is the first. */
export function healthOf(now, id, reasons = []) {
  return {
    state: reasons[0]?.[1] ?? "ok", since: reasons.length ? iso(now - 1_260_000) : null, action: reasons[0]?.[2] ?? "none", score: null,
    reasons: reasons.map(([name, state, action, text, value = null, threshold = null]) => ({ name, device: id, state, action, since: iso(now - 1_260_000), text, value, threshold, runbook: `https://github.com/otelcol-gpu/otelcol-gpu/blob/main/docs/runbooks/health-${name.replaceAll("_", "-")}.md` })),
    coverage: { with_data: 5, applicable: 13, missing: ["recovery_action", "remap_pending", "remap_failed", "remap_worn", "pages_worn", "fabric", "pcie_replays", "pcie_width"] }, watched_since: iso(now - 7_200_000),
  };
}

/** What vendors other than NVIDIA do not measure. */
export const pipes = ["tensor", "sm", "dram", "fp16", "fp32"];

export const unknownHealth = { state: "unknown", since: null, reasons: [], action: null, score: null, coverage: null, watched_since: null };

/** The health of a node with these boards. */
function healthOfNode(boards) {
  const order = ["ok", "degraded", "predicted_failure", "failed"];
  const known = boards.map((d) => d.health).filter((h) => h.state !== "unknown");
  const reasons = boards.flatMap((d) => d.health.reasons).sort((a, b) => order.indexOf(b.state) - order.indexOf(a.state));
  const worst = order[Math.max(...known.map((h) => order.indexOf(h.state)))];
  if (!worst || (worst === "ok" && known.length < boards.length)) return { ...unknownHealth, reasons };
  const sum = (key) => known.reduce((t, h) => t + h.coverage[key], 0);
  return { ...known.find((h) => h.state === worst), reasons, coverage: { with_data: sum("with_data"), applicable: sum("applicable"), missing: known[0].coverage.missing } };
}

/** Boards by their health; null where nothing reports it. */
export function countHealth(boards) {
  const count = (state) => boards.filter((d) => d.health.state === state).length;
  return boards.length ? { ok: count("ok"), degraded: count("degraded"), predicted_failure: count("predicted_failure"), failed: count("failed"), unknown: count("unknown") } : null;
}

function device(now, node, index, model, over = {}) {
  const d = board(now, node, index, model, over);
  if (d.parent) d.health = null;
  else if (!over.health && (d.stale || d.data_age === null)) d.health = unknownHealth;
  return d;
}

function board(now, node, index, model, over) {
  const id = deviceId(`${node}/${index}`);
  const vendor = models[model].vendor ?? "NVIDIA";
  const made = {
    id, parent: null, index: String(index), vendor, model: models[model].name, mig_profile: null, mig_instance: null, partition_profile: null, partition: null, not_measured: [],
    state: "free", holders: [], idle: null, values: { ...noValues, utilization: 0, memory_used: 0.4 * GiB, memory_total: models[model].memory, tensor: 0, sm: 0, dram: 0, fp16: 0, fp32: 0, power: models[model].idle },
    temperature: 31, memory_temperature: model === "l4" ? null : 38, power_limit: models[model].limit, throttle: [], xid: 0, xid_errors: [], uncorrected_errors: 0, corrected_errors: 0, remapped_rows: 0, remapped_rows_rise: 0, straggler: null, health: healthOf(now, id), reasons: [],
    ...told(now, 6, 45), ...over,
  };
  if (vendor === "NVIDIA") return made;
  return { ...made, values: { ...made.values, ...Object.fromEntries(pipes.map((k) => [k, null])) }, not_measured: pipes };
}

const merge = (list) => Object.fromEntries(Object.keys(noValues).map((k) => {
  const there = list.map((v) => v[k]);
  const v = k.startsWith("memory") || k === "power" ? total(there) : average(there);
  return [k, v === null ? null : round(v)];
}));
/** Over how many of the devices each field is, of those that should have it. */
export function coverageOf(devices) {
  const split = (d) => devices.some((i) => i.parent === d.id && (i.mig_profile || i.partition));
  const due = { memory_used: (d) => !d.id.includes("::"), memory_total: (d) => !d.id.includes("::"), power: (d) => d.parent === null };
  return Object.fromEntries(Object.keys(noValues).map((k) => {
    const there = devices.filter((d) => d.values[k] !== null || k === "memory_total").length;
    const of = devices.filter((d) => d.values[k] !== null || (due[k] ?? ((one) => !split(one) && !one.not_measured.includes(k)))(d)).length;
    return [k, of ? { devices: Math.min(there, of), of } : null];
  }));
}
export const fewer = (c) => ({ ...c, tensor: null, sm: null, dram: null, fp16: null, fp32: null });
const meanOf = (list) => Object.fromEntries(Object.keys(noValues).map((k) => {
  const v = average(list.map((x) => x[k]));
  return [k, v === null ? null : round(v)];
}));

/** Builds services, pods by service, and nodes, as they are at `now` (milliseconds). */
export function build(now, services = plan, staleAfter = 45) {
  const second = Math.floor(now / 1000);
  const nodes = new Map();
  const free = new Map(); // by cluster and model: the node with room
  const place = (s) => {
    const key = `${s.cluster}/${s.model}`;
    let at = free.get(key);
    if (!at || at.devices.length + s.gpus > 8) {
      const n = [...nodes.values()].filter((x) => x.key === key).length + 1;
      const name = `gpu-${s.model}-${s.cluster ? `${s.cluster.slice(0, 2)}-` : ""}${String(n).padStart(2, "0")}`;
      at = { key, cluster: s.cluster, node: name, model: s.model, devices: [] };
      nodes.set(`${s.cluster}/${name}`, at);
      free.set(key, at);
    }
    return at;
  };
  const pods = new Map();
  const list = services.map((s) => {
    const name = serviceKey(s);
    const members = Array.from({ length: s.pods }, (_, i) => pod(now, second, s, i, place, staleAfter));
    pods.set(name, members);
    return service(now, second, s, members, staleAfter);
  });
  return { services: list, pods, nodes: [...nodes.values()].map((n) => node(now, n)) };
}

export const serviceKey = (s) => `${s.cluster ?? ""}\n${s.slurm_cluster ?? ""}\n${s.namespace}\n${s.service}`;

/** The job of Slurm that a pod is here, of a service on Slurm. */
const jobOf = (s, i) => (s.slurm_cluster ? { job: { cluster: s.slurm_cluster, id: String(4711 + i), user: s.service.split("/")[0], account: s.namespace, partition: "gpu", nested: false } } : {});

function podState(s, i) {
  const order = [["missing", s.missing], ["degraded", s.degraded], ["warming", s.warming], ["not_running", s.off]];
  let at = 0;
  for (const [state, n] of order) {
    at += n ?? 0;
    if (i < at) return state;
  }
  return "reporting";
}

function pod(now, second, s, i, place, staleAfter) {
  const state = podState(s, i);
  const suffix = s.podNames?.[i] ?? `${s.service}-${s.gpus > 1 ? i : `6d4f${(i * 7 + 11).toString(16)}c-${"bdfhjkmnpqrs"[i % 12]}${(i * 13 + 5).toString(36)}x`}`;
  const result = { pod: suffix, ...jobOf(s, i), state, node: null, exporter: "unknown", values: { ...noValues }, not_measured: [], coverage: coverageOf([]), devices: [], ...told(now, null, staleAfter) };
  if (state === "not_running") return result;
  const at = place(s);
  result.node = at.node;
  if (result.job) result.pod = `${result.job.id} on ${at.node}`;
  // What is missing is so because the exporter of its node is down.
  if (state === "missing") at.down = true;
  result.exporter = at.down ? "down" : "up";
  const silent = state === "missing" || state === "warming";
  for (let g = 0; g < s.gpus; g++) {
    const quiet = silent || (state === "degraded" && g === 0);
    const age = s.age ?? 4 + ((i + g) % 9);
    const d = device(now, at.node, at.devices.length, s.model, {
      state: quiet && state === "degraded" ? "lost" : s.idle && i < s.idle ? "idle" : "held",
      idle: !!(s.idle && i < s.idle),
      holders: [{ namespace: s.namespace, service: s.service, pod: result.pod, container: result.job ? null : "main", share: 1, sharing: "none", source: result.job ? "slurm_job_map" : "pod_resources", ...jobOf(s, i) }],
      values: quiet ? { ...noValues } : values(`${s.service}/${i}/${g}`, s.model, s.load * (0.9 + ((i * 5 + g * 3) % 7) / 30), s.memory, second),
      temperature: Math.round(38 + s.load * 34 + ((i * 3 + g * 5) % 8)),
      memory_temperature: s.model === "l4" ? null : Math.round(42 + s.load * 36),
      power_limit: models[s.model].limit,
      ...(quiet ? noGauges : {}),
      ...told(now, quiet ? (state === "warming" ? null : 372) : age, staleAfter),
    });
    if (s.noFp16) d.values.fp16 = null;
    at.devices.push(d);
    result.devices.push(d);
  }
  const heard = result.devices.filter((d) => d.values.utilization !== null);
  if (heard.length) result.values = merge(heard.map((d) => d.values));
  const ages = result.devices.map((d) => d.data_age).filter((a) => a !== null);
  result.coverage = coverageOf(result.devices);
  result.not_measured = pipes.filter((k) => result.devices.every((d) => d.not_measured.includes(k)));
  return Object.assign(result, told(now, ages.length ? Math.min(...ages) : null, staleAfter));
}

function service(now, second, s, members, staleAfter) {
  const n = (state) => members.filter((p) => p.state === state).length;
  const counts = { reporting: n("reporting"), degraded: n("degraded"), missing: n("missing"), warming: n("warming"), not_running: n("not_running") };
  const settled = counts.reporting + counts.degraded + counts.missing;
  const inMean = counts.reporting + counts.degraded;
  const heard = members.filter((p) => p.state === "reporting" || p.state === "degraded");
  const devices = members.flatMap((p) => (p.state === "not_running" || p.state === "warming" ? [] : p.devices));
  const silent = devices.filter((d) => d.values.utilization === null).length;
  const busy = devices.filter((d) => (d.values.utilization ?? 0) >= 0.05).length;
  const ratio = settled ? counts.missing / settled : null;
  const partial = settled ? ratio > 0.25 : false;
  const utilization = heard.map((p) => p.values.utilization).filter((v) => v !== null);
  const age = heard.length ? (s.age ?? 11) : null;
  const freshness = told(now, age, staleAfter);
  const attention = [
    freshness.stale && "stale",
    settled > 0 && counts.missing === settled && "no_data",
    partial && counts.missing < settled && "partial",
    counts.missing > 0 && "missing_pods",
    counts.degraded > 0 && "degraded_pods",
    s.pending && "pending_pods",
    s.idle && "idle_devices",
    settled === 0 && !counts.warming && counts.not_running > 0 && "not_running",
    settled === 0 && counts.warming > 0 && "warming",
  ].filter(Boolean);
  return {
    cluster: s.cluster, ...(s.slurm_cluster && { slurm_cluster: s.slurm_cluster }), namespace: s.namespace, service: s.service, attention, partial, missing_ratio: ratio,
    values: heard.length ? meanOf(heard.map((p) => p.values)) : { ...noValues },
    not_measured: members.some((p) => p.devices.length) ? pipes.filter((k) => members.every((p) => p.devices.every((d) => d.not_measured.includes(k)))) : [],
    coverage: coverageOf(members.flatMap((p) => p.devices)),
    utilization_min: utilization.length ? Math.min(...utilization) : null,
    utilization_max: utilization.length ? Math.max(...utilization) : null,
    totals: { memory_used: total(heard.map((p) => p.values.memory_used)), memory_total: total(heard.map((p) => p.values.memory_total)), power: total(heard.map((p) => p.values.power)) },
    pods: { total: s.pods, settled, in_mean: inMean, ...counts, pending: s.pending ?? 0 },
    devices: { held: devices.length, reporting: devices.length - silent, missing: silent, busy, idle: s.idle ?? 0, frozen: 0, health: null },
    trend: Array.from({ length: 60 }, (_, k) => (heard.length || counts.missing ? trendAt(s, second - (59 - k) * 60, k) : null)),
    ...freshness,
    ...inference(s, second),
  };
}

function trendAt(s, second, k) {
  if (s.missing === s.pods && k > 52) return null;
  if (s.gaps && k > 30 && k < 38) return null;
  return round(clamp(wave(`${s.service}/trend`, s.load, s.load > 0.05 && s.load < 0.9 ? 0.16 : 0.02, second)));
}

function node(now, n) {
  while (n.devices.length < (n.model === "l4" ? 4 : 8)) n.devices.push(device(now, n.node, n.devices.length, n.model, n.down ? { values: { ...noValues }, ...noGauges, ...told(now, 372, 45) } : {}));
  return finishNode(now, { cluster: n.cluster, node: n.node, state: n.down ? "exporter_down" : "ok", exporter: n.down ? "down" : "up", schedulable: true, mig_reconfiguring: n.model === "a100" ? false : null, devices: n.devices });
}

/** Counts a node's devices and tells its age. */
export function finishNode(now, n, staleAfter = 45) {
  const physical = n.devices.filter((d) => d.parent === null);
  const as = (d) => {
    if (d.state !== "split") return d.state;
    const parts = n.devices.filter((i) => i.parent === d.id).map((i) => i.state);
    return parts.some((p) => p === "held" || p === "idle") ? "held" : parts.length && parts.every((p) => p === "free") ? "free" : "unknown";
  };
  const states = physical.map(as);
  const c = (s) => states.filter((x) => x === s).length;
  const ages = n.devices.map((d) => d.data_age).filter((a) => a !== null);
  return {
    ...n,
    values: merge(physical.map((d) => d.values)),
    coverage: coverageOf(physical),
    health: healthOfNode(physical),
    counts: { devices: physical.length, free: c("free"), held: c("held") + c("idle"), idle: c("idle"), lost: c("lost"), unknown: c("unknown") },
    ...told(now, ages.length ? Math.min(...ages) : null, staleAfter),
  };
}

export { device, told, values, iso, models };
