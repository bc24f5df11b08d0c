// What the mock server plays to the page is what openapi.yaml promises: or the
// tests of the page would prove nothing about the real API.
import { readFileSync } from "node:fs";
import Ajv, { type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
// @ts-expect-error plain JavaScript, for node alone
import { answer } from "../mock/server.mjs";
// @ts-expect-error as above
import { scenarios, worldOf } from "../mock/scenarios.mjs";

const document = parse(readFileSync(new URL("../../openapi.yaml", import.meta.url), "utf8"));
const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
ajv.addSchema({ $id: "api", components: document.components });
const schemas = new Map<string, ValidateFunction>();
const schema = (name: string): ValidateFunction => {
  if (!schemas.has(name)) schemas.set(name, ajv.compile({ $ref: `api#/components/schemas/${name}` }));
  return schemas.get(name)!;
};

const now = Date.parse("2026-11-21T14:05:09Z");
const answers: [string, string][] = [
  ["status", "StatusAnswer"],
  ["services?trend=true", "ServicesAnswer"],
  ["services?limit=2&q=ch", "ServicesAnswer"],
  ["nodes", "NodesAnswer"],
  ["events", "EventsAnswer"],
  ["capacity", "CapacityAnswer"],
  ["capacity?size=2&show=all&limit=2", "CapacityAnswer"],
  ["cost", "CostAnswer"],
  ["cost?by=service&since=7d&step=day&top=3", "CostAnswer"],
  ["cost?by=node_pool&since=24h&share_unheld=proportional&limit=2", "CostAnswer"],
];
const ofService: [string, string][] = [
  ["service", "ServiceAnswer"],
  ["pods", "PodsAnswer"],
  ...["5m", "30m", "1h", "24h"].flatMap((w): [string, string][] => [[`range?window=${w}`, "RangeAnswer"], [`range?window=${w}&by=pod`, "RangeAnswer"]]),
];

describe.each(Object.keys(scenarios))("%s", (name) => {
  const world = worldOf(name, now, now);
  const ask = (request: string) => {
    const url = new URL(request, "http://mock");
    try {
      return answer(url.pathname.slice(1), url.searchParams, now, world);
    } catch (refusal) {
      const { message: error, reason, detail } = refusal as Error & { reason: string; detail: string };
      return { refused: { error, reason, detail } };
    }
  };
  const conforms = (request: string, wanted: string) => {
    const got = ask(request);
    const check = schema("refused" in got ? "Error" : wanted);
    expect(check("refused" in got ? got.refused : got), `${request}: ${ajv.errorsText(check.errors)}`).toBe(true);
    if ("refused" in got) expect(name === "busy" || world.unreachable, JSON.stringify(got)).toBeTruthy();
  };
  test.each(answers)("%s", conforms);
  test.each(["5m", "24h"])("device_range %s", (window) => {
    for (const n of world.nodes.slice(0, 3)) {
      const query = new URLSearchParams({ cluster: n.cluster ?? "", node: n.node, window });
      conforms(`device_range?${query}`, "DeviceRangeAnswer");
      query.set("device", n.devices[0].id);
      conforms(`device_range?${query}`, "DeviceRangeAnswer");
    }
  });
  test.each(ofService)("%s", (path, wanted) => {
    for (const s of world.services.slice(0, 3)) {
      const query = new URLSearchParams({ cluster: s.cluster ?? "", slurm_cluster: s.slurm_cluster ?? "", namespace: s.namespace, service: s.service });
      conforms(`${path}${path.includes("?") ? "&" : "?"}${query}`, wanted);
    }
  });
});

test("charts of inference servers are those of the cards, with as many values as there are points", () => {
  const world = worldOf("inference", now, now);
  const query = new URLSearchParams({ cluster: "eu-west-1", namespace: "inference", service: "chat-8b", window: "1h" });
  for (const by of ["service", "pod"]) {
    const range = answer("range", new URLSearchParams([...query, ["by", by]]), now, world);
    expect(Object.keys(range.charts)).toContain("inter_token_latency");
    expect(Object.keys(range.charts)).not.toContain("time_per_output_token");
    for (const chart of Object.values(range.charts) as { series: { values: unknown[] }[] }[]) for (const s of chart.series) expect(s.values.length).toBe(range.points);
  }
});

test("every list of a range has as many values as there are points", () => {
  const world = worldOf("gaps", now, now);
  const query = new URLSearchParams({ cluster: "eu-west-1", namespace: "inference", service: "chat-8b", window: "1h", by: "pod" });
  const range = answer("range", query, now, world);
  for (const chart of Object.values(range.charts) as { series: { values: unknown[] }[] }[]) for (const s of chart.series) expect(s.values.length).toBe(range.points);
});
