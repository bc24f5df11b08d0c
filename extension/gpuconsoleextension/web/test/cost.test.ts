import { describe, expect, test, vi } from "vitest";
import type { CostAnswer, CostGroup, CostLine } from "../src/api/types";
import { budgetTone, chosen, groupings, label, named, period, stack, stepsOf } from "../src/cost";
import { layers, reading, top } from "../src/chart/grid";
import { text, period as spanOf, type Unit } from "../src/format";

vi.stubGlobal("document", { documentElement: { dataset: {} } });
const { seriesAt, stackColumns } = await import("../src/chart/stack");

const seen = (t: string) => t.replace(/[\u202f\u00a0]/g, " ");
const fields = ["cluster", "namespace", "service", "tenant", "pod", "model", "host_type", "region", "capacity_type", "node_pool", "node_labels", "mig_profile"] as const;
const group = (over: Partial<CostGroup> = {}) => ({ ...Object.fromEntries(fields.map((f) => [f, over[f] ?? null])), price: null }) as CostGroup;
const line = (start: string, state: string, over: Partial<CostLine> = {}): CostLine => ({
  start, end: null, state, others: false, group: group(), time: 3600, used: null, idle: null, unmeasured: null, unplaced: 0, cost: null, idle_cost: null, priced_cost: null, shared_cost: null, unpriced: 0,
  energy: { board: 0, share: 0, integrated: 0 }, carbon: null, open: false, unknown_hours: false, contested: false, board_metered: false, estimated: false, ...over,
});
const tenant = (start: string, name: string, cost: number | null, over: Partial<CostLine> = {}) => line(start, "held", { group: group({ tenant: name }), cost, priced_cost: cost, ...over });
const answer = (lines: CostLine[], over: Partial<CostAnswer> = {}) => ({ from: "2026-11-21T00:00:00Z", to: "2026-11-21T14:05:09Z", currency: "USD", lines, freshness: { evaluated_at: "2026-11-21T14:05:09Z" }, ...over }) as CostAnswer;

test.each<[string, object]>([
  ["24h", { since: "24h" }],
  ["30d", { since: "30d" }],
  ["month", { from: "2026-01-01T00:00:00Z" }],
  ["last-month", { from: "2025-12-01T00:00:00Z", to: "2026-01-01T00:00:00Z" }],
])("the range %s", (range, wanted) => expect(period(range as "24h", Date.parse("2026-01-05T23:30:00Z"))).toEqual(wanted));

test("a choice that there is not is the first", () => {
  expect(chosen("model", groupings)).toBe("model");
  expect(chosen("<b>", groupings)).toBe("tenant");
  expect(chosen("hour", stepsOf("30d"))).toBe("day");
});

describe("the name of a group", () => {
  const l = line("2026-11-21T10:00:00Z", "held", { group: group({ cluster: "eu", namespace: "ml", service: "chat", tenant: "", capacity_type: "on_demand" }) });
  test("says where it is", () => expect(label(l, "service")).toBe("chat · ml · eu"));
  test("is absent where no key is known, and not an empty one", () => {
    expect(named(l, "tenant").name).toBeNull();
    expect(label(l, "tenant")).toBe("no tenant");
  });
  test("of capacity is in words", () => expect(named(l, "capacity").name).toBe("on demand"));
  test("of the others", () => expect(label({ ...l, others: true }, "service")).toBe("others"));
});

