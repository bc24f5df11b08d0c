// The page of cost on the fleet of `make run`: what it shows is what the API reports, that adds
// up to the fleet of the simulator, and gpuctl and the file have the same.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open } from "../browser/browser.mjs";
import { seen, settled, until } from "../browser/harness.mjs";
import { eventually, freePorts, World } from "./world.mjs";

const world = new World();
let browser, fleet, collector, page, problems;
const started = Date.now();

before(async () => {
  browser = await launch();
  fleet = await world.demo();
  // The pod of the last one never comes.
  const engines = [...fleet.engines.map((url) => new URL(url).port), ...(await freePorts(1))];
  const none = (path) => ({ url: `${fleet.sink}/${path}` });
  collector = await world.collector({
    exporters: fleet.exporters,
    configs: ["inference-standalone.yaml", "demo.yaml"],
    env: { KUBELETS: fleet.kubelets, ...Object.fromEntries(engines.map((port, i) => [`ENGINE_${i}`, String(port)])) },
    more: { exporters: { webhook: { receivers: { sink: none("ops"), convox: none("convox"), slack: none("slack") } } } },
  });
  ({ page, problems } = await open(browser, { clock: false }));
});
after(async () => {
  await browser?.close();
  await world.end();
});

const owners = (report) => report.lines.filter((l) => l.state === "held");

/** What every test begins with, also one that runs alone. */
let opened;
const shown = () => (opened ??= show());
async function show() {
  await page.goto(`${collector.url}#/cost`);
  await settled(page);
  await eventually("three tenants have cost", async () => owners(await collector.api("cost", { by: "tenant", since: "24h" })).filter((l) => l.cost > 0).length === 3);
  await eventually("the page has them", async () => (await page.locator(".cost-table tr[data-row]").count()) === 8);
}

test("no usage yet, then what tenants held, without a reload", shown);

test("every cell is the answer's, and groups and states are the fleet", async () => {
  await shown();
  // The answer that the page has, which asks again while it is read.
  const answers = "**/api/v1/cost?by=tenant&since=24h&limit=*";
  let report, rows;
  await page.route(answers, async (route) => {
    const r = await route.fetch();
    report = await r.json();
    await route.fulfill({ response: r, json: report });
  });
  await page.reload();
  await eventually("the cells are those of the answer", async () => {
    const cells = await page.locator(".cost-table tr[data-row]").evaluateAll((all) =>
      all.map((row) => [row.dataset.row, Object.fromEntries([...row.querySelectorAll("td[data-label]")].map((td) => [td.dataset.label, td.querySelector("[data-value]")?.dataset.value]))]));
    const values = new Map(cells);
    rows = [...owners(report).map((l) => [l.group.tenant, l]), ...report.states.filter((s) => s.state !== "held").map((s) => [`state ${s.state}`, s]), ["fleet", report.total]];
    for (const [name, line] of rows) {
      assert.equal(Number(values.get(name)["GPU hours"]), line.time / 3600, name);
      assert.equal(values.get(name).Cost, String(line.cost), name);
      assert.equal(values.get(name).Carbon, String(line.carbon), name);
    }
    return true;
  });
  await page.unroute(answers);
  const sum = (key) => rows.slice(0, -1).reduce((all, [, l]) => all + l[key], 0);
  assert.ok(Math.abs(sum("time") - report.total.time) < 1e-6);
  assert.ok(Math.abs(sum("cost") - report.total.cost) < 1e-6);
  assert.ok(report.total.time > 0 && report.total.time <= 18 * ((Date.now() - started) / 1000), "18 boards, and no more time than there was");
});

test("the price of a board is that of its node, whoever holds it", async () => {
  await shown();
  const { lines } = await collector.api("cost", { by: "model", since: "24h" });
  const price = { "NVIDIA H100 80GB HBM3": 11.8 / 4, "NVIDIA A100-SXM4-80GB": 8.8 / 8, "NVIDIA A100-SXM4-40GB": 1.4, "Tesla T4": 0.2 };
  assert.deepEqual([...new Set(lines.map((l) => l.group.model).filter(Boolean))].sort(), Object.keys(price).sort());
  for (const l of lines.filter((l) => l.time > 0)) assert.ok(Math.abs(l.cost - (l.time / 3600) * price[l.group.model]) < 1e-6, JSON.stringify(l));
});

test("budgets, chart, file and gpuctl", async () => {
  await shown();
  await until(async () => assert.equal(await page.locator("[data-budget]").count(), 3));
  await page.getByRole("slider", { name: "Cost: moment" }).waitFor();
  await until(async () => assert.match(await seen(page.locator("[data-reading]")), /\(open\) [\d.]+ USD$/));
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
  const text = readFileSync(await download.path(), "utf8");
  for (const word of ["inference", "training", "notebooks", "stranded", "unknown"]) assert.ok(text.includes(word), word);
  const { out, status } = await collector.gpuctl("cost", "--by", "tenant", "--since", "24h");
  assert.equal(status, 0, out);
  for (const word of ["inference", "training", "notebooks", "free"]) assert.ok(out.includes(word), out);
  assert.deepEqual([...problems], []);
});
