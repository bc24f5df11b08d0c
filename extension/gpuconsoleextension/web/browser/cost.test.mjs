// The page of cost: what it is grouped by and of which time, the chart and its table, budgets, the file, and what is shown where something is not known.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { on, seen, settled, until, withBrowser } from "./harness.mjs";

withBrowser();

const row = (page, name) => page.locator(`.cost-table tr[data-row="${name}"]`);
const cell = (page, name, column) => row(page, name).locator(`td[data-label="${column}"]`);
const value = (locator) => locator.locator("[data-value]").first().getAttribute("data-value");
const report = async (server, query) => (await fetch(`${server.url}api/v1/cost?${query}`)).json();

test("every number is the API's, and the last row is the sum of all", on("healthy", {}, async ({ page, go, server }) => {
  await go("#/cost?by=service&range=7d");
  const answer = await report(server, "by=service&since=7d");
  const held = answer.lines.filter((l) => l.state === "held");
  assert.deepEqual(await page.locator(".cost-table tr[data-row]").evaluateAll((rows) => rows.map((r) => r.dataset.row)), [
    ...held.map((l) => l.group.service),
    ...["free", "stranded", "unavailable", "unknown"].map((s) => `state ${s}`),
    "fleet",
  ]);
  for (const l of held) {
    assert.equal(await value(cell(page, l.group.service, "GPU hours")), String(l.time / 3600), l.group.service);
    assert.equal(await value(cell(page, l.group.service, "Cost")), String(l.cost), l.group.service);
    assert.equal(await value(cell(page, l.group.service, "Carbon")), String(l.carbon), l.group.service);
  }
  const rows = [...held.map((l) => l.group.service), "state free", "state stranded", "state unavailable", "state unknown"];
  let sum = 0;
  for (const name of rows) sum += Number(await value(cell(page, name, "GPU hours")));
  assert.ok(Math.abs(sum - Number(await value(cell(page, "fleet", "GPU hours")))) < 1e-6);
}));

test("what has no price has hours and no money, with the reason; zero is zero", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost?by=service");
  assert.match(await seen(page.locator('[data-banner="unpriced"]')), /289 h of GPU time have no price NVIDIA L4, eu-north1, spot 289 h/);
  const cost = cell(page, "transcribe", "Cost").locator("[data-value]");
  assert.equal(await cost.getAttribute("data-value"), "null");
  assert.match((await cost.getAttribute("title")).replace(/\s/g, " "), /^no price for 145 h of it$/);
  assert.equal(await value(cell(page, "transcribe", "GPU hours")), String(6 * 86_709 / 3600));
  assert.match(await seen(row(page, "transcribe")), /no price/);
  assert.equal(await value(cell(page, "chat-8b", "Idle")), "0");
  const idle = cell(page, "state free", "Idle").locator("[data-value]");
  assert.deepEqual([await idle.getAttribute("data-value"), await idle.getAttribute("title")], ["null", "nothing held it"]);
  // The whole has a part without a price: that of the rest is there.
  assert.match(await seen(cell(page, "fleet", "Cost")), /— ?no price for 289 h of it ?[\d,.]+ USD of a part/);
}));

test("open hours and unknown ones are marked", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost");
  assert.match(await seen(page.locator("[data-open]")), /^The hour from 14:00:00 is still open: its amounts grow\.$/);
  assert.match(await seen(page.locator('[data-banner="unknown"]')), /In 2 hours more than 1 % of GPU time is unknown 8 h in all/);
  assert.match(await seen(row(page, "fleet")), /unknown hours.*open/);
  await page.getByRole("button", { name: "Show as a table" }).click();
  const table = page.getByRole("table", { name: "Cost", exact: true });
  assert.match(await seen(table.locator("tbody tr").first()), /^21 Nov 14:00 \(open\)/);
  assert.equal(await table.locator("tbody tr", { hasText: "unknown over 1 %" }).count(), 2);
}));

