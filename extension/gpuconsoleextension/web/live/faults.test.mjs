// What goes wrong in the fleet of `make run`, one after the other: page, API, gpuctl
// and events name it, of the devices of which the simulator says it is true and of no
// others, and nothing calls well what is not. Then it ends, and all is well again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../browser/browser.mjs";
import { seen, settled } from "../browser/harness.mjs";
import { eventually, freePorts, World } from "./world.mjs";

const world = new World();
let browser, fleet, collector, page, problems;

before(async () => {
  browser = await launch();
  fleet = await world.demo();
  const to = (path) => ({ url: `${fleet.sink}/${path}` });
  // The pod of the last one never comes.
  const engines = [...fleet.engines.map((url) => new URL(url).port), ...(await freePorts(1))];
  collector = await world.collector({
    exporters: fleet.exporters,
    configs: ["inference-standalone.yaml", "demo.yaml"],
    env: { KUBELETS: fleet.kubelets, ...Object.fromEntries(engines.map((port, i) => [`ENGINE_${i}`, String(port)])) },
    more: {
      processors: { gpu_summary: { staleness: "4s", warmup: "3s", idle_for: "1h" } },
      connectors: { gpu_events: { staleness: "6s", events: { "gpu.throttle": { for: "2s", clear_for: "2s" }, "gpu.exporter.down": { for: "2s" } } } },
      exporters: { webhook: { receivers: { sink: to("ops"), convox: to("convox"), slack: to("slack") } } },
      extensions: { gpu_console: { warmup: "3s" } },
    },
  });
  ({ page, problems } = await open(browser, { clock: false }));
});
after(async () => {
  await browser?.close();
  await world.end();
});

const go = async (hash) => {
  await page.goto(collector.url + hash);
  await settled(page);
};
const serviceLink = (s) => `#/service?${new URLSearchParams({ namespace: s.namespace, service: s.name })}`;
const kinds = (reasons) => [...new Set(reasons.map((r) => r.kind))].sort();
const sorted = (list) => [...new Set(list)].sort();
const MiB = 1 << 20;
const thermal = 0x08 | 0x20 | 0x40; // clock event bits: hw slowdown, sw thermal, hw thermal

// `hit`: whether the truth is that a device has it; `hidden`: the fields of which its
// value is not known; `lost`, `frozen`: what becomes of the device. `also`: reasons
// that follow. `health`: the reason against the board, which is then failed; `blind`: no
// value that could show a fault of the board is read, so that its health is unknown;
// `ends`: the fault that ends it.
const faults = [
  { name: "XID 119", fault: { node: "gpu-node-a", kind: "xid", device: "1", code: 119 }, kind: "xid", label: "XID 119", event: "gpu.xid", notice: true, hit: (d) => d.xid === 119, hidden: [], health: "xid_reset", ends: { node: "gpu-node-a", kind: "gpu_reset", device: "1" } },
  { name: "thermal throttling", fault: { node: "gpu-node-a", kind: "thermal_throttle", device: "0" }, kind: "throttle", label: "throttled: hw thermal", event: "gpu.throttle", hit: (d) => (d.clock_events & thermal) !== 0, hidden: [] },
  { name: "a lost GPU", fault: { node: "gpu-node-a", kind: "gpu_lost", device: "1" }, kind: "device_lost", label: "GPU lost", event: "gpu.device.lost", hit: (d) => !d.on_page, hidden: ["utilization", "memory_used", "power"], lost: true, also: ["degraded_pods"], health: "lost" },
  { name: "a frozen exporter", fault: { node: "gpu-node-b", kind: "exporter_frozen" }, kind: "exporter_frozen", label: "exporter frozen", event: "gpu.exporter.down", hit: (_, n) => n.exporter === "frozen", hidden: ["utilization", "memory_used", "power"], frozen: true, blind: true, also: ["degraded_pods"] },
  { name: "a page with holes", fault: { node: "gpu-node-a", kind: "page_cut", mode: "clean" }, kind: "values_missing", label: "values missing", event: null, hit: (_, n) => n.exporter === "cut", hidden: ["memory_used"], blind: true },
];

/** The devices of the truth, each with its node. */
const devicesOf = (truth) => truth.nodes.flatMap((n) => n.devices.map((d) => ({ ...d, node: n })));

/** What has to be true of a fault, from the simulator's truth. */
async function expected(f) {
  const truth = await fleet.truth();
  const hit = devicesOf(truth).filter((d) => f.hit(d, d.node));
  assert.ok(hit.length > 0 && hit.every((d) => d.node.name === f.fault.node), `the truth knows ${f.name}`);
  return { truth, hit: new Set(hit.map((d) => d.id)), services: sorted(hit.filter((d) => d.service).map((d) => d.service)) };
}

