// What gpu_scheduling reports of the mock's nodes, as the API answers it.
import { iso } from "./world.mjs";

/** Free, stranded and waiting devices: every free device of a node counts, those of one node in five are cordoned. */
export function capacity(query, now, world, fresh, page) {
  const size = Number(query.get("size") ?? 8);
  const show = query.get("show") ?? "fit";
  const q = (query.get("q") ?? "").toLowerCase();
  const all = world.bare ? [] : world.nodes.map((n, i) => {
    const { devices: allocatable, free } = n.counts;
    const stranded = i % 5 === 4 ? free : 0;
    return { cluster: n.cluster, node: n.node, resource: n.devices[0]?.vendor === "AMD" ? "amd.com/gpu" : "nvidia.com/gpu", model: n.devices[0]?.model ?? null, allocatable, requested: allocatable - free, free, stranded, fits: Math.floor((free - stranded) / size), schedulable: i % 5 !== 4 };
  });
  const pools = new Map();
  for (const n of all) {
    const key = `${n.cluster}\n${n.resource}\n${n.model}`;
    if (!pools.has(key)) pools.set(key, { cluster: n.cluster, resource: n.resource, model: n.model, allocatable: 0, requested: 0, free: 0, stranded: 0, stranded_by: [], fits: 0, fit_nodes: 0, requests: [], fragmentation: null });
    const p = pools.get(key);
    for (const k of ["allocatable", "requested", "free", "stranded", "fits"]) p[k] += n[k];
    p.fit_nodes += n.fits > 0 ? 1 : 0;
  }
  for (const p of pools.values()) {
    if (p.stranded) p.stranded_by = [{ reason: "cordoned", devices: p.stranded }];
    if (p.free) p.fragmentation = 0.25;
  }
  const pending = world.services.filter((s) => s.pods.pending);
  const waiting = pending.map((s, i) => ({ cluster: s.cluster, namespace: s.namespace, queue: i ? null : "team-a", reason: "insufficient_gpu", resource: "nvidia.com/gpu", pods: s.pods.pending, devices: s.pods.pending * 8, oldest: 5400 + i }));
  const wanted = { fit: (n) => n.fits > 0, stranded: (n) => n.stranded > 0, free: (n) => n.free > 0, all: () => true }[show];
  const { list, next, total } = page(all.filter((n) => wanted(n) && n.node.includes(q)).sort((a, b) => b.fits - a.fits || b.free - a.free));
  return {
    freshness: fresh, size, reason: all.length ? null : "no_scheduling", silent: world.silentCapacity ? [{ cluster: "us-east-1", last: iso(now - 900_000) }] : [],
    pools: [...pools.values()], waiting, waiting_total: waiting.length,
    hints: waiting.length ? [{ cluster: waiting[0].cluster, resource: "nvidia.com/gpu", text: "40 devices of nvidia.com/gpu are free, and pods wait for 16 (16 insufficient gpu). Stranded: 8 cordoned." }] : [],
    nodes: list, nodes_known: all.length > 0, total, next,
  };
}