test("groups, range and what is drawn are in the address, and come back from it", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost");
  const press = async (group, name) => {
    await page.getByRole("group", { name: group, exact: true }).getByRole("button", { name, exact: true }).click();
    await settled(page);
  };
  await press("Group by", "Model");
  await press("Range", "7 days");
  await press("Step", "By hour");
  await press("What is drawn", "GPU hours");
  assert.match(page.url(), /#\/cost\?by=model&range=7d&step=hour&what=hours$/);
  await page.reload();
  await settled(page);
  await until(async () => assert.equal(await page.getByRole("slider", { name: "GPU hours: moment" }).getAttribute("aria-valuemax"), "168"));
  assert.deepEqual(await page.locator(".switch button[aria-pressed=true]").allInnerTexts(), ["Model", "7 days", "GPU hours", "By hour"]);
  assert.equal(await row(page, "NVIDIA A100-SXM4-80GB").count(), 3, "boards have their states: held, stranded, unavailable");
}));

test("a tenant leads to its services, and the filter can be taken away", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost?range=7d");
  await row(page, "research").getByRole("link", { name: "research" }).click();
  await row(page, "pretrain-13b").waitFor();
  await settled(page);
  assert.equal(await row(page, "chat-8b").count(), 0);
  assert.match(page.url(), /by=service&range=7d&tenant=research/);
  assert.deepEqual(await page.locator(".cost-table tr[data-row]").evaluateAll((rows) => rows.map((r) => r.dataset.row)), ["pretrain-13b", "notebooks", "ablation-sweep", "fleet"]);
  assert.match(await seen(row(page, "fleet")), /^Sum /, "of some owners, and not of the fleet");
  assert.equal(await page.getByRole("button", { name: "Spread what is not held" }).count(), 0);
  await page.getByRole("list", { name: "Filters" }).getByRole("button").click();
  await row(page, "chat-8b").waitFor();
  await row(page, "chat-8b").getByRole("link").click();
  await page.getByRole("heading", { name: "chat-8b", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Cost", exact: true }).last().click();
  await row(page, "embeddings").waitFor();
  await settled(page);
  assert.equal(await row(page, "pretrain-13b").count(), 0, "the services of its namespace");
}));

test("the chart is read with the keyboard, group by group with the pointer, and its table is the same", on("healthy", {}, async ({ page, go, server }) => {
  await go("#/cost?by=namespace");
  const chart = page.locator(".chart");
  await until(async () => assert.match(await seen(chart.locator("[data-reading]")), /^21 Nov 14:00 \(open\) [\d.]+ USD$/));
  await page.getByRole("slider", { name: "Cost: moment" }).focus();
  await page.keyboard.press("ArrowLeft");
  await until(async () => assert.match(await seen(chart.locator("[data-reading]")), /^21 Nov 13:00 ([\d.]+) USD$/));
  const answer = await report(server, "by=namespace&since=24h&step=hour&top=8&limit=1000");
  const hour = answer.lines.filter((l) => l.start === "2026-11-21T13:00:00.000Z");
  const whole = hour.reduce((sum, l) => sum + (l.priced_cost ?? 0), 0).toFixed(2);
  assert.match(await seen(chart.locator("[data-reading]")), new RegExp(` ${whole} USD$`));
  const box = await chart.locator(".u-over").boundingBox();
  await chart.locator(".u-over").hover({ position: { x: box.width * 0.9, y: box.height - 8 } });
  await until(async () => assert.match(await seen(chart.locator("[data-reading]")), /^21 Nov 12:00 research · eu-west-1: [\d.]+ USD of [\d.]+ USD$/));
  await page.getByRole("button", { name: "Show as a table" }).click();
  const cells = await page.getByRole("table", { name: "Cost", exact: true }).locator("tbody tr").nth(1).locator("th, td").allInnerTexts();
  assert.equal(cells.at(-1).replace(/\s/g, " "), `${whole} USD`);
}));

test("budgets: bars with numbers, and a word where one is over", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost");
  const budget = (name) => page.locator(`[data-budget="${name}"]`);
  assert.match(await seen(budget("serving")), /^serving nearly used 55,121\.40 USD of 60,000\.00 USD · 92 % tenant serving 1 Nov UTC to 1 Dec UTC$/);
  assert.match(await seen(budget("research")), /over budget .* 121 %/);
  assert.match(await seen(budget("fleet")), /^fleet 61,204 h of 100,000 h · 61 %/);
  assert.equal(await seen(budget("old")), "old 40 % of its money");
  assert.equal(await budget("everything").locator(".meter-track").count(), 0, "what is not known has no bar");
}));

