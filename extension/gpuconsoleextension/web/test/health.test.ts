import { describe, expect, test } from "vitest";
import type { GpuEvent, Health, HealthCounts, HealthState } from "../src/api/types";
import { explained, incidents, inWords, notWell, spelled, stateOf, unwell } from "../src/health";

const health = (over: Partial<Health> = {}): Health => ({ state: "ok", since: null, reasons: [], action: "none", score: null, coverage: { with_data: 5, applicable: 11, missing: [] }, watched_since: null, ...over });
const counts = (over: Partial<NonNullable<HealthCounts>>) => ({ ok: 0, degraded: 0, predicted_failure: 0, failed: 0, unknown: 0, ...over });
const plain = (text: string) => text.replace(/\u00a0/g, " ");

describe("health in words", () => {
  test("how much was looked at belongs to it", () => expect(plain(inWords(health()))).toBe("ok, 5 of 11 checks"));
  test("where that is not known, the state alone", () => expect(inWords(health({ state: "failed", coverage: null }))).toBe("failed"));
  test("unknown is not ok, nor is a state of a later version", () => {
    expect(stateOf("unknown")).toEqual({ word: "unknown", tone: "calm" });
    expect(stateOf("melting" as HealthState)).toEqual({ word: "unknown", tone: "calm" });
  });
  test("why it is unknown", () => {
    expect(explained(health({ state: "unknown" }))).toMatch(/reports nothing/);
    expect(explained(health({ state: "unknown", watched_since: "2026-11-21T14:00:00Z" }))).toMatch(/Nothing fresh/);
    const reason = { name: "sram_worn", device: null, state: "failed" as const, action: "rma", since: null, text: "Worn.", value: null, threshold: null, runbook: "" };
    expect(explained(health({ state: "unknown", reasons: [reason] }))).toBe("last known: SRAM worn: Worn.");
    expect(explained(health({ state: "failed", reasons: [reason] }))).toBe("SRAM worn: Worn.");
  });
  test.each([["reset_gpu", "reset GPU"], ["rma", "RMA"], ["drain_p2p", "drain P2P"], ["pcie_width", "PCIe width"], ["new\u202eword", "new\ufffdword"]])("%s is written %s", (word, text) => expect(spelled(word)).toBe(text));
});

describe("boards of a service", () => {
  test("the worst first, with what is not known", () => {
    expect(unwell(counts({ ok: 4, degraded: 2, failed: 1, unknown: 1 })).map(({ text, tone }) => [plain(text), tone])).toEqual([["1 of 8 GPUs failed", "bad"], ["2 of 8 GPUs degraded", "warn"], ["1 of 8 GPUs of unknown health", "info"]]);
  });
  test("all well, and not reported", () => {
    expect(unwell(counts({ ok: 8 }))).toEqual([]);
    expect(unwell(null)).toEqual([]);
  });
  test("what is not known is not counted as unwell", () => expect(notWell(counts({ ok: 1, degraded: 1, predicted_failure: 1, failed: 1, unknown: 5 }))).toBe(3));
});

describe("incidents", () => {
  const now = Date.parse("2026-11-21T14:00:00Z");
  const xid = (ago: number, code: string, device = "GPU-a", over: Partial<GpuEvent> = {}) =>
    ({ name: "gpu.xid", time: new Date(now - ago * 1000).toISOString(), subject: { device }, attributes: { "gpu.xid.code": code }, ...over }) as GpuEvent;
  const of = (...events: GpuEvent[]) => incidents(events, new Set(["GPU-a", "GPU-b"]), now).map((i) => [i.device, i.codes.join(" "), i.times]);

  test("with at most three minutes of silence they are one, and the first code names it", () => {
    expect(of(xid(100, "94"), xid(280, "45"), xid(280, "63"), xid(461, "48"))).toEqual([["GPU-a", "45 63 94", 3], ["GPU-a", "48", 1]]);
    expect(of(xid(100, "94"), xid(280, "48"))).toEqual([["GPU-a", "48 94", 2]]);
  });
  test("each device has its own", () => expect(of(xid(100, "79"), xid(110, "79", "GPU-b"))).toEqual([["GPU-a", "79", 1], ["GPU-b", "79", 1]]));
  test("repeats count, other devices, other events and yesterday do not", () => {
    expect(of(xid(10, "13", "GPU-a", { attributes: { "gpu.xid.code": "13", "gpu.event.occurrences": 7 } }), xid(20, "13", "GPU-c"), xid(30, "13", "GPU-a", { name: "gpu.throttle" }), xid(86_401, "13"))).toEqual([["GPU-a", "13", 7]]);
  });
});
