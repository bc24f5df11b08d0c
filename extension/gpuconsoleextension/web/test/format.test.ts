import { describe, expect, test } from "vitest";
import { bytes, celsius, clock, count, duration, gap, gpuName, hertz, latency, moment, percent, plural, safe, spoken, text, times, utc, warmup, watts } from "../src/format";

const all = (w: { number: string; unit: string }) => `${w.number} ${w.unit}`;

describe("values", () => {
  test.each([
    [0, "0 %"],
    [0.0004, "<0.1 %"],
    [0.0006, "0.1 %"],
    [0.034, "3.4 %"],
    [0.0994, "9.9 %"],
    [0.0996, "10 %"],
    [0.643, "64 %"],
    [1, "100 %"],
    [1.02, "102 %"],
  ])("ratio %d is %s", (ratio, written) => expect(all(percent(ratio))).toBe(written));

  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [80 * 1024 ** 3, "80.0 GiB"],
    [1023.6 * 1024 ** 3, "1.00 TiB"],
    [141 * 1024 ** 3, "141 GiB"],
  ])("%d bytes are %s", (value, written) => expect(all(bytes(value))).toBe(written));

  test.each([
    [0, "0 W"],
    [412.4, "412 W"],
    [999.6, "1.00 kW"],
    [38_460, "38.5 kW"],
    [1_210_000, "1.21 MW"],
  ])("%d watts are %s", (value, written) => expect(all(watts(value))).toBe(written));

  test("degrees", () => expect(all(celsius(64.4))).toBe("64 °C"));
  test("counts are grouped", () => expect(count(4096)).toBe("4,096"));
  test("how often, exactly or at least", () => expect([times(2, false), times(1, true), times(3, true)]).toEqual([`${gap}×${gap}2`, ", at least once", ", at least 3 times"]));
  test("hertz", () => expect([all(hertz(0)), all(hertz(345e6)), all(hertz(1.98e9))]).toEqual(["0 Hz", "345 MHz", "1.98 GHz"]));
  test("one is singular", () => expect([plural(1, "pod"), plural(0, "pod"), plural(7, "pod")]).toEqual(["1\u00a0pod", "0\u00a0pods", "7\u00a0pods"]));
});

describe("no data is never a number, and zero is", () => {
  test.each([null, undefined, Number.NaN, Number.POSITIVE_INFINITY])("%s", (value) => expect(text(value, "1")).toBe("no data"));
  test("0", () => expect(text(0, "1")).toBe(`0${gap}%`));
});

describe("time", () => {
  test.each([
    [-3, `0${gap}s`],
    [4.9, `4${gap}s`],
    [125, `2${gap}min 05${gap}s`],
    [4320, `1${gap}h 12${gap}min`],
    [273_600, `3${gap}d 4${gap}h`],
  ])("%d seconds are %s", (seconds, written) => expect(duration(seconds)).toBe(written));

  test.each([
    [1, "1 second"],
    [90, "90 seconds"],
    [300, "5 minutes"],
    [900, "15 minutes"],
    [3600, "60 minutes"],
    [86_400, "24 hours"],
  ])("%d seconds are said %s", (seconds, written) => expect(spoken(seconds)).toBe(written));

  test("latency", () => expect([latency(0.084), latency(5)]).toEqual([`84${gap}ms`, `5.0${gap}s`]));
  test("utc", () => expect(utc(new Date("2026-11-21T14:05:09.123Z"))).toBe("2026-11-21T14:05:09Z"));
  test("the day is told where it is another one", () => {
    const now = new Date("2026-11-21T12:00:00");
    expect(moment(new Date("2026-11-21T09:08:07"), now)).toBe("09:08:07");
    expect(moment(new Date("2026-11-19T09:08:07"), now)).toBe("19 Nov 09:08:07");
    expect(clock(now)).toBe("12:00:00");
  });
});

describe("texts from outside", () => {
  test("stay as they are", () => expect(safe("<b>東京/a b</b>")).toBe("<b>東京/a b</b>"));
  test.each(["a\u202eb", "a\u0007b", "a\u200bb", "a\u009bb", "a\ufeffb"])("%j: what cannot be seen is shown", (name) => expect(safe(name)).toBe("a\ufffdb"));
});

test("the time of warming up is marked where it is the console's default", () => {
  expect(warmup({ warmup: 90, thresholds_from: "gpu_summary" })).toBe("90 seconds");
  expect(warmup({ warmup: 90, thresholds_from: "gpu_console" })).toBe("90 seconds (this console’s default: gpu_summary reports no thresholds)");
});

test("a board without an index is called by what is short in its id", () => {
  const name = (id: string, index: string | null = null) => gpuName({ id, index }).replace(gap, " ");
  expect(name("GPU-c3ff88426fc31c9e", "3")).toBe("GPU 3");
  expect(name("GPU-c3ff88426fc31c9e/5")).toBe("GPU 6fc31c9e");
  expect(name("GPU-serial-PCB0123")).toBe("GPU PCB0123");
  expect(name("GAUDI-AN123")).toBe("GPU AN123");
  expect(name("PCI-node-1@0000:4d:00.0/1")).toBe("GPU 0000:4d:00.0");
  expect(name("GPU-8d5e0f5c-0000-4000-8000-000000000001::2")).toBe("GPU 8d5e0f5c");
});
