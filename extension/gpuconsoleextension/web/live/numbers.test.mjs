// Every number of the API, on both engines, is PromQL's and the simulator's: of a
// fleet whose pages stand still. The second engine reads the embedded one's own
// Prometheus API, and a Prometheus server that prometheus_remote_write feeds.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../browser/browser.mjs";
import { eventually, pod, World } from "./world.mjs";

const world = new World();
let fleet, collector, prometheus, truth;
const MiB = 1 << 20;

before(async () => {
  const node = (name, pods) => ({ name, version: "4.6", model: "H100", devices: 2, fields: "all", pod_labels: true, pods });
  fleet = await world.fleet([node("gpu-a", [pod("chat", "chat-0", ["0", "1"])]), node("gpu-b", [pod("chat", "chat-1", ["0"]), pod("rank", "rank-0", ["1"], { load: "idle" })])]);
  prometheus = await world.prometheus();
  collector = await world.collector({
    exporters: fleet.exporters,
    more: {
      // Pages that stand still on purpose are no frozen exporter's.
      receivers: { dcgm: { frozen_after: 1_000_000 } },
      exporters: {
        prometheus_remote_write: {
          endpoint: `${prometheus.url}/api/v1/write`,
          translation_strategy: "UnderscoreEscapingWithSuffixes",
          disable_scope_info: true,
          resource_to_telemetry_conversion: { enabled: true },
          target_info: { enabled: false },
          tls: { insecure: true },
        },
      },
      service: { pipelines: { "metrics/prometheus": { exporters: ["prometheus", "gpu_store", "prometheus_remote_write"] } } },
    },
  });
  await eventually("all pods are settled", async () => (await collector.api("services")).services.reduce((n, s) => n + (s.pods.reporting ?? 0), 0) === 3);
  // Frozen within one second of the simulator's, so that the truth is of that page.
  await eventually("the fleet stands still", async () => {
    const first = await fleet.truth();
    const faults = [];
    for (const name of ["gpu-a", "gpu-b"]) faults.push((await fleet.fault({ node: name, kind: "exporter_frozen" })).id);
    truth = await fleet.truth();
    if (Math.floor(first.elapsed_seconds) === Math.floor(truth.elapsed_seconds)) return true;
    for (const id of faults) await fleet.end(id);
    return false;
  });
  const utilization = async () => JSON.stringify((await collector.api("services")).services.map((s) => [s.values, s.pods]));
  let last, same = 0;
  await eventually("the numbers stand still", async () => {
    const now = await utilization();
    same = now === last ? same + 1 : 0;
    last = now;
    await new Promise((done) => setTimeout(done, 800));
    return same > 8;
  });
});
after(() => world.end());

const near = (got, want, tolerance, what) => assert.ok(got !== null && Math.abs(got - want) <= tolerance, `${what}: ${got} is not ${want}`);

async function promql(query) {
  const { data } = await fetch(`${collector.store}/api/v1/query?${new URLSearchParams({ query })}`).then((r) => r.json());
  assert.equal(data.result.length, 1, `${query}: ${JSON.stringify(data.result)}`);
  return Number(data.result[0].value[1]);
}

async function compare({ api }) {
  const { services } = await api("services");
  assert.deepEqual(services.map((s) => s.service).sort(), ["chat", "rank"]);
  for (const s of services) {
    const of = `{k8s_namespace_name="inference",service_name="${s.service}"}`;
    const real = truth.services.find((t) => t.name === s.service);
    assert.equal(s.values.utilization, await promql(`gpu_service_utilization_ratio${of}`));
    assert.equal(s.totals.memory_used, await promql(`gpu_service_memory_usage_bytes${of}`));
    assert.equal(s.totals.power, await promql(`gpu_service_power_watts${of}`));
    assert.equal(s.pods.reporting, await promql(`gpu_service_pods{gpu_pod_state="reporting",service_name="${s.service}"}`));
    near(s.values.utilization, real.utilization, 0.006, `utilization of ${s.service}`);
    near(s.totals.memory_used, real.memory_used_mib * MiB, MiB, `memory of ${s.service}`);
    near(s.totals.power, real.power_watts, 0.01, `power of ${s.service}`);
    assert.equal(s.pods.total, real.pods.length);
    const named = { namespace: "inference", service: s.service };
    const { service } = await api("service", named);
    assert.deepEqual(service.values, s.values);
    const { pods } = await api("pods", named);
    assert.deepEqual(pods.map((p) => p.pod).sort(), real.pods.map((p) => p.name).sort());
    for (const p of pods) {
      const one = real.pods.find((t) => t.name === p.pod);
      assert.equal(p.node, one.node);
      near(p.values.utilization, one.utilization, 0.006, `utilization of ${p.pod}`);
      near(p.values.memory_used, one.memory_used_mib * MiB, MiB, `memory of ${p.pod}`);
      near(p.values.power, one.power_watts, 0.01, `power of ${p.pod}`);
    }
  }
  const { nodes } = await api("nodes");
  assert.deepEqual(nodes.map((n) => n.node).sort(), truth.nodes.map((n) => n.name));
  for (const n of nodes) {
    for (const d of n.devices) {
      const real = truth.nodes.find((t) => t.name === n.node).devices.find((t) => t.uuid === d.id);
      const of = `{hw_id="${d.id}"}`;
      assert.equal(d.values.memory_used, await promql(`hw_gpu_memory_usage_bytes${of}`));
      assert.equal(d.values.power, await promql(`hw_power_watts${of}`));
      near(d.values.utilization, real.utilization, 0.006, `utilization of ${d.id}`);
      near(d.values.memory_used, real.memory_used_mib * MiB, MiB, `memory of ${d.id}`);
      near(d.values.power, real.power_watts, 0.01, `power of ${d.id}`);
      near(d.temperature, real.temperature_celsius, 1, `temperature of ${d.id}`);
      assert.equal(d.holders[0].pod, real.pod);
    }
  }
}

test("every number is PromQL's and the simulator's: embedded engine", () => compare(collector));

test("and the same through a Prometheus API: engine prometheus", async () => compare(await world.reader(collector.store)));

test("and of a Prometheus server fed by prometheus_remote_write, on the same page", async () => {
  const reader = await world.reader(prometheus.url);
  await compare(reader);
  const browser = await launch();
  try {
    const { page, problems } = await open(browser, { clock: false });
    await page.goto(reader.url);
    for (const service of ["chat", "rank"]) await page.getByRole("link", { name: service }).first().waitFor();
    assert.match(await page.textContent("body"), /store: prometheus/);
    assert.deepEqual([...problems], []);
  } finally {
    await browser.close();
  }
});
