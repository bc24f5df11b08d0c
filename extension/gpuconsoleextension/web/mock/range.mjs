// Charts: one grid, gaps where a pod was silent.
import { clamp, round, wave } from "./numbers.mjs";
import { iso } from "./world.mjs";

const steps = { "5m": 15, "30m": 15, "1h": 30, "24h": 300 };
const lengths = { "5m": 300, "30m": 1800, "1h": 3600, "24h": 86_400 };

/** The charts of a service; `silence(second, pod)` tells whether a pod had no data then. */
export function range(now, freshness, service, pods, window, by, plan, silence, most = 50) {
  const step = steps[window];
  const end = Math.floor(now / 1000 / step) * step;
  const points = Math.floor(lengths[window] / step) + 1;
  const start = end - (points - 1) * step;
  const times = Array.from({ length: points }, (_, i) => start + i * step);
  const members = pods.filter((p) => p.state !== "not_running" && p.state !== "warming");
  const load = plan?.load ?? 0.5;
  const memory = plan?.memory ?? 0.5;
  const capacity = service?.values.memory_total ?? members[0]?.values.memory_total ?? 80 * 1024 ** 3;
  const full = ((service?.values.power ?? 300) / Math.max(0.05, service?.values.utilization ?? load)) * 0.92;
  const value = {
    utilization: (u) => round(u),
    memory: (u) => Math.round(capacity * clamp(memory + (u - load) * 0.06)),
    tensor: (u) => round(u * 0.46),
    power: (u) => round(full * u + 40, 1),
  };
  const at = (pod, t) => (silence(t, pod) ? null : clamp(wave(`${pod}/${service?.service}`, load, load > 0.05 && load < 0.9 ? 0.17 : 0.015, t)));
  const names = members.map((p) => p.pod);
  const shown = by === "pod" ? names.slice(0, most) : names;
  const lines = shown.map((name) => times.map((t) => at(name, t)));
  const chart = (key, unit) => ({
    unit,
    series: by === "pod" ? shown.map((name, i) => ({ name, values: lines[i].map((u) => (u === null ? null : value[key](u))), pods: null })) : meanSeries(service?.service ?? "", lines, times, value[key]),
    limit: key === "memory" && by === "service" && names.length ? times.map(() => capacity) : null,
  });
  return {
    freshness, window, by, start: iso(start * 1000), end: iso(end * 1000), step, points,
    charts: { utilization: chart("utilization", "1"), memory: chart("memory", "By"), tensor: chart("tensor", "1"), power: chart("power", "W") },
    truncated: by === "pod" ? Math.max(0, names.length - shown.length) : 0,
  };
}

function meanSeries(name, lines, times, value) {
  if (!lines.length) return [];
  const counts = times.map((_, i) => lines.filter((l) => l[i] !== null).length);
  return [{ name, values: times.map((_, i) => (counts[i] ? value(lines.reduce((sum, l) => sum + (l[i] ?? 0), 0) / counts[i]) : null)), pods: counts }];
}
