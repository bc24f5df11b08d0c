// GPU time and its cost, of the services of a scenario: hour by hour, so that every grouping and step adds up.
import { iso } from "./world.mjs";
import { random, round } from "./numbers.mjs";

const hour = 3_600_000;
const day = 24 * hour;
const models = { h100: ["NVIDIA H100 80GB HBM3", 2.95, 0.62], h200: ["NVIDIA H200", 3.8, 0.66], a100: ["NVIDIA A100-SXM4-80GB", 1.1, 0.35], l4: ["NVIDIA L4", null, 0.06], mi300x: ["AMD Instinct MI300X", 2.2, 0.68], gaudi: ["Gaudi", null, 0.7] };
const tenants = { inference: "serving", research: "research", batch: "" };
const unheld = ["free", "stranded", "unavailable", "unknown"];
const fields = ["cluster", "namespace", "service", "tenant", "pod", "model", "host_type", "region", "capacity_type", "node_pool", "node_labels", "mig_profile"];
const optional = ["slurm_cluster"]; // of jobs alone
const groupings = { tenant: ["tenant"], namespace: ["cluster", "namespace"], service: ["cluster", "namespace", "service"], model: ["model"], capacity: ["capacity_type"], node_pool: ["cluster", "node_pool"], row: fields };
const boards = new Set(["model", "capacity", "node_pool", "row"]);

/** Rows of an hour: what each service held of its model, and what nothing held. */
function rowsOf(world, start, end, now) {
  const length = (Math.min(end, now) - start) / 1000;
  const rows = [];
  const row = (group, model, state, gpus, more = {}) => {
    const [name, price, kw] = models[model];
    const time = gpus * length;
    const rate = world.cost?.free ? null : price;
    rows.push({ model: name, capacity_type: model === "l4" ? "spot" : "on_demand", node_pool: `${model}-pool`, ...group, state, time, price: rate, energy: time * kw * 1000 * (state === "held" ? 0.8 : 0.15), open: end > now, ...more });
  };
  for (const s of world.plan) {
    const gpus = s.pods * s.gpus;
    const load = (s.load || 0.02) * (0.9 + random(`${s.service}/${start}`)() * 0.2);
    row({ cluster: s.cluster, ...(s.slurm_cluster && { slurm_cluster: s.slurm_cluster }), namespace: s.namespace, service: s.service, tenant: tenants[s.namespace] ?? s.namespace }, s.model, "held", gpus, { used: round(gpus * length * load, 3), idle: load < 0.05 ? gpus * length : 0, unmeasured: s.missing ? s.missing * s.gpus * length : 0, board_metered: s.service === "rerank" });
  }
  const clusters = [...new Set(world.plan.map((s) => s.cluster))];
  for (const cluster of clusters) {
    row({ cluster }, "h100", "free", 3);
    row({ cluster }, "a100", "stranded", 0.25);
    row({ cluster }, "a100", "unavailable", start % (6 * hour) ? 0 : 1);
    row({ cluster }, "h100", "unknown", Math.floor(start / hour) % 17 === 3 ? 2 : 0);
  }
  return rows;
}

const blank = (state, start, end, group = {}) => ({
  start: start === null ? null : iso(start), end: end === null ? null : iso(end), state, others: false, group: { ...Object.fromEntries(fields.map((f) => [f, group[f] ?? null])), ...Object.fromEntries(optional.filter((f) => group[f]).map((f) => [f, group[f]])), price: null },
  time: 0, used: null, idle: null, unmeasured: null, unplaced: 0, cost: 0, idle_cost: 0, priced_cost: null, shared_cost: null, unpriced: 0, energy: { board: 0, share: 0, integrated: 0 }, carbon: 0,
  open: false, unknown_hours: false, contested: false, board_metered: false, estimated: false,
});

