// States A to G, staleness, refusals and the login, each as a reader meets it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { link, on, seen, settled, until, withBrowser } from "./harness.mjs";

withBrowser();

const panel = (page, letter) => page.locator(`[data-state="${letter}"]`);

test("A: nothing has ever arrived: the command that would help", on("not_enabled", {}, async ({ page, go }) => {
  await go();
  assert.match(await seen(panel(page, "A")), /GPU telemetry is not enabled.*otelcol-gpu --config config\/standalone\.yaml/s);
  assert.equal(await page.locator("table").count(), 0);
  assert.equal(await page.locator("[data-live]").innerText(), "GPU telemetry is not enabled");
}));

test("A: the first data appears without a reload", on("not_enabled", {}, async ({ page, go, server, advance }) => {
  await go();
  server.set("ready");
  await advance(6000);
  assert.equal(await panel(page, "A").count(), 0);
  assert.equal(await page.locator("tr[data-row]").count(), 11);
}));

test("B: devices report and no pod has one: they are there, and a pod that would", on("no_services", {}, async ({ page, go }) => {
  await go();
  assert.match(await seen(panel(page, "B")), /No service has a GPU.*32 devices report/s);
  await panel(page, "B").getByText("A pod with a GPU", { exact: true }).click();
  await until(async () => assert.match(await seen(panel(page, "B")), /nvidia\.com\/gpu: 1/));
  assert.equal(await page.locator('[data-figure="GPUs"] [data-value]').getAttribute("data-value"), "32");
  assert.equal(await page.locator(".node").count(), 4);
  await page.locator(".node summary").first().click();
  await page.locator(".node").first().getByRole("link", { name: "Charts and health of" }).click();
  await page.locator(".uplot").nth(5).waitFor();
  await go("#/nodes");
  assert.equal(await panel(page, "B").count(), 0, "it is no wall in front of what is there");
}));

test("B: one machine without Kubernetes: lines, and the next step there", on("one_machine", {}, async ({ page, go }) => {
  await go();
  await page.locator(".uplot").nth(5).waitFor();
  assert.equal(await page.getByRole("group", { name: "Display window" }).getByRole("button", { pressed: true }).innerText(), "5 min", "a young store opens with what it has");
  assert.match(await seen(page.locator(".node")), /workstation.*GPU 0.*GPU 1/s);
  const text = await seen(panel(page, "B"));
  assert.match(text, /No service is known.*2 devices report.*Slurm/s);
  assert.doesNotMatch(text, /apiVersion|nvidia\.com\/gpu/);
  await panel(page, "B").getByText("A message when a GPU fails").click();
  assert.match(await seen(panel(page, "B")), /config\/webhooks\.yaml/);
}));

test("C: warming up, and the numbers appear without a reload", on("warming", {}, async ({ page, go, advance }) => {
  await go();
  await page.evaluate(() => (window.same = true));
  assert.match(await seen(panel(page, "C")), /Warming up.*Metrics should appear within 90 seconds/s);
  const row = page.locator('tr[data-row="chat-8b"]');
  assert.match(await seen(row), /warming up/);
  assert.equal(await row.locator("td").nth(1).locator("[data-value]").getAttribute("data-value"), "null", "no data is no zero");
  await advance(30_000);
  assert.equal(await panel(page, "C").count(), 0);
  await until(async () => assert.match(await seen(row), /\d+ %/));
  assert.equal(await page.evaluate(() => window.same), true, "the page was loaded anew");
  await until(async () => assert.equal(await page.locator("[data-live]").innerText(), "Ready"));
}));

test("C: a service says so itself", on("warming", {}, async ({ page, go }) => {
  await go(link("chat-8b"));
  assert.match(await seen(page.locator('[data-banner="warming"]')), /Metrics should appear within 90 seconds/);
}));

test("D: the scraper is down: says since when, names exporters, shows the past as stale", on("scraper_down", {}, async ({ page, go }) => {
  await go();
  assert.match(await seen(panel(page, "D")), /The scraper is down.*14 down.*5 min 12 s old.*gpu-h100-eu-01/s);
  assert.match(await seen(page.locator('tr[data-row="chat-8b"]')), /stale.*stale 5 min 12 s/s);
  assert.match(await seen(page.locator("[data-as-of]")), /stale: data 5 min 12 s old/);
}));