async function checkServices(f, { truth, hit, services }) {
  const answer = await collector.api("services");
  assert.deepEqual(kinds(answer.summary.reasons), sorted([f.kind, ...(f.also ?? [])]));
  const about = answer.summary.reasons.filter((r) => r.kind === f.kind);
  assert.deepEqual(sorted(about.map((r) => r.subject.node)), [f.fault.node]);
  assert.equal(about.length, f.frozen ? 1 : hit.size, "each once");
  if (!f.frozen) assert.deepEqual(sorted(about.map((r) => r.subject.device)), sorted(hit));
  assert.equal(answer.summary.attention, services.length);
  assert.deepEqual(sorted(answer.services.slice(0, services.length).map((s) => s.service)), services, "those come first");
  assert.equal(answer.summary.devices_lost, f.lost ? hit.size : 0);
  assert.equal(answer.summary.health.failed, f.health ? hit.size : 0);
  for (const s of answer.services) {
    const real = truth.services.find((t) => t.name === s.service);
    const ids = real.pods.flatMap((p) => p.devices);
    const away = ids.filter((id) => hit.has(id)).length;
    assert.deepEqual(s.attention, away ? [f.kind, ...(f.also ?? [])] : [], s.service);
    assert.deepEqual([s.devices.held, s.devices.missing, s.devices.frozen], [ids.length, f.lost || f.frozen ? away : 0, f.frozen ? away : 0], s.service);
    const one = (await collector.api("service", { namespace: s.namespace, service: s.service })).service;
    assert.deepEqual(one.attention, s.attention, s.service);
    for (const field of ["utilization", "memory_used"]) {
      assert.deepEqual(one.coverage[field], { devices: ids.length - (f.hidden.includes(field) ? away : 0), of: ids.length }, `${field} of ${s.service}`);
    }
    // What is not known has not become less. An old exporter prints no reserved memory.
    const capacity = real.pods.reduce((sum, p) => sum + p.memory_total_mib, 0) * MiB;
    assert.ok(Math.abs(one.totals.memory_total - capacity) <= 0.03 * capacity, `capacity of ${s.service}: ${one.totals.memory_total}, ${capacity}`);
    assert.equal(one.stale, !!f.frozen && away === ids.length, `stale: ${s.service}`);
  }
}

async function checkNodes(f, { truth, hit }) {
  const boards = { ok: 0, degraded: 0, predicted_failure: 0, failed: 0, unknown: 0 };
  for (const n of (await collector.api("nodes")).nodes) {
    const mine = n.node === f.fault.node;
    assert.deepEqual(kinds(n.reasons), mine ? [f.kind] : [], n.node);
    assert.equal(n.state, !mine ? "ok" : f.frozen ? "exporter_frozen" : "degraded", n.node);
    assert.equal(n.counts.lost, f.lost && mine ? hit.size : 0, n.node);
    const real = truth.nodes.find((t) => t.name === n.node).devices;
    for (const d of n.devices) {
      const about = hit.has(d.id);
      assert.deepEqual(kinds(d.reasons), about && !f.frozen ? [f.kind] : [], d.id);
      assert.equal(d.stale, about && !!(f.lost || f.frozen), `stale: ${d.id}`);
      assert.equal(d.state === "lost", about && !!f.lost, d.id);
      if (d.parent === null) boards[d.health.state]++;
      if (d.parent === null) assert.deepEqual([d.health.state, d.health.reasons.map((r) => r.name)], about && f.health ? ["failed", [f.health]] : (about && f.blind) || d.state === "split" ? ["unknown", []] : ["ok", []], `health: ${d.id}`);
      if (about && !d.stale) for (const field of f.hidden) assert.equal(d.values[field], null, `${field} of ${d.id}`);
    }
    for (const d of real) assert.ok(n.devices.some((got) => got.id === d.id), `${d.id} is named`);
  }
  assert.deepEqual((await collector.api("services")).summary.health, boards, "each board once");
}

async function checkPods(f, { truth, hit }, name) {
  const real = truth.services.find((s) => s.name === name);
  for (const p of (await collector.api("pods", { namespace: real.namespace, service: name })).pods) {
    const { devices } = real.pods.find((t) => t.name === p.pod);
    const away = f.lost || f.frozen ? devices.filter((id) => hit.has(id)).length : 0;
    assert.equal(p.state, away ? "degraded" : "reporting", p.pod);
    assert.equal(p.stale, away === devices.length, `stale: ${p.pod}`);
  }
}

