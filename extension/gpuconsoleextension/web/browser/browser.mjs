// Chromium, as the tests and the screenshots use it.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const candidates = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].filter(Boolean);

/** Starts Chromium: the one that CHROMIUM names, else that of the system. */
export function launch() {
  const executablePath = candidates.find((path) => existsSync(path));
  if (!executablePath) throw new Error("No Chromium found: apt-get install chromium, or set CHROMIUM to its path.");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"] });
}

/** The time that all screenshots and tests are taken at. */
export const moment = Date.parse("2026-11-21T14:05:09Z");

/** A page that knows no other time than `moment` until its clock is moved. */
export async function open(browser, { width = 1440, height = 900, theme = "light", scale = 1, clock = true } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, deviceScaleFactor: scale, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce" });
  const page = await context.newPage();
  if (clock) await page.clock.install({ time: moment });
  const problems = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && problems.push(m.text()));
  page.on("pageerror", (e) => problems.push(String(e)));
  page.on("request", (r) => problems.origins?.add(new URL(r.url()).origin));
  problems.origins = new Set();
  // How many requests are on their way.
  page.underway = 0;
  page.on("request", () => page.underway++);
  page.on("requestfinished", () => page.underway--);
  page.on("requestfailed", () => page.underway--);
  return { page, context, problems };
}
