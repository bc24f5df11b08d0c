// Every view in both themes and on a narrow screen: axe finds nothing serious, nothing scrolls sideways.
import assert from "node:assert/strict";
import { test } from "node:test";
import axe from "axe-core";
import { link, on, settled, withBrowser } from "./harness.mjs";

withBrowser();

const openAll = async (page) => {
  for (const s of await page.locator("summary").all()) if (await s.isVisible()) await s.click();
};
const views = [
  ["fleet", "ready", "#/"],
  ["nodes", "ready", "#/nodes", openAll],
  ["node", "ready", "#/node?cluster=eu-west-1&node=gpu-a100-mig-01"],
  ["node with reasons", "ready", "#/node?cluster=eu-west-1&node=gpu-h100-eu-02"],
  ["service", "ready", link("chat-70b"), openAll],
  ["service by pod", "gaps", link("chat-8b", "&by=pod")],
  ["service as tables", "gaps", link("chat-8b", "&window=5m"), (page) => page.getByRole("button", { name: "Show as tables" }).click()],
  ["service without data", "ready", link("speech", "", "us-east-1")],
  ["events", "ready", "#/events", openAll],
  ["capacity", "ready", "#/capacity?size=2&show=all"],
  ["capacity that is not reported", "one_machine", "#/capacity"],
  ["cost", "ready", "#/cost?by=service&range=7d&shared=true", openAll],
  ["cost as a table", "ready", "#/cost?by=model&tenant=", (page) => page.getByRole("button", { name: "Show as a table" }).click()],
  ["cost without prices", "no_prices", "#/cost?by=namespace&namespace=inference", openAll],
  ["cost without usage", "no_usage", "#/cost", openAll],
  ["A", "not_enabled", "#/"],
  ["B", "one_machine", "#/", openAll],
  ["C", "warming", "#/"],
  ["D", "scraper_down", "#/"],
  ["F", "store_unreachable", "#/"],
  ["G", "not_stored", "#/"],
  ["a full disk", "disk_full", link("chat-8b")],
  ["stale", "stale", link("chat-8b")],
  ["busy", "busy", "#/"],
  ["login", "login", "#/"],
  ["hostile", "hostile", "#/"],
];

for (const [name, scenario, hash, act] of views) {
  for (const theme of ["light", "dark"]) {
    test(`axe: ${name}, ${theme}`, on(scenario, { theme }, async ({ page, go }) => {
      await go(hash);
      if (act) await act(page);
      await settled(page);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
      const told = violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
      assert.deepEqual(told, []);
    }));
  }
  for (const width of [360, 768, 1920, 3840]) {
    test(`no sideways scroll: ${name}, ${width} px`, on(scenario, { width, height: 800 }, async ({ page, go }) => {
      await go(hash);
      if (act) await act(page);
      await settled(page);
      const { wide, culprits } = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth - innerWidth,
        culprits: [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .command")).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)),
      }));
      assert.ok(wide <= 0, `${wide} px too wide: ${culprits.join(" | ")}`);
    }));
  }
}