/** The event that names the fault, if there is one; no other is active. */
async function checkEvents(f, { hit }) {
  const { events: all, raised, notices } = await collector.api("events", { active: true });
  const events = all.filter((e) => e.name !== "gpu.health"); // which sums up, and is not counted
  assert.deepEqual(all.filter((e) => e.name === "gpu.health").map((e) => e.attributes["gpu.health.reasons"]), f.health ? [[f.health]] : []);
  assert.deepEqual(events.map((e) => e.name), f.event ? [f.event] : []);
  assert.deepEqual([raised, notices], [f.event && !f.notice ? 1 : 0, f.notice ? 1 : 0]);
  if (!f.event) return null;
  const [e] = events;
  assert.equal(e.state, "raised");
  if (f.frozen) assert.match(e.body, new RegExp(`${new URL(fleet.exporters[1]).host} .*stand still`));
  else assert.deepEqual([e.subject.device], [...hit]);
  return e;
}

async function checkGpuctl(f, { services }) {
  const asked = { services: services.concat(), nodes: [f.fault.node], events: f.event ? [f.event] : [] };
  for (const [command, named] of Object.entries(asked)) {
    const { status, out } = await collector.gpuctl(command, "--check", ...(command === "events" ? ["--active"] : []));
    assert.equal(status, named.length ? 1 : 0, `gpuctl ${command} --check:\n${out}`);
    for (const name of named) assert.match(out, command === "events" ? new RegExp(name) : new RegExp(`^-? .*\\b${name} .*${f.label}`, "m"), out);
  }
}

/** Who is called well on the page: rows of services, and nodes. */
const well = (selector, name) => page.locator(selector).evaluateAll((all, name) => all.filter((e) => /all well/.test(e.textContent)).map((e) => e.getAttribute(name)), name);

async function checkPage(f, { truth, hit, services }) {
  const others = (all, but) => all.filter((n) => !but.includes(n)).sort();
  await go("#/");
  assert.deepEqual(sorted(await well("table.fleet tr[data-row]", "data-row")), others(truth.services.map((s) => s.name), services));
  for (const s of services) assert.match(await seen(page.locator(`table.fleet tr[data-row="${s}"]`)), new RegExp(f.label));
  await go("#/nodes");
  assert.deepEqual(sorted(await well(".node", "data-node")), others(truth.nodes.map((n) => n.name), [f.fault.node]));
  assert.match(await seen(page.locator(`.node[data-node="${f.fault.node}"] summary`)), new RegExp(f.label));
  await go(`#/node?node=${f.fault.node}`);
  assert.match(await seen(page.locator(".head-line")), new RegExp(f.label));
  assert.doesNotMatch(await seen(page.locator("main")), /all well/);
  for (const name of services) {
    const s = truth.services.find((t) => t.name === name);
    const ids = s.pods.flatMap((p) => p.devices);
    const left = ids.filter((id) => !hit.has(id)).length;
    await go(serviceLink(s));
    assert.match(await seen(page.locator(".head-line")), new RegExp(f.label));
    assert.doesNotMatch(await seen(page.locator("main")), /all well/);
    const figure = await seen(page.locator('.cards [data-figure="Memory used"]'));
    if (!f.hidden.includes("memory_used")) assert.doesNotMatch(figure, / of \d+ devices/);
    else if (left) assert.match(figure, new RegExp(`${left} of ${ids.length} devices`));
    else assert.match(figure, /—/, "nothing is known of it");
    if (f.frozen && !left) assert.match(await seen(page.locator(".head-line")), /stale/);
  }
}

/** All is well everywhere, and nothing is active. */
const allWell = () =>
  eventually("all is well", async () => {
    const { services, summary } = await collector.api("services");
    assert.equal(services.length, 4);
    assert.deepEqual([summary.reasons, services.flatMap((s) => s.reasons)], [[], []]);
    for (const s of services) assert.equal(s.pods.reporting, s.pods.total, s.service);
    for (const command of ["services", "nodes", "events"]) {
      const { status, out } = await collector.gpuctl(command, "--check");
      assert.equal(status, 0, `gpuctl ${command} --check:\n${out}`);
    }
    await go("#/");
    assert.equal((await well("table.fleet tr[data-row]", "data-row")).length, 4);
    await go("#/nodes");
    assert.equal((await well(".node", "data-node")).length, 4);
    return true;
  });

/** What every fault begins with, also in a test that runs alone. */
let began;
const wellAtFirst = () => (began ??= allWell());

test("all is well before anything happens", wellAtFirst);