describe("the stack", () => {
  const lines = [
    tenant("2026-11-21T11:00:00Z", "a", 2),
    tenant("2026-11-21T11:00:00Z", "b", 3, { unknown_hours: true }),
    line("2026-11-21T11:00:00Z", "free", { cost: 1, priced_cost: 1 }),
    line("2026-11-21T11:00:00Z", "stranded", { cost: 0.5, priced_cost: 0.5 }),
    line("2026-11-21T11:00:00Z", "unknown", { cost: 0, priced_cost: 0, time: 0 }),
    tenant("2026-11-21T14:00:00Z", "a", null, { unpriced: 3600, open: true }),
    line("2026-11-21T14:00:00Z", "held", { others: true, cost: 4, priced_cost: 4 }),
  ];
  const { chart, grid } = stack(answer(lines), "tenant", "cost", "hour")!;
  const hour = (h: number) => grid.points - (15 - h);
  test("has the greatest groups, the others, then what nothing held", () => expect(chart.series.map((s) => s.name)).toEqual(["b", "a", "others", "not held"]));
  test("is on one grid to the hour that runs, and of a young store not of a day", () => {
    expect([grid.start, grid.end, grid.points]).toEqual(["2026-11-21T03:00:00.000Z", "2026-11-21T15:00:00.000Z", 12]);
  });
  test("has gaps, and no zeros, where nothing is known", () => {
    expect(chart.series[1]!.values[hour(11)]).toBe(2);
    expect(chart.series[1]!.values[hour(12)]).toBeNull();
    expect(chart.series[1]!.values[hour(14)]).toBeNull();
    expect(seen(reading(chart, hour(12), null))).toBe("no price");
  });
  test("has the sum of a step, and one group of it", () => {
    expect(seen(reading(chart, hour(11), null))).toBe("6.50 USD");
    expect(seen(reading(chart, hour(11), "a"))).toBe("a: 2.00 USD of 6.50 USD");
    expect(seen(reading(chart, hour(14), "a"))).toBe("a: no price of 4.00 USD");
  });
  test("marks hours that are open or unknown", () => expect([11, 12, 14].map((h) => chart.stacked!.marks[hour(h)])).toEqual(["unknown over 1 %", "", "open"]));
  test("has bars on top of each other", () => {
    const [first, second] = layers(chart.series);
    expect([first!.base[hour(11)], first!.end[hour(11)], second!.base[hour(11)], second!.end[hour(11)]]).toEqual([0, 3, 3, 5]);
    expect(first!.base[hour(12)]).toBeNull();
    expect(top(chart)).toBeGreaterThanOrEqual(6.5);
    expect([-1, 0, 2.9, 3, 6.4, 6.5].map((h) => seriesAt(chart, hour(11), h))).toEqual([null, 0, 0, 1, 3, null]);
    expect(stackColumns({ chart, range: grid })[0]![0]).toBe(Date.parse("2026-11-21T03:30:00Z") / 1000);
  });
  test("of hours is of time, whatever has a price", () => expect(stack(answer(lines), "tenant", "hours", "hour")!.chart.series.find((s) => s.name === "a")!.values[hour(14)]).toBe(1));
  test("of boards adds up what was held and what was not", () => {
    const h100 = (state: string) => line("2026-11-21T11:00:00Z", state, { group: group({ model: "H100" }), cost: 2, priced_cost: 2 });
    expect(stack(answer([h100("held"), h100("free")]), "model", "cost", "hour")!.chart.series.map((s) => [s.name, s.values.at(-4)])).toEqual([["H100", 4]]);
  });
  test("has no group of what there was none of", () => {
    const none = line("2026-11-21T11:00:00Z", "stranded", { group: group({ model: "" }), time: 0, cost: 0 });
    expect(stack(answer([none, line("2026-11-21T11:00:00Z", "held", { group: group({ model: "L4" }) })]), "model", "cost", "hour")!.chart.series.map((s) => s.name)).toEqual(["L4"]);
  });
  test("has what is spread with those that it is spread over", () => {
    const spread = stack(answer([tenant("2026-11-21T11:00:00Z", "a", 2, { shared_cost: 1 }), line("2026-11-21T11:00:00Z", "free", { cost: 1, priced_cost: 1, shared_cost: -1 })]), "tenant", "cost", "hour")!;
    expect(spread.chart.series.map((s) => [s.name, s.values.at(-4)])).toEqual([["a", 3]]);
  });
  test("of days", () => expect(stack(answer(lines), "tenant", "cost", "day")!.grid).toMatchObject({ start: "2026-11-21T00:00:00.000Z", points: 1, step: 86_400 }));
  test("of nothing is null", () => expect(stack(answer([]), "tenant", "cost", "hour")).toBeNull());
});

test.each<[number, Unit, string]>([
  [0, "money:USD", "0.00 USD"], [23.6, "money:USD", "23.60 USD"], [1234567.891, "money:EUR", "1,234,567.89 EUR"], [0.4214, "money:USD", "0.42 USD"], [0.00123, "money:USD", "0.0012 USD"], [1e-8, "money:USD", "<0.000001 USD"], [-2.5, "money:USD", "-2.50 USD"],
  [0, "h", "0 h"], [0.5714, "h", "0.571 h"], [2533.4, "h", "2,533 h"], [0.0001, "h", "<0.001 h"], [1.0286e6, "J", "1.03 MJ"], [228, "g", "228 g"], [1234, "g", "1.23 kg"], [0.4, "g", "0.4 g"], [0.00001, "J", "<0.001 J"],
])("%d %s is %s", (value, unit, want) => expect(seen(text(value, unit))).toBe(want));

test("an hour, and a day of UTC", () => {
  expect(spanOf(new Date("2026-11-21T00:00:00Z"), 86_400)).toBe("21 Nov UTC");
  expect(spanOf(new Date(2026, 10, 21, 14), 3600)).toBe("21 Nov 14:00");
});

test.each([[null, null], [0, "good"], [0.79, "good"], [0.8, "warn"], [1, "bad"], [1.2, "bad"]])("a budget of which %s is used is %s", (ratio, tone) => expect(budgetTone(ratio)).toBe(tone));
