import { describe, expect, test } from "vitest";
import { ApiError } from "../src/api/client";
import type { Reason, Service, Status } from "../src/api/types";
import type { Known } from "../src/poll";
import { delay } from "../src/poll";
import { elsewhere, grouped, pressing, toneOf } from "../src/reasons";
import { reading } from "../src/chart/grid";
import { ageNow, averagesOver, busyUnowned, exportersUnwell, heldParts, noAverages, partly, screenOf, serviceState, staleNow, told } from "../src/state";

const status = (state: string) => ({ state }) as Status;
const known = (over: Partial<Known<Status>>): Known<Status> => ({ data: null, receivedAt: 0, error: null, outdated: false, nextAt: null, ...over });
const busy = new ApiError("busy", 503, "busy", "", 7);
const down = new ApiError("down", 502, "upstream_unreachable", "", null);

describe("the state of the whole", () => {
  test.each([
    ["not_enabled", "A"],
    ["no_services", "B"],
    ["warming_up", "C"],
    ["scraper_down", "D"],
    ["store_unreachable", "F"],
    ["not_stored", "G"],
  ])("%s is %s", (state, letter) => expect(screenOf(known({ data: status(state) }))).toMatchObject({ kind: "state", letter }));

  test("ready", () => expect(screenOf(known({ data: status("ready") }))).toMatchObject({ kind: "ready" }));
  test("a state of a later version is no reason to show nothing", () => expect(screenOf(known({ data: status("brand_new") })).kind).toBe("ready"));
  test("nothing yet", () => expect(screenOf(known({}))).toEqual({ kind: "loading" }));
  test("the server does not answer", () => expect(screenOf(known({ error: down }))).toEqual({ kind: "offline", error: down }));
  test("what was known stays when a later request fails", () => expect(screenOf(known({ data: status("ready"), error: busy })).kind).toBe("ready"));
});

function service(pods: Partial<Service["pods"]>, over: Partial<Service> = {}): Service {
  const reporting = pods.reporting ?? 0;
  const degraded = pods.degraded ?? 0;
  const missing = pods.missing ?? 0;
  const settled = reporting + degraded + missing;
  return {
    attention: [],
    reasons: [],
    partial: settled > 0 && missing / settled > 0.25,
    devices: { held: 4, reporting: 4, missing: 0, busy: 4, idle: 0 },
    ...over,
    pods: { total: 9, settled, in_mean: reporting + degraded, reporting, degraded, missing, warming: 0, not_running: 0, pending: 0, ...pods },
  } as Service;
}

const nowhere = { cluster: null, namespace: null, service: null, pod: null, node: null, device: null };
const reason = (kind: Reason["kind"], over: Partial<Reason> = {}): Reason => ({
  kind, severity: "warn", label: kind, text: `It is ${kind}.`, notice: false, subject: nowhere, endpoint: null, event_id: null, since: null, ...over,
});

describe("reasons", () => {
  test("severity is a tone, and one of a later version no alarm", () => {
    expect(["error", "warn", "info", "apocalypse"].map((s) => toneOf(s as Reason["severity"]))).toEqual(["bad", "warn", "info", "info"]);
  });
  test("what is worth knowing needs nobody", () => {
    expect(pressing([])).toBe(false);
    expect(pressing([reason("idle_devices", { severity: "info" })])).toBe(false);
    expect(pressing([reason("idle_devices", { severity: "info" }), reason("xid", { severity: "error" })])).toBe(true);
  });
  test("the same on several devices is one tag", () => {
    expect(grouped([reason("xid", { label: "XID 79" }), reason("throttle"), reason("xid", { label: "XID 79", text: "Another." })])).toMatchObject([
      { times: 2, texts: ["It is xid.", "Another."] },
      { times: 1 },
    ]);
  });
  test("the fleet names what no service's row and no other banner does", () => {
    const on = (over: Partial<Reason["subject"]>) => ({ subject: { ...nowhere, ...over } });
    const list = [reason("xid", on({ node: "n", service: "chat" })), reason("device_lost", on({ node: "n" })), reason("exporter_down", on({ node: "n" })), reason("delivery", { endpoint: "ops" }), reason("no_data", on({ service: "chat" }))];
    expect(elsewhere(list).map((r) => r.kind)).toEqual(["device_lost"]);
  });
});

describe("the state of a service", () => {
  test.each([
    ["ok", service({ reporting: 3, missing: 1 })],
    ["partial", service({ reporting: 2, missing: 1 })],
    ["no_data", service({ missing: 3 })],
    ["warming", service({ warming: 2 })],
    ["warming", service({ warming: 2, not_running: 1 })],
    ["not_running", service({ not_running: 2 })],
    ["unknown", service({ warming: 2 }, { attention: ["unknown"] })],
    ["unknown", service({ settled: null })],
  ])("%s", (state, s) => expect(serviceState(s)).toBe(state));

  test.each([
    [true, "partial"],
    [false, "ok"],
    [null, "unknown"],
  ])("the API decides what is partial, not the page: %s is %s", (partial, state) => expect(serviceState(service({ reporting: 1, missing: 2 }, { partial }))).toBe(state));

  test("partial says all that missing pods say", () => {
    const s = service({ reporting: 5, missing: 3 }, { reasons: [reason("partial"), reason("missing_pods"), reason("idle_devices", { severity: "info" })] });
    expect(told(s).map((r) => r.kind)).toEqual(["partial", "idle_devices"]);
    expect(told(service({}, { reasons: [reason("missing_pods")] }))).toHaveLength(1);
  });
});

