// The page looks as it did: pictures of the main views are compared with those that
// are kept in pictures/, which the documentation shows too.
//   UPDATE=1 node --test browser/pictures.test.mjs      takes them anew
// Fonts differ between machines, and then nothing can be compared: the tests are
// skipped where texts have other widths than on the machine that took the pictures.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";
import { link, on, settled, withBrowser } from "./harness.mjs";

withBrowser();

const folder = fileURLToPath(new URL("pictures/", import.meta.url));
const out = fileURLToPath(new URL("out/", import.meta.url));
const update = !!process.env.UPDATE;
/** Of the pixels, so many may differ: what rounding does to the edges of letters. */
const tolerated = 0.002;

const views = [
  ["fleet-light", "ready", "#/", { theme: "light" }],
  ["fleet-dark", "ready", "#/", { theme: "dark" }],
  ["nodes-light", "ready", "#/nodes?node=gpu-a100-mig-01", { theme: "light" }],
  ["service-light", "healthy", link("chat-8b", "&window=24h"), { theme: "light" }],
  ["partial-dark", "partial", link("chat-70b", "&window=30m&by=pod"), { theme: "dark" }],
  ["events-light", "ready", "#/events", { theme: "light" }],
  ["cost-light", "ready", "#/cost?by=service&range=7d", { theme: "light", height: 1400 }],
  ["cost-dark", "healthy", "#/cost", { theme: "dark" }],
  ["warming-light", "warming", "#/", { theme: "light" }],
  ["fleet-phone", "ready", "#/", { theme: "light", width: 360, height: 780 }],
];

/** Widths of sample texts: what a picture depends on besides the page. */
const fonts = (page) =>
  page.evaluate(() => {
    const at = document.createElement("canvas").getContext("2d");
    const style = getComputedStyle(document.documentElement);
    return ["--sans", "--mono"].map((name) => {
      at.font = `600 20px ${style.getPropertyValue(name)}`;
      return Math.round(at.measureText("GPU console 0123456789 %").width * 10) / 10;
    });
  });

for (const [name, scenario, hash, options] of views) {
  test(`picture: ${name}`, async (t) => {
    await on(scenario, options, async ({ page, go }) => {
      await go(hash);
      await settled(page);
      const widths = await fonts(page);
      const kept = `${folder}${name}.png`;
      if (update) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(`${folder}fonts.json`, `${JSON.stringify(widths)}\n`);
        await page.screenshot({ path: kept, animations: "disabled" });
        return;
      }
      if (JSON.stringify(widths) !== readFileSync(`${folder}fonts.json`, "utf8").trim()) return t.skip("other fonts than those of the pictures");
      const now = PNG.sync.read(await page.screenshot({ animations: "disabled" }));
      const then = PNG.sync.read(readFileSync(kept));
      assert.deepEqual([now.width, now.height], [then.width, then.height]);
      const difference = new PNG({ width: now.width, height: now.height });
      const pixels = pixelmatch(then.data, now.data, difference.data, now.width, now.height, { threshold: 0.1 });
      if (pixels > tolerated * now.width * now.height) {
        mkdirSync(out, { recursive: true });
        writeFileSync(`${out}${name}-now.png`, PNG.sync.write(now));
        writeFileSync(`${out}${name}-difference.png`, PNG.sync.write(difference));
        assert.fail(`${pixels} pixels differ; see browser/out/${name}-difference.png, and take the pictures anew if it is meant`);
      }
    })();
  });
}
