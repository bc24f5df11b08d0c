// Pictures of every view, to be looked at: node browser/screenshots.mjs [folder] [name…]
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { serve } from "../mock/server.mjs";
import { launch, moment, open } from "./browser.mjs";

const service = "#/service?cluster=eu-west-1&namespace=inference&service=";
const views = [
  ["fleet", "ready", "#/"],
  ["nodes", "ready", "#/nodes"],
  ["nodes-open", "ready", "#/nodes", async (page) => { for (const n of [1, 2, 3]) await page.locator(".node > details > summary").nth(n).click(); }],
  ["service", "healthy", `${service}chat-8b&window=1h`],
  ["partial", "ready", `${service}chat-70b&window=30m`],
  ["pods", "gaps", `${service}chat-8b&window=1h&by=pod`],
  ["gaps", "gaps", `${service}chat-8b&window=1h`],
  ["tables", "gaps", `${service}chat-8b&window=5m`, async (page) => page.getByRole("button", { name: "Show as tables" }).click()],
  ["hover", "healthy", `${service}chat-8b&window=24h`, async (page) => page.locator(".u-over").first().hover({ position: { x: 150, y: 60 } })],
  ["events", "ready", "#/events"],
  ["cost", "ready", "#/cost"],
  ["cost-model", "ready", "#/cost?by=model&range=30d"],
  ["cost-spread", "ready", "#/cost?by=service&range=7d&shared=true"],
  ["cost-table", "ready", "#/cost?by=service", async (page) => page.getByRole("button", { name: "Show as a table" }).click()],
  ["cost-young", "young_usage", "#/cost"],
  ["cost-unpriced", "no_prices", "#/cost?by=namespace"],
  ["cost-no-usage", "no_usage", "#/cost"],
  ["state-a", "not_enabled", "#/"],
  ["state-b", "no_services", "#/"],
  ["one-machine", "one_machine", "#/"],
  ["node", "ready", "#/node?cluster=eu-west-1&node=gpu-h100-eu-02"],
  ["device", "ready", "#/node?cluster=eu-west-1&node=gpu-a100-mig-01", (page) => page.locator(".device-name").first().click()],
  ["state-c", "warming", "#/"],
  ["state-d", "scraper_down", "#/"],
  ["state-f", "store_unreachable", "#/"],
  ["state-g", "not_stored", "#/"],
  ["disk-full", "disk_full", "#/"],
  ["stale", "stale", `${service}chat-8b`],
  ["busy", "busy", "#/"],
  ["login", "login", "#/"],
  ["hostile", "hostile", "#/"],
  ["large", "large", "#/"],
  ["large-nodes", "large", "#/nodes"],
];
const shapes = [
  ["light", { width: 1440, height: 900, theme: "light" }],
  ["dark", { width: 1440, height: 900, theme: "dark" }],
  ["360", { width: 360, height: 780, theme: "light", scale: 2 }],
  ["1920", { width: 1920, height: 1080, theme: "dark" }],
  ["4k", { width: 3840, height: 2160, theme: "light" }],
];

const [folder = "browser/out", ...only] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
const server = await serve({ time: () => moment });
for (const [shape, options] of shapes) {
  for (const [name, scenario, hash, act] of views) {
    if (only.length && !only.includes(`${name}-${shape}`) && !only.includes(name) && !only.includes(shape)) continue;
    server.set(scenario);
    const { page, context, problems } = await open(browser, options);
    await page.goto(server.url + hash);
    await page.locator(".skeleton, .chart.waiting").first().waitFor({ state: "detached" });
    await page.waitForTimeout(150);
    if (act) await act(page);
    await page.waitForTimeout(150);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(folder, `${name}-${shape}.png`), fullPage: true });
    if (problems.filter((p) => !/status of (401|502|503|404)/.test(p)).length) console.log(name, shape, problems);
    await context.close();
  }
}
await browser.close();
await server.close();
