import { describe, expect, test } from "vitest";
import type { Chart } from "../src/api/types";
import { fitted, gaps, isolated, moments, quarters, top } from "../src/chart/grid";

const chart = (unit: Chart["unit"], values: (number | null)[], limit: (number | null)[] | null = null): Chart => ({ unit, series: [{ name: "a", values, pods: null }], limit });

test("moments lie on the grid", () => expect(moments({ start: "2026-11-21T14:00:00Z", step: 30, points: 3 })).toEqual([1795269600, 1795269630, 1795269660]));

describe("gaps are gaps", () => {
  test.each([
    [[[1, 2, 3]], []],
    [[[1, null, 3]], [[1, 1]]],
    [[[null, null, 3]], [[0, 1]]],
    [[[1, null, null]], [[1, 2]]],
    [[[null, null, null]], [[0, 2]]],
    [[[1, null, 0]], [[1, 1]]], // zero is data
    [[[1, null, 3], [1, 2, 3]], []], // one line goes on
    [[[1, null, 3], [null, null, 3]], [[1, 1]]],
    [[], [[0, 2]]],
  ])("%j has %j", (series, runs) => expect(gaps(series, 3)).toEqual(runs));
});

test("what is missing at the end is no data", () => expect(fitted([1, Number.NaN], 3)).toEqual([1, null, null]));

test("a value between two gaps is a dot", () => {
  expect(isolated([1, null, 2, null, 3, 4, null, 5])).toEqual([0, 2, 7]);
  expect(isolated([null, null])).toEqual([]);
  expect(isolated([0])).toEqual([0]);
});

describe("the top of the axis", () => {
  test.each([
    ["1", [0.03], null, 1],
    ["By", [59 * 1024 ** 3], [80 * 1024 ** 3], 100 * 1024 ** 3],
    ["By", [null], null, 1024 ** 3],
    ["W", [438], null, 500],
    ["W", [1820], null, 2000],
    ["W", [0], null, 100],
    ["W", [null], null, 100],
    ["Cel", [41], null, 100],
    ["Cel", [104], null, 120],
    ["Hz", [1.98e9], null, 2.4e9],
    ["Hz", [0], null, 1e9],
  ] as const)("%s %j is %d", (unit, values, limit, expected) => expect(top(chart(unit, [...values], limit ? [...limit] : null))).toBe(expected));

  test("is never below what is drawn", () => {
    for (let v = 1; v < 1e7; v *= 1.37) expect(top(chart("W", [v]))).toBeGreaterThanOrEqual(v);
  });
  test("quarters", () => expect(quarters(100)).toEqual([0, 25, 50, 75, 100]));
});
