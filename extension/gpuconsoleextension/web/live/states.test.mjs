// States A to F in Chromium on the real collector, fed by gpusim: what the mock
// plays elsewhere happens here. The tests go on from one another; one that runs alone
// brings about what it needs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../browser/browser.mjs";
import { seen, settled, until } from "../browser/harness.mjs";
import { eventually, pod, times, World } from "./world.mjs";

const world = new World();
let browser, fleet, collector;

const node = (name, more = {}) => ({ name, version: "4.6", model: "H100", devices: 2, fields: "all", pod_labels: true, ...more });

before(async () => {
  browser = await launch();
  fleet = await world.fleet([node("gpu-a"), node("gpu-b"), node("gpu-c")]);
  collector = await world.collector({ exporters: fleet.exporters });
});
after(async () => {
  await browser?.close();
  await world.end();
});

/** Complaints that belong to a scenario: the browser reports every answer above 399. */
const expected = /Failed to load resource: (the server responded with a status of 50[234]|net::ERR_)/;

/** A test on a page of its own, which must stay at its origin and complain of nothing. */
const on = (where, act) => async () => {
  const { page, context, problems } = await open(browser, { clock: false });
  const url = where().url;
  const go = async (hash = "#/") => {
    await page.goto(url + hash);
    await settled(page);
  };
  try {
    await act({ page, go, context });
    assert.deepEqual(problems.filter((p) => !expected.test(p)), [], "the page complains");
    assert.deepEqual([...problems.origins], [new URL(url).origin], "requests leave the origin");
  } finally {
    for (const id of raised) await end(id); // what follows begins well
    await context.close();
  }
};

/** The faults that are on. */
const raised = new Set();
const raise = async (fault) => {
  const { id } = await fleet.fault(fault);
  raised.add(id);
  return id;
};
const end = async (id) => {
  raised.delete(id);
  await fleet.end(id);
};
const main = () => collector;
const panel = (page, letter) => page.locator(`[data-state="${letter}"]`);
const row = (page, name) => page.locator(`tr[data-row="${name}"]`);
const shows = (locator, text) =>
  eventually(`the page shows ${text}`, async () => {
    const shown = (await locator.count()) ? await seen(locator.first()) : "nothing of the kind";
    assert.match(shown, text);
    return true;
  });
const service = (name, more = "") => `#/service?namespace=inference&service=${name}${more}`;
const chart = (page, title) => page.locator(".chart", { has: page.getByRole("heading", { name: title, exact: true }) });

/** The service of all tests: a pod on each node. */
const chat = (n) => pod("chat", `chat-7d9f8b6c5-${"xyz"[n]}7k2p`, ["0"]);

/** All of its pods report. */
async function chatting() {
  const { services } = await fleet.truth();
  if (!services.some((s) => s.name === "chat")) for (const [i, name] of ["gpu-a", "gpu-b", "gpu-c"].entries()) await fleet.pods(name, [chat(i)]);
  await eventually("all pods are settled", async () => {
    const [{ pods }] = (await collector.api("services")).services;
    return pods.total >= 3 && pods.reporting === pods.total;
  });
}

test("A: not enabled, and B as soon as the first data arrives, without a reload", async () => {
  const quiet = await world.collector({});
  await on(() => quiet, async ({ page, go }) => {
    await go();
    await shows(panel(page, "A"), /GPU telemetry is not enabled.*otelcol-gpu --config config\/standalone\.yaml/s);
    await until(async () => assert.equal(await page.locator("table").count(), 0));
  })();
  await quiet.child.stop();
});

const bare = (text) => text.replace(/\s/g, "");

test("B: devices report and no pod holds one", on(main, async ({ page, go }) => {
  await eventually("devices are known", async () => (await collector.api("status")).telemetry.devices === 6);
  await go();
  await shows(panel(page, "B"), /No service (has a GPU|is known).*6 devices report/s);
  await go("#/nodes");
  // An exporter is known before its first page, which names its node.
  await eventually("each exporter is known to be of its node", async () =>
    (await page.locator(".node").count()) === 3 && (await page.locator("[data-exporter]").count()) === 0);
}));

test("C: warming up, and the numbers appear without a reload", on(main, async ({ page, go }) => {
  await go();
  await page.evaluate(() => (window.same = true));
  for (const [i, name] of ["gpu-a", "gpu-b", "gpu-c"].entries()) await fleet.pods(name, [chat(i)]);
  await shows(panel(page, "C"), /Warming up.*1 service with \d pods? (is|are) starting.*within 10 seconds/s);
  await shows(row(page, "chat"), /\d+ %/);
  await panel(page, "C").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.same), true, "the page was loaded again");
}));