for (const f of faults) {
  test(`${f.name}: page, API, gpuctl and events agree with the truth, and nothing calls it well`, async () => {
    await wellAtFirst();
    const { id } = await fleet.fault(f.fault);
    let event;
    try {
      await eventually(`${f.name} is named`, async () => {
        const real = await expected(f);
        await checkServices(f, real);
        await checkNodes(f, real);
        for (const s of real.services) await checkPods(f, real, s);
        event = await checkEvents(f, real);
        await checkGpuctl(f, real);
        await checkPage(f, real);
        return true;
      });
    } finally {
      await fleet.end(id); // what follows begins well
    }
    if (f.notice) {
      // Nothing clears a notice but its acknowledgement.
      await go("#/events?active=true");
      await page.locator(`[data-event="${event.id}"]`).getByRole("button", { name: "Acknowledge" }).click();
    }
    if (f.ends) {
      // The board is no better for the acknowledgement: what the code asks for is.
      await eventually("its health is not acknowledged", async () => {
        const { reasons } = (await collector.api("services")).summary;
        assert.deepEqual(kinds(reasons), ["health"]);
        assert.equal((await collector.gpuctl("nodes", "--check")).status, 1);
        return true;
      });
      await fleet.fault(f.ends);
    }
    await allWell();
    if (event) {
      const now = (await collector.api("events", { name: f.event })).events.filter((e) => e.key === event.key);
      if (f.notice) assert.ok(now.find((e) => e.id === event.id).acknowledged_at, "it is acknowledged");
      else assert.equal(now[0].state, "cleared");
    }
    assert.deepEqual([...problems], [], "the page complains");
  });
}

async function promql(query) {
  const { data } = await fetch(`${collector.store}/api/v1/query?${new URLSearchParams({ query })}`).then((r) => r.json());
  return data.result;
}

/** The bucket of a value, or beside a bound that is next to it the one beyond. */
async function bucket(histogram, value) {
  const bounds = (await promql(`group by (le) (${histogram}_bucket{service_name="llama"})`)).map((s) => (s.metric.le === "+Inf" ? Infinity : Number(s.metric.le)));
  return [Math.max(0, ...bounds.filter((b) => b < 0.97 * value)), Math.min(...bounds.filter((b) => b >= 1.03 * value))];
}

test("the second row of cards has what the engines of a service did", async () => {
  const llama = { namespace: "inference", service: "llama" };
  await go(serviceLink({ namespace: "inference", name: "llama" }));
  const row = page.getByRole("region", { name: "Inference" });
  const shown = async (figure, n = 0) => {
    const value = await row.locator(`[data-figure="${figure}"] .figure-value [data-value]`).nth(n).getAttribute("data-value");
    assert.ok(value !== null && value !== "" && Number.isFinite(Number(value)), `${figure}: ${value}`);
    return Number(value);
  };
  const at = (seconds) => new Date(seconds * 1000).toISOString();
  await eventually("every card is filled, and true", async () => {
    const first = Number((await promql('max(min_over_time(timestamp(inference_server_up{service_name="llama"})[5m:1s]))'))[0].value[1]);
    // Rates are over five minutes, or over one where less was read.
    const cards = {};
    for (const name of ["TTFT p95", "TPOT p95", "Request p95", "Output", "KV cache", "Errors", "Energy"]) cards[name] = await shown(name);
    cards.waiting = await shown("Waiting / running");
    cards.running = await shown("Waiting / running", 1);
    const { freshness, service } = await collector.api("service", llama);
    assert.deepEqual(service.inference.servers, { up: 3, of: 3 });
    assert.deepEqual(service.inference.lacking, []);
    const to = Date.parse(freshness.evaluated_at) / 1000;
    const over = to - first < 299 ? 60 : 300;
    const rate = (await fleet.requests({ ...llama, from: at(to - over), to: at(to) })).output_tokens / over;
    assert.ok(Math.abs(cards.Output / rate - 1) < 0.05, `tokens per second: ${cards.Output}, in truth ${rate}`);
    const truth = await fleet.requests({ ...llama, from: at(Math.max(first, to - 300)), to: at(to) });
    for (const [card, histogram, real] of [
      ["TTFT p95", "gen_ai_server_time_to_first_token_seconds", truth.time_to_first_token_seconds],
      ["TPOT p95", "gen_ai_server_time_per_output_token_seconds", truth.time_per_output_token_seconds],
      ["Request p95", "gen_ai_server_request_duration_seconds", truth.request_duration_seconds],
    ]) {
      const [least, most] = await bucket(histogram, real.p95);
      assert.ok(cards[card] >= least && cards[card] <= most, `${card}: ${cards[card]}, in truth ${real.p95}`);
    }
    for (const ratio of ["KV cache", "Errors"]) assert.ok(cards[ratio] >= 0 && cards[ratio] <= 1, ratio);
    assert.ok(cards.waiting >= 0 && cards.running >= 0);
    assert.ok(cards.Energy > 0);
    return true;
  });
  assert.deepEqual([...problems], [], "the page complains");
});
