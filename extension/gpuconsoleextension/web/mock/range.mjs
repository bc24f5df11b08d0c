// Charts: one grid, gaps where a pod was silent.
import { inferenceCharts } from "./inference.mjs";
import { clamp, round, wave } from "./numbers.mjs";
import { iso } from "./world.mjs";

const steps = { "5m": 15, "30m": 15, "1h": 30, "24h": 300 };
const lengths = { "5m": 300, "30m": 1800, "1h": 3600, "24h": 86_400 };

function gridOf(now, window) {
  const step = steps[window];
  const end = Math.floor(now / 1000 / step) * step;
  const points = Math.floor(lengths[window] / step) + 1;
  const start = end - (points - 1) * step;
  return { step, points, start, end, times: Array.from({ length: points }, (_, i) => start + i * step) };
}

/** The charts of devices; `silence(second, device)` tells whether a device had no data then. */
export function deviceRange(now, freshness, devices, window, silence, most = 50) {
  const { step, points, start, end, times } = gridOf(now, window);
  const all = devices.filter((d) => !d.id.includes("::"));
  const shown = all.slice(0, most);
  const chart = (unit, value, limit) => ({
    unit,
    series: shown.map((d) => ({ name: d.id, pods: null, values: times.map((t) => (silence(t, d) ? null : value(d, clamp(wave(d.id, d.values.utilization ?? 0, (d.values.utilization ?? 0) > 0.05 ? 0.15 : 0.01, t))))) })),
    limit: limit !== undefined && shown.length && new Set(shown.map(limit)).size === 1 && limit(shown[0]) !== null ? times.map(() => limit(shown[0])) : null,
  });
  const part = (d, v) => (d.parent === null ? v : null);
  return {
    freshness, window, start: iso(start * 1000), end: iso(end * 1000), step, points,
    devices: shown.map(({ id, parent, index, mig_profile, mig_instance, partition }) => ({ id, parent, index, mig_profile, mig_instance, partition })),
    charts: {
      utilization: chart("1", (d, u) => (d.values.utilization === null ? null : round(u))),
      memory: chart("By", (d) => d.values.memory_used, (d) => d.values.memory_total),
      power: chart("W", (d, u) => part(d, round(40 + (d.power_limit ?? 300) * u * 0.85, 1)), (d) => d.power_limit),
      temperature: chart("Cel", (d, u) => part(d, Math.round(34 + u * 42))),
      clock: chart("Hz", (d, u) => part(d, Math.round(345 + u * 1600) * 1e6)),
      throttle: chart("1", (d, u) => part(d, d.throttle.length && u > 0.5 ? 1 : 0)),
    },
    truncated: all.length - shown.length,
  };
}

/** The charts of a service; `silence(second, pod)` tells whether a pod had no data then. */
export function range(now, freshness, service, pods, window, by, plan, silence, most = 50) {
  const { step, points, start, end, times } = gridOf(now, window);
  const members = pods.filter((p) => p.state !== "not_running" && p.state !== "warming");
  const load = plan?.load ?? 0.5;
  const memory = plan?.memory ?? 0.5;
  const capacity = service?.values.memory_total ?? members[0]?.values.memory_total ?? 80 * 1024 ** 3;
  const full = ((service?.values.power ?? 300) / Math.max(0.05, service?.values.utilization ?? load)) * 0.92;
  const value = {
    utilization: (u) => round(u),
    memory: (u) => Math.round(capacity * clamp(memory + (u - load) * 0.06)),
    tensor: (u) => (service?.not_measured.includes("tensor") ? null : round(u * 0.46)),
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
    charts: { utilization: chart("utilization", "1"), memory: chart("memory", "By"), tensor: chart("tensor", "1"), power: chart("power", "W"), ...(service?.inference && inferenceCharts({ engine: service.inference.engines[0] }, by === "pod" ? shown : [service.service], times)) },
    truncated: by === "pod" ? Math.max(0, names.length - shown.length) : 0,
  };
}

function meanSeries(name, lines, times, value) {
  if (!lines.length) return [];
  const counts = times.map((_, i) => lines.filter((l) => l[i] !== null).length);
  return [{ name, values: times.map((_, i) => (counts[i] ? value(lines.reduce((sum, l) => sum + (l[i] ?? 0), 0) / counts[i]) : null)), pods: counts }];
}
