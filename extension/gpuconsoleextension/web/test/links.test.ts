import { beforeAll, describe, expect, test, vi } from "vitest";

// The router reads the address when it is loaded.
vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("addEventListener", () => {});

let router: typeof import("../src/router");
let client: typeof import("../src/api/client");
let grafana: typeof import("../src/grafana");
beforeAll(async () => {
  router = await import("../src/router");
  client = await import("../src/api/client");
  grafana = await import("../src/grafana");
});

const names = [
  { cluster: "eu-west-1", namespace: "ml", service: "chat" },
  { cluster: null, namespace: "ml", service: "chat" },
  { cluster: "a/b", namespace: "c?d=e&f", service: "#g%20h+i" },
  { cluster: "東京", namespace: "<img src=x>", service: "\"'\\ x".padEnd(253, "y") },
];

describe("a link to a service", () => {
  test.each(names)("%j comes back as it went", (name) => {
    expect(router.parse(router.serviceLink(name, { window: "24h", by: "pod" }))).toEqual({ view: "service", name, window: "24h", by: "pod" });
  });
  test("without window and lines", () => expect(router.parse("#/service?namespace=a&service=b")).toEqual({ view: "service", name: { cluster: null, namespace: "a", service: "b" }, window: null, by: "service" }));
  test("without a name is none", () => expect(router.parse("#/service?namespace=a").view).toBe("unknown"));
});

describe("a link to a node or a device", () => {
  test.each([{ cluster: "c1", node: "n/1" }, { cluster: null, device: "GPU-a/3" }, { cluster: "a&b", device: "#x" }])("%j comes back as it went", (where) => {
    expect(router.parse(router.placeLink(where, "5m"))).toEqual({ view: "place", where, window: "5m" });
  });
  test.each(["#/node", "#/device?node=n"])("%j names none", (hash) => expect(router.parse(hash).view).toBe("unknown"));
});

describe("other links", () => {
  test.each([
    ["", "fleet"],
    ["#/", "fleet"],
    ["#/nodes", "nodes"],
    ["#/nodes/", "nodes"],
    ["#/events?min_severity=warn", "events"],
    ["#/cost", "cost"],
    ["#/elsewhere", "unknown"],
  ])("%j", (hash, view) => expect(router.parse(hash).view).toBe(view));
  test.each([{}, { by: "service", range: "7d", step: "hour", what: "hours", shared: true, tenant: "a&b", namespace: "c/d", cluster: "東京" }])("cost: %j comes back as it went", (given) => {
    const none = { by: "", range: "", step: "", what: "", shared: false, tenant: "", namespace: "", slurm_cluster: "", cluster: "" };
    expect(router.parse(router.costLink(given))).toEqual({ view: "cost", cost: { ...none, ...given } });
  });
  test("a filter", () => expect(router.parse(router.fleetLink("a&b"))).toEqual({ view: "fleet", q: "a&b" }));
});

describe("an address of the API", () => {
  test("is relative, so that a prefix does not matter", () => expect(client.url("status")).toBe("./api/v1/status"));
  test("leaves out what is not set", () => expect(client.url("pods", { cluster: null, namespace: "a/b", service: "c&d", cursor: undefined, q: "" })).toBe("./api/v1/pods?namespace=a%2Fb&service=c%26d"));
});

describe("Retry-After", () => {
  test.each([
    ["7", 7],
    [" 7 ", 7],
    ["Sat, 21 Nov 2026 14:05:19 GMT", 10],
    ["Sat, 21 Nov 2026 14:05:00 GMT", 0],
    ["999999", 600],
    ["soon", null],
    ["", null],
    [null, null],
  ])("%j is %s", (header, seconds) => expect(client.retryAfter(header, Date.parse("2026-11-21T14:05:09Z"))).toBe(seconds));
});

describe("the link into Grafana", () => {
  const config = { dashboard_url: "https://g.example/d/gpu/", variables: [{ name: "app", value: "service" as const }, { name: "rack", value: "cluster" as const }, { name: "namespace", value: "namespace" as const }] };
  const link = (name: (typeof names)[number], over = {}) => grafana.grafanaLink({ ...config, ...over }, name, "30m");
  test("has the variables that are configured", () => {
    expect(link(names[0]!)).toBe("https://g.example/d/gpu?var-app=chat&var-rack=eu-west-1&var-namespace=ml&from=now-30m&to=now");
  });
  test("has none for what is not known", () => expect(link(names[1]!)).not.toContain("rack"));
  test("escapes names", () => expect(new URL(link(names[2]!)!).searchParams.get("var-app")).toBe("#g%20h+i"));
  test.each(["javascript:alert(1)", "data:text/html,x", "", "//g.example"])("%j is not one that a browser should open", (dashboard_url) => expect(link(names[0]!, { dashboard_url })).toBeNull());
  test("a variable that could break out is left out", () => expect(link(names[0]!, { variables: [{ name: "a&b", value: "service" }] })).toBe("https://g.example/d/gpu?from=now-30m&to=now"));
  test("is none without a URL", () => expect(grafana.grafanaLink(null, names[0]!, "1h")).toBeNull());
});