test("G: what arrives cannot be stored: why and since when, and no exporter is blamed", on("not_stored", {}, async ({ page, go }) => {
  await go();
  assert.match(await seen(panel(page, "G")), /What arrives cannot be stored.*Samples are not stored: the disk is full, since .*14,906 refused.*Too little is free.*make room.*5 min 12 s old/s);
  assert.match(await seen(page.locator('tr[data-row="chat-8b"]')), /stale/);
  assert.equal(await page.getByText("curl").count(), 0);
}));

test("G: nothing was ever stored: a disk, and not how to begin", on("never_stored", {}, async ({ page, go }) => {
  await go();
  assert.match(await seen(panel(page, "G")), /the disk is full.*Nothing was stored before/s);
  assert.equal(await page.locator("table").count(), 0);
}));

test("a full disk is on every page while the data is still current", on("disk_full", {}, async ({ page, go }) => {
  for (const hash of ["#/", "#/nodes", "#/events", link("chat-8b")]) {
    await go(hash);
    assert.match(await seen(page.locator('[data-banner="store"]')), /Samples are not stored: the disk is full.*Events are not stored/s);
  }
}));

test("E: partial: the banner names the missing pods, averages are there, the charts stay", on("partial", {}, async ({ page, go }) => {
  await go(link("chat-70b"));
  const banner = page.locator('[data-banner="partial"]');
  assert.match(await seen(banner), /Partial: 2 of 6 settled pods report nothing The averages are over the 4 pods that report.*Likely cause/s);
  assert.deepEqual(await banner.locator(".names li").allInnerTexts(), ["chat-70b-0", "chat-70b-1"]);
  assert.match(await seen(page.locator('[data-figure="Utilization"]')), /\d+ %/);
  assert.equal(await page.locator(".uplot").count(), 4);
  assert.match(await seen(page.locator('tr[data-row="chat-70b-0"]')), /missing.*exporter down/s);
  const cause = banner.locator(".causes li", { hasText: "gpu-h100-eu-01" }).first();
  assert.match(await seen(cause), /The exporter of node gpu-h100-eu-01 does not answer\./);
  await banner.getByText("Dashboard filter mismatch?").click();
  assert.match(await seen(banner), /the service “chat-70b” in the namespace “inference” of the cluster “eu-west-1”/);
  await cause.getByRole("link").first().click();
  await page.locator(".uplot").nth(5).waitFor();
  await settled(page);
  assert.equal(await page.locator("h1").innerText(), "gpu-h100-eu-01");
}));

test("E: no data from any pod is not called partial, and not zero", on("ready", {}, async ({ page, go }) => {
  await go(link("speech", "", "us-east-1"));
  assert.doesNotMatch(await seen(page.locator(".head-line")), /data no data/);
  assert.match(await seen(page.locator('[data-banner="no_data"]')), /All 2 settled pods are missing.*not zero/s);
  assert.equal(await page.locator('[data-banner="partial"]').count(), 0);
  assert.equal(await page.locator(".cards [data-figure] .figure-value [data-value='null']").count(), 9);
}));

test("F: the store cannot be reached: why, and no chart that looks like no load", on("store_unreachable", {}, async ({ page, go }) => {
  for (const hash of ["#/", "#/nodes", link("chat-8b")]) {
    await go(hash);
    assert.match(await seen(panel(page, "F")), /The metric store cannot be reached.*connection refused/s);
    assert.equal(await page.locator(".uplot, table").count(), 0);
  }
  await go("#/events");
  assert.ok((await page.locator(".event").count()) > 5, "events do not depend on the store");
}));

test("F: it comes back without a reload", on("store_html", {}, async ({ page, go, server, advance }) => {
  await go();
  assert.match(await seen(panel(page, "F")), /not a Prometheus API/);
  server.set("healthy");
  await advance(6000);
  assert.equal(await page.locator("tr[data-row]").count(), 11);
}));

