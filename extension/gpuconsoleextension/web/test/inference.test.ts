import { describe, expect, test } from "vitest";
import type { Chart, Inference, Range } from "../src/api/types";
import { text } from "../src/format";
import { cardsOf, inferenceCharts, lacking } from "../src/inference";

const nothing: Inference = {
  engines: ["triton"], servers: null, time_to_first_token: null, time_per_output_token: null, inter_token_latency: null, request_duration: null,
  output_tokens: null, waiting: null, running: null, kv_cache: null, error_ratio: null, tokens_per_joule: null, lacking: [],
};

describe("time per output token", () => {
  const second = (i: Partial<Inference>) => cardsOf({ ...nothing, ...i })[1]!;
  test("is shown where it is known", () => expect(second({ time_per_output_token: 0.02, inter_token_latency: 0.03 })).toMatchObject({ key: "time_per_output_token", name: "TPOT p95" }));
  test("gives way to the latency between tokens, under its name", () => expect(second({ inter_token_latency: 0.03 })).toMatchObject({ key: "inter_token_latency", name: "ITL p95" }));
  test("is named where neither is known", () => expect(second({})).toMatchObject({ name: "TPOT p95" }));
});

test("why there is no data: every engine's reason", () => {
  const i = {
    ...nothing,
    lacking: [
      { figure: "kv_cache", engine: "tgi", reason: "not on the page" },
      { figure: "kv_cache", engine: "triton", reason: "off" },
      { figure: "waiting", engine: null, reason: "pods are missing" },
    ],
  };
  expect(lacking(i, "kv_cache")).toBe("no data. tgi: not on the page; triton: off");
  expect(lacking(i, "waiting")).toBe("no data. pods are missing");
  expect(lacking(i, "running")).toBe("no data");
});

test("charts of inference servers: those that are there", () => {
  const chart: Chart = { unit: "s", series: [], limit: null };
  const gpus = { utilization: chart, memory: chart, tensor: chart, power: chart };
  const keys = (charts: Range["charts"]) => inferenceCharts(charts).titles.map(([key]) => key);
  expect(keys(gpus)).toEqual([]);
  expect(keys({ ...gpus, output_tokens: chart, inter_token_latency: chart })).toEqual(["inter_token_latency", "output_tokens"]);
  expect(keys({ ...gpus, time_per_output_token: chart, inter_token_latency: chart, time_to_first_token: chart })).toEqual(["time_to_first_token", "time_per_output_token"]);
});

test.each([
  [0, "s", "0 ms"], [0.0004, "s", "0.4 ms"], [0.24, "s", "240 ms"], [0.9996, "s", "1 s"], [6.234, "s", "6.23 s"], [1234, "s", "1,234 s"],
  [0, "{token}/s", "0 tokens/s"], [0.0123, "{token}/s", "0.0123 tokens/s"], [2400.4, "{token}/s", "2,400 tokens/s"], [0.62, "{token}/J", "0.62 tokens/J"],
] as const)("%d %s is %s", (value, unit, want) => expect(text(value, unit).replaceAll("\u202f", " ")).toBe(want));
