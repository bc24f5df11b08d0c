import type { Drawable, Grid, Series } from "../api/types";
import { plural, safe, text } from "../format";

/** The moments of a range, in seconds: every series lies on them. */
export function moments(range: Pick<Grid, "start" | "step" | "points">): number[] {
  const start = Date.parse(range.start) / 1000;
  return Array.from({ length: range.points }, (_, i) => start + i * range.step);
}

/** Exactly so many values: what is missing at the end is no data. */
export function fitted(values: readonly (number | null)[], length: number): (number | null)[] {
  return Array.from({ length }, (_, i) => {
    const v = values[i];
    return v === undefined || v === null || !Number.isFinite(v) ? null : v;
  });
}

/** Runs of moments at which no series has a value: first and last index. */
export function gaps(series: readonly (readonly (number | null)[])[], length: number): [number, number][] {
  const runs: [number, number][] = [];
  let from = -1;
  for (let i = 0; i <= length; i++) {
    const empty = i < length && series.every((values) => values[i] === null || values[i] === undefined);
    if (empty && from < 0) from = i;
    if (!empty && from >= 0) {
      runs.push([from, i - 1]);
      from = -1;
    }
  }
  return runs;
}

/** Values with no neighbour: a line through them would not be seen, so they are drawn as dots. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const none = (i: number) => i < 0 || i >= values.length || values[i] === null || values[i] === undefined;
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) if (!none(i) && none(i - 1) && none(i + 1)) found.push(i);
  return found;
}

/** The top of the vertical axis: what the values can reach where that is known, else a round number above them. */
export function top(chart: Drawable): number {
  if (chart.unit === "1") return 1;
  let highest = 0;
  if (chart.stacked) highest = Math.max(0, ...layers(chart.series).flatMap((l) => l.end.map((v) => v ?? 0)));
  else for (const s of chart.series) for (const v of s.values) if (v !== null && v > highest) highest = v;
  for (const v of chart.limit ?? []) if (v !== null && v > highest) highest = v;
  if (highest === 0) return { By: 1024 ** 3, Hz: 1e9, s: 1 }[chart.unit as string] ?? 100;
  const above = round(highest * 1.04, chart.unit === "By" ? 1024 : 1000);
  return chart.unit === "Cel" ? Math.max(100, above) : above;
}

function round(value: number, base: number): number {
  const scale = base ** Math.max(0, Math.floor(Math.log(value) / Math.log(base)));
  const rest = value / scale; // 1 to below base
  const ten = 10 ** Math.floor(Math.log10(rest));
  for (const step of [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10]) if (rest <= step * ten) return step * ten * scale;
  return value;
}

/** Where the vertical axis is labelled: quarters of its top. */
export const quarters = (max: number): number[] => [0, max / 4, max / 2, (max * 3) / 4, max];

/** What a chart calls its latest value where something else on the page says it too. */
export interface Latest {
  value: number | null;
  pods: number | null;
  stale: boolean;
}

/** What a chart says at one moment, in words; null is its last one, whether or not there is data. */
export function reading(chart: Drawable, at: number | null, focus: string | null, latest?: Latest, line = "pod"): string {
  if (chart.series.length === 0) return "no data";
  const index = at ?? chart.series[0]!.values.length - 1;
  if (at === null && latest) {
    if (latest.value === null) return `no data${latest.pods === 0 ? ", no pod reports" : ""}`;
    return `${text(latest.value, chart.unit)}${latest.pods !== null ? `, mean of ${plural(latest.pods, "pod")}` : ""}${latest.stale ? ", stale" : ""}`;
  }
  const series = chart.series.find((s) => s.name === focus) ?? (chart.series.length === 1 ? chart.series[0] : undefined);
  if (chart.stacked) return stackReading(chart, index, series);
  if (!series) {
    const values = chart.series.map((s) => s.values[index]).filter((v): v is number => v !== null && v !== undefined);
    if (!values.length) return "no data";
    const [least, most] = [text(Math.min(...values), chart.unit), text(Math.max(...values), chart.unit)];
    return `${least === most ? least : `${least} to ${most}`}, ${plural(values.length, line)}`;
  }
  const value = series.values[index] ?? null;
  const name = chart.series.length > 1 ? `${safe(series.name)}: ` : "";
  const pods = series.pods?.[index];
  if (value === null) return `${name}no data${pods === 0 ? ", no pod reports" : ""}`;
  return `${name}${text(value, chart.unit)}${pods ? `, mean of ${plural(pods, "pod")}` : ""}`;
}

/** Where the bars of a series begin and end at each step, above those before it; null where nothing is known of a step. */
export interface Layer {
  base: (number | null)[];
  end: (number | null)[];
}

/** Series on top of each other. A series without a value leaves no room; a step without any has no bar. */
export function layers(series: readonly Series[]): Layer[] {
  const known = (i: number) => series.some((s) => s.values[i] != null);
  let below: (number | null)[] | undefined;
  return series.map((s) => {
    const base = below ?? s.values.map((_, i) => (known(i) ? 0 : null));
    const end = base.map((v, i) => (v === null ? null : v + (s.values[i] ?? 0)));
    below = end;
    return { base, end };
  });
}

/** What a stack shows of one step: one series and the whole, or the whole alone. */
function stackReading(chart: Drawable, index: number, series: Series | undefined): string {
  const absent = chart.stacked!.absent;
  const values = chart.series.map((s) => s.values[index]).filter((v): v is number => v != null);
  const whole = values.length ? text(values.reduce((sum, v) => sum + v, 0), chart.unit) : absent;
  if (!series || chart.series.length === 1) return whole;
  const value = series.values[index];
  return `${safe(series.name)}: ${value == null ? absent : text(value, chart.unit)} of ${whole}`;
}