function add(line, r) {
  line.time = round(line.time + r.time, 3);
  if (r.state === "held") for (const key of ["used", "idle", "unmeasured"]) line[key] = round((line[key] ?? 0) + r[key], 3);
  if (r.price === null) {
    line.unpriced = round(line.unpriced + r.time, 3);
    if (r.time) line.cost = line.idle_cost = null;
  } else {
    const cost = (r.time / 3600) * r.price;
    line.priced_cost = round((line.priced_cost ?? 0) + cost, 9);
    if (line.cost !== null) line.cost = round(line.cost + cost, 9);
    if (line.idle_cost !== null) line.idle_cost = round(line.idle_cost + ((r.idle ?? 0) / 3600) * r.price, 9);
  }
  line.energy.board = round(line.energy.board + r.energy, 3);
  line.carbon = round(line.carbon + (r.energy / 3.6e6) * 1.2 * 45, 3);
  line.open ||= r.open;
  line.board_metered ||= !!r.board_metered;
}

/** The range that a request asks for, milliseconds. */
function rangeOf(query, now) {
  const since = /^(\d+)([hd])$/.exec(query.get("since") ?? "");
  if (since) return [Math.floor((now - Number(since[1]) * (since[2] === "h" ? hour : day)) / hour) * hour, now];
  return [Date.parse(query.get("from") ?? iso(now - day)), query.get("to") ? Date.parse(query.get("to")) : now];
}

export function cost(query, now, world, freshness) {
  const by = query.get("by") ?? "tenant";
  const step = query.get("step");
  const [from, to] = rangeOf(query, now);
  const wanted = (g) => ["tenant", "namespace", "slurm_cluster", "cluster"].every((f) => !query.get(f) || g[f] === query.get(f));
  const owners = query.get("tenant") || query.get("namespace") || query.get("slurm_cluster"); // what has no owner is left out
  const none = world.cost?.reason || !world.plan.length;
  const lines = new Map();
  const states = new Map(["held", ...unheld].map((s) => [s, blank(s, from, to)]));
  const total = blank(null, from, to);
  const unpriced = new Map();
  const open = [];
  const unknown = [];
  const length = step === "day" ? day : hour;
  for (let start = Math.floor(from / hour) * hour; start < to && !none; start += hour) {
    if (now - start > (world.cost?.young ?? 40) * day) continue;
    const rows = rowsOf(world, start, start + hour, now).filter((r) => wanted(r) && (!owners || r.state === "held"));
    if (start + hour > now) open.push(iso(start));
    const missing = rows.some((r) => r.state === "unknown" && r.time > 0);
    if (missing) unknown.push(iso(start));
    const at = step ? Math.floor(start / length) * length : from;
    for (const r of rows) {
      const group = r.state === "held" || boards.has(by) ? Object.fromEntries([...groupings[by].map((f) => [f, r[f] ?? ""]), ...(groupings[by].includes("namespace") ? optional.filter((f) => r[f]).map((f) => [f, r[f]]) : [])]) : {};
      const key = JSON.stringify([at, r.state, group]);
      if (!lines.has(key)) lines.set(key, blank(r.state, at, step ? at + length : to, group));
      for (const line of [lines.get(key), states.get(r.state), total]) {
        add(line, r);
        line.unknown_hours ||= missing;
      }
      if (r.price === null && r.time) unpriced.set(r.model, (unpriced.get(r.model) ?? 0) + r.time);
    }
  }
  let list = [...lines.values()];
  if (query.get("share_unheld") === "proportional") share(list);
  if (query.get("top")) list = fold(list, Number(query.get("top")));
  const rank = (l) => unheld.indexOf(l.state);
  list.sort((a, b) => a.start.localeCompare(b.start) || rank(a) - rank(b) || Number(a.others) - Number(b.others) || (b.priced_cost ?? 0) - (a.priced_cost ?? 0) || b.time - a.time);
  for (const l of [...list, ...states.values(), total]) if (l.time === 0) l.priced_cost ??= null;
  const priced = !world.cost?.free && list.some((l) => l.priced_cost !== null);
  if (!priced) for (const l of [...list, ...states.values(), total]) l.cost = l.idle_cost = l.priced_cost = null;
  const month = [Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth(), 1), Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() + 1, 1)].map(iso);
  const budget = (name, kind, limit, used, tenant = null) => ({ name, kind, tenant, limit, used, ratio: used === null ? null : round(used / limit, 4), start: month[0], end: month[1] });
  const limit = Number(query.get("limit") ?? 100);
  const begin = Number(query.get("cursor") ?? 0);
  return {
    freshness, by, step, from: iso(from), to: iso(to), share_unheld: query.get("share_unheld") === "proportional", currency: priced ? "USD" : null, other_currencies: [],
    lines: list.slice(begin, begin + limit), states: [...states.values()], total,
    unpriced: priced ? [...unpriced].map(([model, time]) => ({ model, host_type: "", region: "eu-north1", capacity_type: "spot", time: round(time, 3) })) : [],
    intensities: none ? [] : ["average"], open_hours: open, unknown_hours: unknown, part_days: [],
    budgets: world.unreachable ? null : none || !priced ? [] : [budget("serving", "cost", 60_000, 55_121.4, "serving"), budget("research", "cost", 40_000, 48_310.02, "research"), budget("fleet", "hours", 100_000, 61_204), budget("everything", "cost", 150_000, null), { ...budget("old", "cost", null, null), ratio: 0.4, start: null, end: null }],
    oldest: none ? null : iso(Math.floor(now / hour) * hour - (world.cost?.young ?? 40) * day), newest: none ? null : iso(Math.floor(now / hour) * hour),
    line_count: list.length, next: begin + limit < list.length ? String(begin + limit) : null, reason: world.cost?.reason ?? (none ? "no_usage" : null),
  };
}