test("every number of the fleet and of the service is the API's", on(main, async ({ page, go }) => {
  await chatting();
  // What moves is told apart from what is wrong: the answer that the page had.
  let answer;
  await page.route("**/api/v1/service?*", async (route) => {
    const r = await route.fetch();
    answer = await r.json();
    await route.fulfill({ response: r, json: answer });
  });
  await go(service("chat"));
  const keys = { Utilization: "utilization", "Memory used": "memory_used", "Memory total": "memory_total", Tensor: "tensor", SM: "sm", DRAM: "dram", FP16: "fp16", FP32: "fp32", Power: "power" };
  await eventually("the cards show the answer", async () => {
    const shown = await page.locator(".cards [data-figure]").evaluateAll((all) => all.map((e) => [e.dataset.figure, e.querySelector(".figure-value [data-value]").dataset.value]));
    assert.equal(shown.length, 9);
    for (const [name, value] of shown) assert.equal(value, String(answer.service.values[keys[name]]), name);
    return true;
  });
  for (const key of Object.values(keys)) assert.equal(typeof answer.service.values[key], "number", key);
  await page.unroute("**/api/v1/service?*");
}));

test("windows: all four, and a deep link has its own", on(main, async ({ page, go }) => {
  await chatting();
  await go(service("chat", "&window=30m"));
  const group = page.getByRole("group", { name: "Display window" });
  assert.equal(await group.getByRole("button", { pressed: true }).innerText(), "30 min");
  for (const [name, window] of [["5 min", "5m"], ["30 min", "30m"], ["1 hour", "1h"], ["24 hours", "24h"]]) {
    await group.getByRole("button", { name, exact: true }).click();
    await settled(page);
    assert.match(page.url(), new RegExp(`window=${window}`));
    await page.locator(".uplot").nth(3).waitFor();
    // The points of the longer windows are further apart than this test lasts.
    if (window === "5m") await shows(chart(page, "Utilization").locator("[data-reading]"), /^latest \d+ %, mean of 3 pods$/);
  }
  await page.reload();
  await settled(page);
  assert.equal(await group.getByRole("button", { pressed: true }).innerText(), "24 hours");
}));

test("E: partial: the banner names the pod, the exporter is named, and its line has a gap", on(main, async ({ page, go }) => {
  await chatting();
  const id = await raise({ node: "gpu-b", kind: "exporter_down" });
  const [down] = fleet.exporters.map((u) => new URL(u).host).slice(1, 2);
  await go(service("chat", "&window=5m"));
  const banner = page.locator('[data-banner="partial"]');
  await shows(banner, /Partial: 1 of 3 settled pods reports? nothing/);
  assert.deepEqual(await banner.locator("ul.names li").allInnerTexts(), [chat(1).name]);
  await shows(banner, /Likely cause:.*The exporter of node gpu-b does not answer/s);
  await shows(page.locator('[data-figure="Utilization"]'), /\d+ %/);
  await until(async () => assert.equal(await page.locator(".uplot").count(), 4));
  await shows(chart(page, "Utilization").locator("[data-reading]"), /mean of 2 pods/);

  await go();
  const exporters = page.locator('[data-banner="exporters"]');
  await shows(exporters, /1 of 3 exporters does not answer/);
  assert.deepEqual((await exporters.locator("li").allInnerTexts()).map(bare), [`gpu-b(${down})`]);
  assert.equal(await panel(page, "D").count(), 0, "one of three is not all");
  await go("#/nodes");
  await until(async () => assert.equal(await page.locator(".node").count(), 3, "an exporter is no node"));
  await shows(page.locator('[data-node="gpu-b"]'), /exporter down/);

  // Silent for longer than a chart's step, so that its line must break.
  await eventually("it is silent for 25 s", async () => {
    const pods = (await collector.api("pods", { namespace: "inference", service: "chat" })).pods;
    return pods.find((p) => p.pod === chat(1).name).data_age > 25;
  });
  await end(id);
  await eventually("it is back", async () => (await collector.api("services")).services[0].pods.reporting === 3);
  await go(service("chat", "&window=5m&by=pod"));
  await page.getByRole("button", { name: "Show as tables" }).click();
  const table = page.getByRole("table", { name: "Utilization" });
  const heads = await table.locator("thead th").allInnerTexts();
  const at = heads.findIndex((h) => h.includes(chat(1).name));
  assert.ok(at > 0, heads.join());
  await eventually("a gap, with data before and after", async () => {
    const cells = await table.locator("tbody tr").evaluateAll((rows, i) => rows.map((r) => r.children[i].innerText), at);
    const line = cells.map((c) => (/%/.test(c) ? "x" : ".")).join("");
    assert.match(line, /x\.+x/);
    return true;
  });
}));

