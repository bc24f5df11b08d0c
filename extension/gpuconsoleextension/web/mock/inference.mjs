// What inference servers report, by their engine.
import { round, wave } from "./numbers.mjs";

const figures = ["time_to_first_token", "time_per_output_token", "inter_token_latency", "request_duration", "output_tokens", "waiting", "running", "kv_cache", "error_ratio", "tokens_per_joule"];
const tokens = "Triton knows responses, not tokens";

/** Why an engine cannot report a figure. */
const cannot = {
  vllm: {},
  sglang: { time_per_output_token: "the family of that name has one observation a token", error_ratio: "it does not count failed requests" },
  triton: {
    time_per_output_token: tokens, inter_token_latency: tokens, output_tokens: tokens, tokens_per_joule: tokens,
    request_duration: "it reports sum and count without buckets: there is a mean, and no quantile",
  },
};

/** The figure of a service at a second; null where its engine has none. */
export function figure(s, key, second) {
  if (!s.engine || cannot[s.engine][key]) return null;
  const at = (mean, digits = 4) => round(Math.max(0, wave(`${s.service}/${key}`, mean, mean / 3, second)), digits);
  switch (key) {
    case "time_to_first_token": return at(0.24);
    case "time_per_output_token": return at(0.031, 5);
    case "inter_token_latency": return at(0.042, 5);
    case "request_duration": return at(6.2);
    case "output_tokens": return at(2400, 1);
    case "waiting": return at(3, 0);
    case "running": return at(41, 0);
    case "kv_cache": return Math.min(1, at(0.63));
    case "error_ratio": return 0;
    case "tokens_per_joule": return at(0.62);
  }
}

/** What a service reports; nothing if it has no engine. */
export function inference(s, second) {
  if (!s.engine) return {};
  const values = Object.fromEntries(figures.map((key) => [key, figure(s, key, second)]));
  const lacking = Object.entries(cannot[s.engine]).map(([key, reason]) => ({ figure: key, engine: s.engine, reason }));
  return { inference: { engines: [s.engine], servers: { up: s.pods, of: s.pods }, ...values, lacking } };
}

/** The charts of a service's servers, a line for it or one a pod. */
export function inferenceCharts(s, names, times) {
  const units = { time_to_first_token: "s", time_per_output_token: "s", inter_token_latency: "s", output_tokens: "{token}/s" };
  const there = Object.entries(units).filter(([key]) => figure(s, key, times[0]) !== null);
  return Object.fromEntries(there.map(([key, unit]) => [key, { unit, limit: null, series: names.map((name) => ({ name, pods: null, values: times.map((t) => figure({ ...s, service: name }, key, t)) })) }]));
}
