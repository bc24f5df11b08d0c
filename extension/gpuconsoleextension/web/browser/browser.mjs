// Chromium, as the tests and the screenshots use it.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const candidates = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].filter(Boolean);

/** Starts Chromium: the one that CHROMIUM names, else that of the system. */
export function launch() {
  const executablePath = candidates.find((path) => existsSync(path));
  if (!executablePath) throw new Error("No Chromium found: apt-get install chromium, or set CHROMIUM to its path.");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"], timeout: patience });
}

/** The time that all screenshots and tests are taken at. */
export const moment = Date.parse("2026-11-21T14:05:09Z");

/** Milliseconds after which a test gives up waiting: only what hangs takes as long. */
export const patience = 120_000;

/** A page that knows no other time than `moment` until its clock is moved. */
export async function open(browser, { width = 1440, height = 900, theme = "light", scale = 1, clock = true } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, deviceScaleFactor: scale, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce" });
  // Tests wait for what they are about, however long a busy machine takes.
  context.setDefaultTimeout(patience / 2);
  context.on("page", (opened) => {
    // How many requests are on their way.
    opened.underway = 0;
    opened.on("request", () => opened.underway++);
    opened.on("requestfinished", () => opened.underway--);
    opened.on("requestfailed", () => opened.underway--);
  });
  const page = await context.newPage();
  // Timers go on by themselves, dates do not: an age does not depend on how long a test took.
  if (clock) await page.clock.install({ time: moment });
  if (clock) await page.clock.setFixedTime(moment);
  const problems = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && problems.push(m.text()));
  page.on("pageerror", (e) => problems.push(String(e)));
  page.on("request", (r) => problems.origins?.add(new URL(r.url()).origin));
  problems.origins = new Set();
  return { page, context, problems };
}
