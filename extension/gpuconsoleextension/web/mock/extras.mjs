// What a fleet has besides plain pods on plain GPUs: MIG, sharing, lost devices, errors.
import { device, healthOf, unknownHealth, finishNode, noGauges, noValues, told, values } from "./world.mjs";

const second = (now) => Math.floor(now / 1000);

/** A node whose first two GPUs are split into MIG instances. */
export function migNode(now) {
  const name = "gpu-a100-mig-01";
  const devices = [];
  for (let g = 0; g < 4; g++) {
    const split = g < 2;
    const d = device(now, name, g, "a100", split ? { state: "split", values: { ...noValues, utilization: null, memory_used: 31 * 1024 ** 3, memory_total: 80 * 1024 ** 3, power: 188 + 40 * g }, temperature: 51, idle: null } : {});
    devices.push(d);
    if (!split) continue;
    for (const [i, [profile, share, held]] of [["3g.40gb", 0.5, true], ["2g.20gb", 0.25, g === 0], ["1g.10gb", 0.125, true], ["1g.10gb", 0.125, false]].entries()) {
      devices.push(device(now, name, g, "a100", {
        id: `${d.id}/${i + 1}`, parent: d.id, mig_profile: profile, mig_instance: String(i + 1), state: held ? "held" : "free", idle: false,
        holders: held ? [{ namespace: "research", service: "mig-tutorials", pod: `mig-tutorials-${g}${i}`, container: "jupyter", share: 1, sharing: "none", source: "pod_resources" }] : [],
        values: held ? { ...values(`${name}/${g}/${i}`, "a100", 0.4, 0.5, second(now), share), power: null } : { ...noValues, utilization: 0, memory_used: 0, memory_total: 80 * 1024 ** 3 * share },
        ...noGauges, power_limit: null,
      }));
    }
  }
  return finishNode(now, { cluster: "eu-west-1", node: name, state: "ok", exporter: "up", schedulable: true, mig_reconfiguring: false, devices });
}

/** A node whose first board is divided into partitions. */
export function partitionedNode(now) {
  const name = "gpu-mi300x-cpx-01";
  const mode = { partition_profile: "cpx_nps4" };
  const boards = [0, 1].map((g) => device(now, name, g, "mi300x", g === 0 ? { state: "split", ...mode, values: { ...noValues, utilization: 0.41, memory_used: 61 * 1024 ** 3, memory_total: 192 * 1024 ** 3, power: 412 }, temperature: 58 } : {}));
  const parts = Array.from({ length: 8 }, (_, i) =>
    device(now, name, 0, "mi300x", {
      id: `${boards[0].id}/${i}`, parent: boards[0].id, partition: String(i), ...mode, state: i < 6 ? "held" : "free", idle: false,
      holders: i < 6 ? [{ namespace: "research", service: "rocm-tutorials", pod: `rocm-tutorials-${i}`, container: "jupyter", share: 1, sharing: "none", source: "pod_resources" }] : [],
      values: i < 6 ? { ...values(`${name}/${i}`, "mi300x", 0.4, 0.4, second(now), 0.125), power: null } : { ...noValues, utilization: 0, memory_used: 0, memory_total: 24 * 1024 ** 3 },
      ...noGauges, power_limit: null,
    }),
  );
  return finishNode(now, { cluster: "eu-west-1", node: name, state: "ok", exporter: "up", schedulable: true, mig_reconfiguring: null, devices: [boards[0], ...parts, boards[1]] });
}

/** A node whose GPU is shared by time-slicing. */
export function sharedNode(now) {
  const name = "gpu-l4-shared-01";
  const holder = (n) => ({ namespace: "inference", service: "rerank", pod: `rerank-shared-${n}`, container: "main", share: 0.25, sharing: "time_slicing", source: "pod_resources" });
  const d = device(now, name, 0, "l4", { state: "held", idle: false, holders: [holder(0), holder(1), holder(2)], values: values(`${name}/0`, "l4", 0.52, 0.7, second(now)), temperature: 58 });
  const shares = [0, 1, 2].map((n) => ({ ...d, health: null, id: `${d.id}::${n}`, parent: d.id, holders: [holder(n)], values: { ...d.values, memory_used: null, memory_total: null, power: null }, ...noGauges, power_limit: null }));
  return finishNode(now, { cluster: "eu-west-1", node: name, state: "ok", exporter: "up", schedulable: false, mig_reconfiguring: null, devices: [d, ...shares] });
}

/** A machine without Kubernetes: who has its GPUs is not known. */
export function bareNode(now, name) {
  const devices = [0.83, 0.12].map((load, g) => device(now, name, g, "l4", { state: "unknown", values: values(`${name}/${g}`, "l4", load, 0.6 - g * 0.4, second(now)), temperature: 68 - 20 * g }));
  return finishNode(now, { cluster: null, node: name, state: "ok", exporter: "up", schedulable: null, mig_reconfiguring: null, devices });
}

/** A node that fell silent. */
export function lostNode(now, cluster = "us-east-1") {
  const name = "gpu-h200-us-07";
  const devices = Array.from({ length: 8 }, (_, g) => device(now, name, g, "h200", { state: "unknown", values: { ...noValues }, ...noGauges, ...told(now, 754, 45) }));
  return finishNode(now, { cluster, node: name, state: "lost", exporter: "unknown", schedulable: true, mig_reconfiguring: null, devices });
}

/** Errors and heat on a node that is otherwise well. */
export function trouble(now, n) {
  const [a, b, c, d] = n.devices;
  a.xid = 94;
  a.xid_errors = [{ code: "94", count: 2, lower_bound: false }];
  a.uncorrected_errors = 1;
  b.throttle = ["hw_thermal"];
  b.temperature = 88;
  Object.assign(c, { state: "lost", values: { ...noValues }, ...noGauges, ...told(now, 201, 45) });
  c.health = { ...unknownHealth, watched_since: c.health.watched_since };
  a.health = healthOf(now, a.id, [["ecc_uncorrected", "degraded", "reset_gpu", "1 uncorrected ECC error since the driver was loaded.", 1, null]]);
  a.remapped_rows = 2;
  a.remapped_rows_rise = 1;
  b.health = healthOf(now, b.id, [["throttle", "degraded", "check_mechanics", "Heat held the clocks down for 80 % of 10 minutes.", 0.8, 0.5]]);
  d.health = healthOf(now, d.id, [["sram_worn", "failed", "rma", "SRAM has more uncorrectable errors than the board may have."], ["nvlink_errors", "degraded", "reset_gpu", "140 CRC errors a second on NVLink.", 140, 100]]);
  d.corrected_errors = 1234;
  d.straggler = "link";
  return finishNode(now, n);
}
