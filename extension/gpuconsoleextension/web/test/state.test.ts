import { describe, expect, test } from "vitest";
import { ApiError } from "../src/api/client";
import type { Service, Status } from "../src/api/types";
import type { Known } from "../src/poll";
import { delay } from "../src/poll";
import { ageNow, screenOf, serviceState, staleNow, told } from "../src/state";

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
    partial: settled > 0 && missing / settled > 0.25,
    devices: { held: 4, reporting: 4, missing: 0, busy: 4, idle: 0 },
    ...over,
    pods: { total: 9, settled, in_mean: reporting + degraded, reporting, degraded, missing, warming: 0, not_running: 0, pending: 0, ...pods },
  } as Service;
}

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

  test("the API decides what is partial, not the page", () => expect(serviceState(service({ reporting: 1, missing: 2 }, { partial: null }))).toBe("ok"));

  test("partial says all that missing pods say", () => {
    const s = service({ reporting: 5, missing: 3 }, { attention: ["partial", "missing_pods", "idle_devices"] });
    expect(told(s).map((t) => t.word)).toEqual(["partial: 3 of 8 missing", "0 idle-held"]);
  });
  test("a reason of a later version is shown by its name", () => {
    expect(told(service({}, { attention: ["on_fire" as never] }))).toEqual([{ word: "on fire", tone: "info" }]);
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