test("the file has what the table is of, and needs the token", on("login", {}, async ({ page, go, server }) => {
  await go("#/cost?by=service&range=7d");
  await page.getByLabel("Token").fill("correct-horse");
  await page.keyboard.press("Enter");
  await row(page, "fleet").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "gpu-cost-service-7d.csv");
  assert.match(readFileSync(await download.path(), "utf8"), /^start,end,/);
  assert.match(server.requests.findLast((r) => r.includes("format=")), /\/cost\?by=service&since=7d&format=csv$/);
}));

test("spread: owners bear what nothing held, and the fleet costs the same", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost");
  const before = await seen(cell(page, "fleet", "Cost"));
  await page.getByRole("button", { name: "Spread what is not held" }).click();
  await cell(page, "research", "Spread").waitFor();
  await settled(page);
  assert.match(await seen(cell(page, "research", "Spread")), /^[\d,.]+ USD$/);
  assert.equal(await seen(cell(page, "fleet", "Cost")), before);
  assert.match(page.url(), /shared=true/);
}));

test("no prices: hours, and how to give some", on("no_prices", {}, async ({ page, go }) => {
  await go("#/cost");
  assert.match(await seen(page.locator('[data-banner="no_prices"]')), /Nothing has a price: these are hours, and no money/);
  await page.getByText("A rule of prices").click();
  assert.match(await seen(page.locator(".command")), /gpu_hour: "2\.95"/);
  assert.equal(await page.getByText("USD").count(), 1, "in the example alone");
  assert.deepEqual(await page.getByRole("columnheader", { name: /cost/i }).allInnerTexts(), []);
  await page.getByRole("slider", { name: "GPU hours: moment" }).waitFor();
}));

test("no usage yet: what has to be in the pipelines, and it appears without a reload", on("no_usage", {}, async ({ page, go, server, advance }) => {
  await go("#/cost");
  assert.match(await seen(page.locator('[data-state="no_usage"]')), /No usage has arrived yet/);
  await page.getByText("It does not appear", { exact: true }).click();
  assert.match(await seen(page.locator(".command")), /logs\/usage: \{receivers: \[gpu_cost\], exporters: \[gpu_store\]\}/);
  server.set("healthy");
  await advance(31_000);
  await row(page, "fleet").waitFor();
}));

test("a store that keeps no usage", on("usage_not_kept", {}, async ({ page, go }) => {
  await go("#/cost");
  assert.match(await seen(page.locator('[data-state="not_kept"]')), /gpu_usage_cost_total/);
}));

test("without the metric store: usage is there, and how much of budgets is used is not known", on("store_unreachable", {}, async ({ page, go }) => {
  await go("#/cost");
  await page.locator('[data-state="F"]').waitFor();
  await row(page, "fleet").waitFor();
  assert.match(await seen(page.getByRole("region", { name: "Budgets" })), /The metric store, which has how much of them is used, does not answer\./);
}));

test("a filter that matches nothing", on("healthy", {}, async ({ page, go }) => {
  await go("#/cost?tenant=nobody");
  assert.equal(await seen(page.locator(".empty")), "There is no usage in this range that these filters match.");
}));

test("names from outside are text", on("hostile", {}, async ({ page, go }) => {
  await go("#/cost?by=service");
  assert.equal(await row(page, "<script>alert('x')</script>").count(), 1);
  assert.equal(await page.locator("main script, main img, main svg[onload]").count(), 0);
}));

test("many services: the greatest eight have a colour, and pages of rows", on("large", {}, async ({ page, go }) => {
  await go("#/cost?by=service");
  const lines = page.getByRole("list", { name: "Lines" }).getByRole("listitem");
  await until(async () => assert.equal(await lines.count(), 11));
  assert.deepEqual((await lines.allInnerTexts()).slice(8), ["others", "not held", "unknown"]);
  assert.equal(await page.locator(".cost-table tr[data-row]").count(), 100);
  assert.equal(await row(page, "fleet").count(), 0, "the sum stands below all rows");
  await page.getByRole("button", { name: "Show more" }).click();
  await page.locator(".cost-table tr[data-row]").nth(199).waitFor();
}));
