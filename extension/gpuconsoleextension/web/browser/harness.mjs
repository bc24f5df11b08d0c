// What all browser tests share: one Chromium, a server whose time the test moves,
// and the rule that a page complains of nothing and asks nobody but its own origin.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { serve } from "../mock/server.mjs";
import { launch, moment, open, patience } from "./browser.mjs";

let browser;

/** Starts Chromium for the tests of a file. */
export function withBrowser() {
  before(async () => {
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
  });
}

/** Complaints that belong to a scenario: the browser reports every answer above 399. */
const expected = /Failed to load resource: (the server responded with a status of (401|404|502|503)|net::ERR_FAILED)/;

/**
 * Runs a test on a page that plays a scenario. `advance` moves the time of page and
 * server together; afterwards the page must have stayed at its origin and content.
 */
export function on(scenario, options, test) {
  return async () => {
    let now = moment;
    const server = await serve({ scenario, time: () => now, prefix: options.prefix });
    const { page, context, problems } = await open(browser, options);
    const advance = async (ms) => {
      // In steps, so that what is asked for every few seconds is, and is answered within its step.
      for (let left = ms; left > 0; left -= 1000) {
        now += Math.min(1000, left);
        await page.clock.setFixedTime(now);
        await page.clock.runFor(Math.min(1000, left));
        while (page.underway > 0) {
          await new Promise((done) => setTimeout(done, 5));
          await drawn(page);
        }
      }
      await settled(page);
    };
    const go = async (hash = "#/") => {
      await page.goto(server.url + hash);
      await settled(page);
    };
    try {
      await test({ page, context, server, advance, go });
      assert.deepEqual(problems.filter((p) => !expected.test(p)), [], "the page complains");
      assert.deepEqual([...problems.origins], [new URL(server.url).origin], "requests leave the origin");
    } finally {
      await context.close();
      await server.close();
    }
  };
}

/**
 * Waits until no request is on its way and nothing is left to draw. What a busy page has
 * not got to yet is no quiet: it draws twice each time before it is looked at.
 */
export async function settled(page) {
  for (let quiet = 0; quiet < 4; quiet = page.underway > 0 ? 0 : quiet + 1) {
    await new Promise((done) => setTimeout(done, 20));
    await drawn(page);
  }
  await page.locator(".skeleton, .chart.waiting").first().waitFor({ state: "detached" });
}

/** Waits until the page has done what it had to do for two frames; one that is loading anew has not. */
async function drawn(page) {
  try {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
  } catch (error) {
    if (!/context was destroyed|navigat/i.test(String(error))) throw error;
  }
}

export const link = (service, more = "", cluster = "eu-west-1", namespace = "inference") =>
  `#/service?${new URLSearchParams({ cluster, namespace, service })}${more}`;

/** Tries a check until it holds: what follows a click takes a moment, and longer on a busy machine. */
export async function until(check) {
  for (const end = Date.now() + patience; ; await new Promise((done) => setTimeout(done, 50))) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** The text as a reader sees it: one kind of space. */
export const seen = async (locator) => (await locator.innerText()).replace(/[\s\u00a0\u202f]+/g, " ").trim();