test("502 of one question: the last answer stays and is called so", on("healthy", {}, async ({ page, go, advance }) => {
  await go();
  await page.route("**/api/v1/services*", (route) =>
    route.fulfill({ status: 502, contentType: "application/json", body: JSON.stringify({ error: "The store did not answer in time.", reason: "upstream_timeout", detail: "It had 5 s." }) }),
  );
  await advance(16_000);
  const banner = page.locator('[data-banner="upstream_timeout"]');
  await banner.waitFor();
  assert.match(await seen(banner), /The metric store cannot be reached.*did not answer in time.*What stands below is the last answer.*Asking again/s);
  assert.equal(await page.locator("tr[data-row]").count(), 11);
}));

test("an answer that is not the API's: a proxy's page", on("healthy", {}, async ({ page, go }) => {
  await page.route("**/api/v1/**", (route) => route.fulfill({ status: 200, contentType: "text/html", body: "<html>Sign in</html>" }));
  await go();
  assert.match(await seen(page.locator('[data-state="offline"]')), /not JSON.*proxy/s);
}));

test("F: while a page is open: it takes the place of the numbers", on("healthy", {}, async ({ page, go, server, advance }) => {
  await go(link("chat-8b"));
  server.set("store_unreachable");
  await advance(16_000);
  await panel(page, "F").waitFor();
  await until(async () => assert.equal(await page.locator(".uplot, .cards").count(), 0));
}));

test("stale: the age is told, and the numbers are marked", on("stale", {}, async ({ page, go }) => {
  await go(link("chat-8b"));
  assert.match(await seen(page.locator('[data-banner="stale"]')), /Stale: this data is 4 min 12 s old/);
  assert.match(await seen(page.locator(".head-line")), /stale/);
}));

test("stale: data grows old by itself when the server goes silent", on("healthy", {}, async ({ page, go, server, advance }) => {
  await go();
  assert.doesNotMatch(await seen(page.locator("[data-as-of]")), /stale/);
  await page.route("**/api/v1/**", (route) => route.abort());
  await advance(60_000);
  assert.match(await seen(page.locator("[data-as-of]")), /stale: data 1 min/);
  await until(async () => assert.equal(await page.locator('[data-banner="offline"]').count(), 1, "said once"));
  assert.match(await seen(page.locator('[data-banner="offline"]')), /does not answer/);
  assert.equal(await page.locator("tr[data-row]").count(), 11, "what was known stays");
  assert.ok(server.requests.length > 0);
}));

test("503: said kindly, and asked again when the server says", on("busy", {}, async ({ page, go, server, advance }) => {
  await go();
  assert.match(await seen(panel(page, "busy")), /busy with other readers.*Asking again in \d s/s);
  await advance(1000);
  server.set("ready");
  await advance(1500);
  assert.equal(await page.locator("tr[data-row]").count(), 11);
  // A busy machine takes its time between the steps, which counts.
  const asked = server.arrivals.filter((_, i) => server.requests[i].includes("/services"));
  assert.equal(asked.length, 2, "asked again once");
  const [first, second] = asked;
  assert.ok(second - first >= 2000, `asked again after ${second - first} ms, before Retry-After`);
}));

test("login: a form, a wrong token, the right one, and out again", on("login", {}, async ({ page, go, server }) => {
  await go();
  const field = page.getByLabel("Token");
  assert.equal(await field.evaluate((f) => f === document.activeElement), true);
  await field.fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await until(async () => assert.match(await seen(page.getByRole("alert")), /does not accept/));
  await page.getByLabel("Token").fill("correct-horse");
  await page.keyboard.press("Enter");
  await page.locator("tr[data-row]").first().waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("gpu-console.token")), "correct-horse");
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("correct-horse")), false);
  assert.ok(!server.requests.some((r) => r.includes("correct-horse")), "the token is in an address");
  await page.reload();
  await page.locator("tr[data-row]").first().waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  await until(async () => assert.equal(await page.evaluate(() => sessionStorage.getItem("gpu-console.token")), null));
}));

test("a service that nobody knows is said to be unknown", on("healthy", {}, async ({ page, go }) => {
  await go(link("gone"));
  assert.match(await seen(panel(page, "not_found")), /Nothing is known of this service/);
}));
