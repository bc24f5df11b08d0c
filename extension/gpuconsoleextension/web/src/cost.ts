import type { CostAnswer, CostLine, Drawable, Grid } from "./api/types";
import { safe } from "./format";
import type { Look } from "./chart/stack";

/** What usage is grouped by, over which time, in which steps: the first of each unless another is chosen. */
export const groupings = ["tenant", "namespace", "service", "model", "capacity", "node_pool"] as const;
export type Grouping = (typeof groupings)[number];
export const groupingNames: Record<Grouping, string> = { tenant: "Tenant", namespace: "Namespace", service: "Service", model: "Model", capacity: "Capacity", node_pool: "Node pool" };

export const ranges = ["24h", "7d", "30d", "month", "last-month"] as const;
export type RangeName = (typeof ranges)[number];
export const rangeNames: Record<RangeName, string> = { "24h": "24 hours", "7d": "7 days", "30d": "30 days", month: "This month", "last-month": "Last month" };

export const steps = ["hour", "day"] as const;
export type StepName = (typeof steps)[number];

export const measures = ["cost", "hours"] as const;
export type Measure = (typeof measures)[number];

/** One of some choices, or the first of them. */
export const chosen = <T extends string>(text: string, among: readonly T[], otherwise: T = among[0]!): T => (among.includes(text as T) ? (text as T) : otherwise);

/** The parameters of a range: months are those of UTC, as hours and days of usage are. */
export function period(range: RangeName, now: number): { since?: string; from?: string; to?: string } {
  if (range !== "month" && range !== "last-month") return { since: range };
  const at = new Date(now);
  const month = (n: number) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + n, 1)).toISOString().replace(".000Z", "Z");
  return range === "month" ? { from: month(0) } : { from: month(-1), to: month(0) };
}

/** The steps that a range can have: hours of a week at most. */
export const stepsOf = (range: RangeName): readonly StepName[] => (range === "24h" ? ["hour"] : range === "7d" ? ["day", "hour"] : ["day"]);

/** Whether groups are of boards: then what has no owner is grouped too. */
export const ofBoards = (by: Grouping): boolean => by === "model" || by === "capacity" || by === "node_pool";

const absent: Record<Grouping, string> = {
  tenant: "no key of tenant.from is on its devices",
  namespace: "outside of Kubernetes",
  service: "the owner is in no service",
  model: "the board’s model is not known",
  capacity: "the node does not report its type of capacity",
  node_pool: "the node is in no pool",
};

/** The name of a group, and what stands below it; null, and why, where it has none. */
export function named(line: CostLine, by: Grouping): { name: string | null; why: string; under: string[] } {
  const g = line.group;
  const field = { tenant: g.tenant, namespace: g.namespace, service: g.service, model: g.model, capacity: g.capacity_type, node_pool: g.node_pool }[by];
  const name = by === "capacity" ? field && field.replaceAll("_", " ") : field;
  const under = (by === "service" ? [g.namespace, g.slurm_cluster ?? g.cluster] : by === "namespace" ? [g.slurm_cluster ?? g.cluster] : by === "node_pool" ? [g.cluster] : []).filter((s): s is string => !!s);
  return { name: name || null, why: absent[by], under };
}

/** A name that distinguishes groups in a chart's legend. */
export function label(line: CostLine, by: Grouping): string {
  if (line.others) return "others";
  const { name, under } = named(line, by);
  return [name === null ? `no ${groupingNames[by].toLowerCase()}` : safe(name), ...under.map(safe)].join(" · ");
}

/** What a chart shows of a line, in the currency or in hours; null where nothing of it is known. */
const amount = (line: CostLine, what: Measure): number | null => (what === "hours" ? line.time / 3600 : line.time === 0 ? 0 : line.priced_cost === null ? null : line.priced_cost + (line.shared_cost ?? 0));

/** At least so many steps are drawn, so that a young store has no bar as wide as the page. */
const least = 12;

/** The chart of lines by step: eight groups, the others, and what has no owner. */
export function stack(answer: CostAnswer, by: Grouping, what: Measure, step: StepName): { chart: Drawable; grid: Grid } | null {
  const seconds = step === "hour" ? 3600 : 86_400;
  const at = (time: string | null) => Math.floor((time === null ? 0 : Date.parse(time)) / 1000 / seconds);
  const first = answer.lines.reduce((min, l) => Math.min(min, at(l.start)), Infinity);
  if (first === Infinity) return null;
  const end = Math.max(Math.ceil(Date.parse(answer.to ?? answer.freshness.evaluated_at) / 1000 / seconds), first + 1);
  const start = Math.max(at(answer.from), Math.min(first, end - least));
  const points = end - start;
  const marks = Array.from({ length: points }, () => "");
  const found = new Map<string, { look: Look; values: (number | null)[]; time: number }>();
  for (const line of answer.lines) {
    const board = ofBoards(by);
    const held = line.state === "held";
    const name = board || held ? label(line, by) : line.state === "unknown" ? "unknown" : "not held";
    const look: Look = line.others ? "others" : board || held ? "hue" : line.state === "unknown" ? "unknown" : "unowned";
    const value = amount(line, what);
    const i = at(line.start) - start;
    if (i < 0 || i >= points) continue;
    marks[i] = [line.open ? "open" : "", line.unknown_hours ? "unknown over 1 %" : ""].filter(Boolean).join(", ") || marks[i]!;
    const key = `${look}\n${name}`;
    if (!found.has(key)) found.set(key, { look, values: Array.from({ length: points }, () => null), time: 0 });
    const series = found.get(key)!;
    series.time += line.time;
    const { values } = series;
    if (value !== null) values[i] = (values[i] ?? 0) + value;
  }
  const whole = (values: (number | null)[]) => values.reduce<number>((sum, v) => sum + (v ?? 0), 0);
  const order: Look[] = ["hue", "others", "unowned", "unknown"];
  const drawn = [...found].filter(([, s]) => s.time > 0 && (s.look === "hue" || whole(s.values) > 0)).sort(([, a], [, b]) => order.indexOf(a.look) - order.indexOf(b.look) || whole(b.values) - whole(a.values));
  return {
    chart: {
      unit: what === "cost" && answer.currency ? `money:${answer.currency}` : "h",
      limit: null,
      series: drawn.map(([key, s]) => ({ name: key.slice(key.indexOf("\n") + 1), values: s.values, pods: null })),
      stacked: { absent: what === "cost" ? "no price" : "no data", looks: drawn.map(([, s]) => s.look), marks },
    },
    grid: { start: new Date(start * seconds * 1000).toISOString(), end: new Date(end * seconds * 1000).toISOString(), step: seconds, points, window: step },
  };
}

/** How a budget is doing: over it, near it, or within; null where it is not known. */
export const budgetTone = (ratio: number | null): "bad" | "warn" | "good" | null => (ratio === null ? null : ratio >= 1 ? "bad" : ratio >= 0.8 ? "warn" : "good");
