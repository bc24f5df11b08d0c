// Capacity in Chromium: what fits, what is stranded, who waits, and what is said where nothing is known.
import assert from "node:assert/strict";
import { test } from "node:test";
import { on, seen, settled, until, withBrowser } from "./harness.mjs";

withBrowser();

const rows = (page, region) => page.getByRole("region", { name: region, exact: true }).locator("tr[data-row]");

test("every number is the API's, and another size is asked for", on("ready", {}, async ({ page, go, server }) => {
  await go("#/capacity");
  const answer = await (await fetch(`${server.url}api/v1/capacity?size=8`)).json();
  assert.equal(await rows(page, "Free devices").count(), answer.pools.length);
  const numbers = await rows(page, "Free devices").first().locator("td [data-value]").evaluateAll((all) => all.map((e) => e.dataset.value));
  const { allocatable, requested, free, stranded, fits, fragmentation } = answer.pools[0];
  assert.deepEqual(numbers, [allocatable, requested, free, stranded, fits, fragmentation].map(String));
  assert.match(await seen(page.locator('[data-banner="free_but_waiting"]')), /pods wait for 16/);
  assert.match(await seen(rows(page, "Waiting pods").first()), /research .* team-a insufficient gpu nvidia\.com\/gpu 2 16 1 h 30 min/);
  await page.getByRole("group", { name: "Devices of a request" }).getByRole("button", { name: "2", exact: true }).click();
  await settled(page);
  await page.getByRole("columnheader", { name: "Requests of 2" }).first().waitFor();
  await page.getByRole("group", { name: "Nodes" }).getByRole("button", { name: "Stranded" }).click();
  await settled(page);
  assert.match(page.url(), /#\/capacity\?size=2&show=stranded$/);
  await until(async () => assert.match(await seen(rows(page, "Nodes").first()), /cordoned/));
}));

test("without gpu_scheduling: why, and what adds it", on("one_machine", {}, async ({ page, go }) => {
  await go("#/capacity");
  assert.match(await seen(page.locator('[data-state="no_scheduling"]')), /Capacity is not reported .*gpu_scheduling/);
  assert.match(await seen(page.locator(".command")), /scheduler\.yaml/);
}));

test("names from outside are text", on("hostile", {}, async ({ page, go }) => {
  await go("#/capacity?show=all");
  assert.equal(await page.locator("main script, main img, main svg[onload]").count(), 0);
}));