test("warming: a pod that is new is marked, and the average goes on without it", on(main, async ({ page, go }) => {
  await chatting();
  await fleet.pods("gpu-c", [chat(2), pod("chat", "chat-7d9f8b6c5-new42", ["1"])]);
  await go(service("chat"));
  await shows(page.locator("tr.pod-warming"), /chat-7d9f8b6c5-new42.*warming up/s);
  await eventually("the average goes on", async () => (await collector.api("service", { namespace: "inference", service: "chat" })).service.pods.in_mean === 3);
  assert.equal(await page.locator('[data-banner="partial"]').count(), 0);
}));

test("D: no exporter answers: says so, names them, and what stands below is stale", on(main, async ({ page, go }) => {
  await chatting();
  const ids = [];
  for (const name of ["gpu-a", "gpu-b", "gpu-c"]) ids.push(await raise({ node: name, kind: "exporter_down" }));
  await go();
  await shows(panel(page, "D"), /The scraper is down.*No exporter answers: 3 down/s);
  assert.deepEqual((await panel(page, "D").locator("ul.names li").allInnerTexts()).map(bare).sort(), fleet.exporters.map((u, i) => `gpu-${"abc"[i]}(${new URL(u).host})`).sort());
  await shows(page.locator("[data-as-of]"), /stale: data \d+ s old/);
  await go("#/nodes");
  await until(async () => assert.equal(await page.locator(".node").count(), 3));
  for (const id of ids) await end(id);
  await panel(page, "D").waitFor({ state: "detached" });
  await go();
  await shows(row(page, "chat"), /\d+ %/);
}));

test("F: the store cannot be reached, and comes back, on the Prometheus engine", async () => {
  await chatting();
  const way = await world.way(collector.store);
  const reader = await world.reader(way.url);
  await on(() => reader, async ({ page, go }) => {
    await go();
    await shows(row(page, "chat"), /\d+ %/);
    way.open = false;
    await shows(panel(page, "F"), /The metric store cannot be reached/);
    await until(async () => assert.equal(await page.locator(".uplot, table").count(), 0));
    way.open = true;
    await shows(row(page, "chat"), /\d+ %/);
    await panel(page, "F").waitFor({ state: "detached" });
  })();
  await reader.child.stop();
});

test("503: a server that is busy is said to be so, kindly, and asked again", async () => {
  await chatting();
  const way = await world.way(collector.store);
  // Each asks the store itself: what others were just told would be there at once.
  const reader = await world.reader(way.url, { max_concurrent_requests: 1, share_for: "0s" });
  await on(() => reader, async ({ page, go }) => {
    way.hold = 3000;
    const readers = [];
    let reading = true;
    for (let i = 0; i < 3; i++) readers.push((async () => { while (reading) await fetch(`${reader.url}api/v1/status`).then((r) => r.arrayBuffer()); })());
    try {
      await page.goto(`${reader.url}#/`);
      await shows(panel(page, "busy"), /busy with other readers.*Asking again/s);
    } finally {
      reading = false;
      way.hold = 0;
      await Promise.all(readers);
    }
    await shows(row(page, "chat"), /\d+ %/);
    void go;
  })();
  await reader.child.stop();
});

test("stale: what the page knew stays, and is called stale, when the collector is gone", on(main, async ({ page, go }) => {
  await chatting();
  await go();
  await shows(row(page, "chat"), /\d+ %/);
  await until(async () => assert.doesNotMatch(await seen(page.locator("[data-as-of]")), /stale/));
  await collector.child.stop();
  await shows(page.locator('[data-banner="offline"]'), /does not answer/);
  await shows(page.locator("[data-as-of]"), new RegExp(`stale: data \\d+ s`));
  assert.equal(await row(page, "chat").count(), 1, "what was known stays");
  assert.ok(times.stale > 0);
}));