describe("figures that hide nothing", () => {
  test.each([
    [{ devices: 11, of: 18 }, "11 of 18\u00a0devices"],
    [{ devices: 18, of: 18 }, ""],
    [{ devices: 0, of: 4 }, ""], // it is no data
    [null, ""],
  ])("%j: %s", (c, words) => expect(partly(c)).toBe(words));

  test.each([
    [3, 0, 0, 0, ""],
    [3, 1, 0, 0, "1 of 4\u00a0exporters does not answer"],
    [3, 0, 1, 0, "1 of 4\u00a0exporters is frozen: it answers with old values"],
    [3, 0, 0, 1, "1 of 4\u00a0exporters has fields that are not known"],
    [1, 2, 2, 0, "2 of 5\u00a0exporters do not answer, 2 are frozen: they answer with old values"],
    [1, 2, 0, 2, "2 of 5\u00a0exporters do not answer, 2 have fields that are not known"],
  ])("%i up, %i down, %i frozen, %i unrecognized: %s", (up, down, frozen, unrecognized, words) =>
    expect(exportersUnwell({ exporters_up: up, exporters_down: down, exporters_frozen: frozen, exporters_unrecognized: unrecognized })).toBe(words),
  );

  test.each([
    [8, 5, 1, { busy: 5, rest: 2 }],
    [4, 6, 1, { busy: 3, rest: 0 }], // some that are busy have no known owner
    [null, 2, 0, { busy: 2, rest: null }],
  ])("a bar of %s held, %s busy, %s idle has no more parts than devices", (held, busy, idle, parts) => expect(heldParts(held, busy, idle)).toEqual(parts));
  test.each<[number | null, number | null, number | null, number]>([
    [1, 0, 1, 1],
    [3, 2, 4, 1],
    [2, 2, 4, 0],
    [null, null, null, 0],
    [5, 0, 2, 2],
  ])("%s busy, %s of them owned, %s of unknown owner: %s are both", (busy, owned, unknown, both) => expect(busyUnowned(busy, owned, unknown)).toBe(both));

  test("one pod and many, in English", () => {
    const seen = [noAverages(1), noAverages(3), averagesOver(1), averagesOver(4)].map((s) => s.replace(/\u00a0/g, " "));
    expect(seen[0]).toBe("The only settled pod is missing, so there is no average.");
    expect(seen[1]).toBe("All 3 settled pods are missing, so there are no averages.");
    expect(seen[2]).toMatch(/the one pod that reports;/);
    expect(seen[3]).toMatch(/the 4 pods that report;/);
  });

  test("a chart's latest is what the card says, or no data", () => {
    const chart = { unit: "1" as const, series: [{ name: "a", values: [0.5, 0.53, null], pods: [3, 3, 2] }], limit: null };
    expect(reading(chart, null, null, { value: 0.65, pods: 2, stale: false })).toBe("65\u202f%, mean of 2\u00a0pods");
    expect(reading(chart, null, null, { value: null, pods: 0, stale: false })).toBe("no data, no pod reports");
    expect(reading(chart, null, null)).toBe("no data");
    expect(reading(chart, 1, null, { value: 0.65, pods: 2, stale: true })).toBe("53\u202f%, mean of 3\u00a0pods");
  });
});

describe("age", () => {
  test("grows while no answer comes", () => expect(ageNow(4, 1000, 61_000)).toBe(64));
  test("does not shrink when the clock is set back", () => expect(ageNow(4, 61_000, 1000)).toBe(4));
  test("of no data is none", () => expect(ageNow(null, 0, 1000)).toBeNull());
  test("the server's word, or the limit", () => {
    expect(staleNow(true, 1, 45)).toBe(true);
    expect(staleNow(false, 45, 45)).toBe(false);
    expect(staleNow(false, 45.1, 45)).toBe(true);
    expect(staleNow(false, null, 45)).toBe(false);
  });
});

describe("when it is asked again", () => {
  test("after the interval", () => expect(delay(null, 0, 15_000)).toBe(15_000));
  test("when the server says", () => expect(delay(busy, 3, 15_000)).toBe(7000));
  test("later and later, but not for ever later", () => {
    expect([1, 2, 3, 9].map((failures) => delay(down, failures, 5000))).toEqual([5000, 10_000, 20_000, 60_000]);
  });
  test("at once never: a zero would be a storm", () => expect(delay(new ApiError("", 503, "busy", "", 0), 1, 15_000)).toBe(1000));
});
