import type { Chart, Inference, Range } from "./api/types";
import type { Unit } from "./format";

/** A card of what the inference servers of a service report. */
export interface Card {
  /** The field of the API. */
  key: Exclude<keyof Inference, "engines" | "servers" | "lacking">;
  name: string;
  /** What the name is short for. */
  hint: string;
  unit: Unit;
  /** A second number behind the first. */
  also?: "running";
}

const latency = (key: Card["key"], name: string, hint: string): Card => ({ key, name, hint: `${hint}: 95 of 100 were at most so long`, unit: "s" });
const perRequest = latency("time_per_output_token", "TPOT p95", "Time per output token of a request");
const perToken = latency("inter_token_latency", "ITL p95", "Inter-token latency, between any two tokens");

/** The cards. Where no time per output token is known, the latency between tokens takes its place under its own name. */
export const cardsOf = (i: Inference): Card[] => [
  latency("time_to_first_token", "TTFT p95", "Time to first token"),
  i.time_per_output_token === null && i.inter_token_latency !== null ? perToken : perRequest,
  latency("request_duration", "Request p95", "From a request to its last token"),
  { key: "output_tokens", name: "Output", hint: "Generated tokens per second", unit: "{token}/s" },
  { key: "waiting", name: "Waiting / running", hint: "Requests that wait to be scheduled, and those that are being served", unit: "count", also: "running" },
  { key: "kv_cache", name: "KV cache", hint: "Utilization of the fullest KV cache", unit: "1" },
  { key: "error_ratio", name: "Errors", hint: "Requests that failed or were refused, of those that were not cancelled", unit: "1" },
  { key: "tokens_per_joule", name: "Energy", hint: "Generated tokens per joule of the GPUs", unit: "{token}/J" },
];

/** Why a figure is null: an engine's reason, with its name. */
export function lacking(i: Inference, figure: string): string {
  const reasons = i.lacking.filter((l) => l.figure === figure).map((l) => (l.engine === null ? l.reason : `${l.engine}: ${l.reason}`));
  return reasons.length ? `no data. ${reasons.join("; ")}` : "no data";
}

const titles = [
  ["time_to_first_token", "Time to first token, p95"],
  ["time_per_output_token", "Time per output token, p95"],
  ["inter_token_latency", "Inter-token latency, p95"],
  ["output_tokens", "Output tokens"],
] as const;

/** The charts of a service by their keys, and the titles of those of its inference servers. The latency between tokens stands in for the time per output token. */
export function inferenceCharts(charts: Range["charts"]): { titles: (readonly [string, string])[]; charts: Record<string, Chart> } {
  const all = Object.fromEntries(Object.entries(charts).filter(([key]) => !(key === "inter_token_latency" && charts.time_per_output_token)));
  return { titles: titles.filter(([key]) => all[key]), charts: all };
}
