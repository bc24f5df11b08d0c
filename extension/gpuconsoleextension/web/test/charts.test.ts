import { describe, expect, test, vi } from "vitest";
import type { Chart, DeviceRange, Status, WindowName } from "../src/api/types";
import { begin } from "../src/parts/bars";

vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("addEventListener", () => {});
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
vi.stubGlobal("document", { documentElement: { dataset: {} }, hidden: false, addEventListener: () => {} });
const { chosenWindow, windowOf } = await import("../src/preferences");
const { named } = await import("../src/views/Charts");
const { reading } = await import("../src/chart/grid");

const chart = (unit: Chart["unit"], series: Chart["series"]): Chart => ({ unit, series, limit: null });
const line = (name: string, values: (number | null)[], pods: number[] | null = null) => ({ name, values, pods });
const seen = (text: string) => text.replace(/[\u202f\u00a0]/g, " ");

describe("what a chart says of its latest moment", () => {
  test.each<[string, Chart, string]>([
    ["one line", chart("1", [line("chat", [0.5], [3])]), "50 %, mean of 3 pods"],
    ["nothing reports any more", chart("1", [line("chat", [0.5, null], [3, 0])]), "no data, no pod reports"],
    ["how many is not known", chart("1", [line("chat", [0.5], [0])]), "50 %"],
    ["many lines", chart("Cel", [line("a", [40]), line("b", [71]), line("c", [null])]), "40 °C to 71 °C, 2 devices"],
    ["many lines of one value", chart("Hz", [line("a", [1.98e9]), line("b", [1.98e9])]), "1.98 GHz, 2 devices"],
    ["nothing", chart("W", [line("a", [null]), line("b", [null])]), "no data"],
  ])("%s", (_, given, said) => expect(seen(reading(given, null, null, undefined, "device"))).toBe(said));
});

test("lines of devices have their short names, and whole ones where those repeat", () => {
  const device = (id: string, over = {}) => ({ id, parent: null, index: "0", mig_profile: null, mig_instance: null, partition: null, ...over });
  const devices = [device("GPU-a"), device("GPU-b"), device("GPU-c", { index: "1" }), device("GPU-c/7", { parent: "GPU-c", index: "1", mig_profile: "1g.10gb", mig_instance: "7" })];
  const charts = Object.fromEntries(["utilization", "power"].map((key) => [key, chart("1", devices.map((d) => line(d.id, [1])))]));
  const own = named({ devices, charts } as unknown as DeviceRange);
  expect(own.power!.series.map((s) => seen(s.name))).toEqual(["GPU 0 (GPU-a)", "GPU 0 (GPU-b)", "GPU 1", "GPU 1 MIG 1g.10gb 7"]);
});

describe("the window that charts open with", () => {
  const status = (window: WindowName | null, windows: WindowName[] = ["5m", "30m", "1h", "24h"]) => ({ config: { windows }, telemetry: { window } }) as Pick<Status, "config" | "telemetry">;
  test.each<[string, string | null, WindowName | "auto", Pick<Status, "config" | "telemetry">, WindowName]>([
    ["a young store", null, "auto", status("5m"), "5m"],
    ["nothing known", null, "auto", status(null), "1h"],
    ["chosen", null, "24h", status("5m"), "24h"],
    ["of the address", "30m", "24h", status("5m"), "30m"],
    ["no window of the address", "7d", "auto", status("5m"), "5m"],
    ["longer than what is kept", null, "24h", status("1h", ["5m", "30m"]), "30m"],
  ])("%s", (_, asked, chosen, known, expected) => {
    chosenWindow.value = chosen;
    expect(windowOf(asked, known)).toBe(expected);
  });
});

test.each([
  [[[null, null, 1, 2, 3]], 2],
  [[[null, null, 1, 2, 3], [null, 1, 1, 2, 3]], 1],
  [[[null, null, null, null, 3]], 0],
  [[[null, null, null]], 0],
  [[], 0],
])("lines %j begin at %d", (lines, at) => expect(begin(lines)).toBe(at));