/** Spreads the cost of what nothing held over the owners of the same period, by the time that they held. */
function share(list) {
  for (const start of new Set(list.map((l) => l.start))) {
    const period = list.filter((l) => l.start === start);
    const held = period.filter((l) => l.state === "held");
    const time = held.reduce((sum, l) => sum + l.time, 0);
    const spread = period.filter((l) => l.state !== "held").reduce((sum, l) => sum + (l.priced_cost ?? 0), 0);
    for (const l of period) l.shared_cost = l.state === "held" ? round((spread * l.time) / time, 9) : -(l.priced_cost ?? 0);
  }
}

/** The greatest groups, and the others as one. */
function fold(list, most) {
  const sums = new Map();
  for (const l of list) if (l.state === "held") sums.set(JSON.stringify(l.group), (sums.get(JSON.stringify(l.group)) ?? 0) + (l.priced_cost ?? l.time / 1e9));
  const kept = new Set([...sums].sort((a, b) => b[1] - a[1]).slice(0, most).map(([key]) => key));
  const others = new Map();
  const out = [];
  for (const l of list) {
    if (l.state !== "held" || kept.has(JSON.stringify(l.group))) {
      out.push(l);
      continue;
    }
    const sum = others.get(l.start);
    if (!sum) {
      others.set(l.start, { ...l, others: true, group: { ...Object.fromEntries(fields.map((f) => [f, null])), price: null }, energy: { ...l.energy } });
      continue;
    }
    for (const key of ["time", "used", "idle", "unmeasured", "unpriced", "carbon"]) sum[key] = round(sum[key] + l[key], 3);
    for (const key of ["cost", "idle_cost"]) sum[key] = sum[key] === null || l[key] === null ? null : round(sum[key] + l[key], 9);
    sum.priced_cost = l.priced_cost === null ? sum.priced_cost : round((sum.priced_cost ?? 0) + l.priced_cost, 9);
    sum.energy.board = round(sum.energy.board + l.energy.board, 3);
  }
  return [...out, ...others.values()];
}
