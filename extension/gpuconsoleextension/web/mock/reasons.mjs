// Why a service, a node, a device or the fleet needs attention: as the API lists it.

export const kinds = [
  "stale", "no_data", "node_lost", "exporter_down", "exporter_frozen", "exporter_unrecognized", "device_lost", "values_missing", "xid", "ecc_uncorrected", "row_remap_failure", "retired_pages", "throttle",
  "temperature", "memory_temperature", "memory_pressure", "health", "condition", "delivery", "partial", "missing_pods", "degraded_pods", "pending_pods", "idle_devices", "not_running", "warming", "unknown",
];
const severities = ["error", "warn", "info"];
const nothing = { cluster: null, namespace: null, service: null, pod: null, node: null, device: null };

const reason = (kind, severity, label, text, subject, over = {}) =>
  ({ kind, severity, label, text, notice: false, subject: { ...nothing, ...subject }, endpoint: null, event_id: null, since: null, ...over });
const sorted = (list) => [...list].sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity) || kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
export const pressing = (list) => list.some((r) => r.severity !== "info");

const own = (kind, { pods, devices }) => ({
  stale: ["error", "stale"], no_data: ["error", "no data"], partial: ["warn", `partial: ${pods.missing} of ${pods.settled} missing`], missing_pods: ["warn", `${pods.missing} missing`],
  degraded_pods: ["warn", `${pods.degraded} degraded`], pending_pods: ["warn", `${pods.pending} pending`], idle_devices: ["info", `${devices.idle} idle-held`], not_running: ["info", "not running"],
  warming: ["info", "warming up"], unknown: ["info", "not known yet"],
})[kind];

function ofDevice(n, d) {
  const holder = d.holders[0];
  const about = { cluster: n.cluster, node: n.node, device: d.id, namespace: holder?.namespace ?? null, service: holder?.service ?? null, pod: holder?.pod ?? null };
  const name = `GPU ${d.index} of ${n.node}`;
  const list = [];
  if (d.state === "lost") list.push(reason("device_lost", "error", "GPU lost", `${name} reports nothing, although its exporter answers.`, about));
  for (const x of d.xid_errors) list.push(reason("xid", "error", `XID ${x.code}`, `${name} reported XID ${x.code}.`, about, { notice: true }));
  if (d.uncorrected_errors) list.push(reason("ecc_uncorrected", "error", "ECC uncorrected", `${name} reported uncorrected ECC errors.`, about, { notice: true }));
  if (d.throttle.length) list.push(reason("throttle", "warn", `throttled: ${d.throttle.join(", ").replaceAll("_", " ")}`, `${name} holds its clocks down (${d.throttle.join(", ")}).`, about));
  const shown = { ecc_uncorrected: d.uncorrected_errors, throttle: d.throttle.length, xid_reset: d.xid_errors.length };
  const own = d.health && d.health.state !== "unknown" ? d.health.reasons.filter((r) => !shown[r.name]) : [];
  if (own.length) list.push(reason("health", own[0].state === "failed" ? "error" : "warn", `${own[0].state}: ${own.map((r) => r.name.replaceAll("_", " ")).join(", ")}`, `${name} is ${own[0].state} (${own.map((r) => r.name).join(", ")}).`, about));
  if (d.temperature >= 85) list.push(reason("temperature", "warn", "hot, above 85 °C", `${name} has ${d.temperature} °C, above 85 °C (high).`, about));
  return sorted(list);
}

/** Gives everything in a world its reasons, services and nodes their order. */
export function explain(world) {
  for (const n of world.nodes) {
    const about = { cluster: n.cluster, node: n.node };
    const of = [];
    if (n.state === "lost") of.push(reason("node_lost", "error", "node lost", `Node ${n.node} reports nothing.`, about));
    if (n.exporter === "down") of.push(reason("exporter_down", "warn", "exporter down", `The exporter of node ${n.node} does not answer.`, about));
    for (const d of n.devices) d.reasons = ofDevice(n, d);
    n.reasons = sorted([...of, ...n.devices.flatMap((d) => d.reasons)]);
    if (n.state === "ok" && pressing(n.reasons)) n.state = "degraded";
  }
  for (const s of world.services) {
    const about = { cluster: s.cluster, namespace: s.namespace, service: s.service };
    const held = world.nodes.flatMap((n) => n.reasons).filter((r) => r.subject.namespace === s.namespace && r.subject.service === s.service && r.subject.cluster === s.cluster);
    s.reasons = sorted([...s.attention.map((kind) => reason(kind, ...own(kind, s), `Service ${s.service}: ${own(kind, s)[1]}.`, about)), ...held]);
    s.attention = [...new Set(s.reasons.map((r) => r.kind))];
  }
  const rank = (x) => (x.reasons.length ? severities.indexOf(x.reasons[0].severity) * 100 + kinds.indexOf(x.reasons[0].kind) : 999);
  const name = (x) => `${x.cluster ?? ""}\n${x.namespace ?? ""}\n${x.service ?? x.node}`;
  const order = (a, b) => rank(a) - rank(b) || (b.devices?.idle ?? 0) - (a.devices?.idle ?? 0) || (name(a) < name(b) ? -1 : 1);
  world.nodes.sort(order);
  world.services.sort(order);
}

/** Webhook endpoints whose last delivery of an event did not succeed; events are newest first. */
export function endpointsOf(events) {
  const last = new Map();
  for (const d of events.flatMap((e) => e.deliveries)) if (!last.has(d.receiver) || last.get(d.receiver).time < d.time) last.set(d.receiver, d);
  const failing = [...last.values()].filter((d) => d.outcome !== "succeeded");
  return sorted(failing.map((d) => reason("delivery", d.next_attempt ? "warn" : "error", `webhook ${d.receiver} fails`, `Webhook endpoint ${d.receiver} does not get its deliveries: ${[d.status, d.error_type].filter(Boolean).join(" ")}.`, {}, { endpoint: d.receiver, since: d.time })));
}

/** Every reason that needs attention, each once, worst first. */
export function ofFleet(world, endpoints) {
  const seen = new Set();
  const all = [...endpoints, ...world.services.flatMap((s) => s.reasons), ...world.nodes.flatMap((n) => n.reasons)].filter((r) => r.severity !== "info" && !seen.has(r) && seen.add(r));
  return { reasons: sorted(all).slice(0, 50), reasons_total: all.length };
}
