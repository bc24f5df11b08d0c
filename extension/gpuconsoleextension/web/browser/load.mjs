// What it costs to open the page: node browser/load.mjs [URL [rounds]]
// URL is that of a console with a view, http://localhost:8480/#/service?namespace=…&service=…;
// without one the mock server is opened, whose files are not compressed.
import { serve } from "../mock/server.mjs";
import { launch } from "./browser.mjs";
import { link } from "./harness.mjs";

const [given, rounds = "10"] = process.argv.slice(2);
const server = given ? null : await serve({ scenario: "healthy" });
const url = given ?? server.url + link("chat-8b", "&window=24h");
const browser = await launch();
const times = [];
let bytes = 0;
let requests = 0;
for (let i = 0; i < Number(rounds); i++) {
  // A context of its own has an empty cache.
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  bytes = requests = 0;
  session.on("Network.loadingFinished", (e) => {
    bytes += e.encodedDataLength;
    requests++;
  });
  await page.goto(url, { waitUntil: "commit" });
  await page.locator(url.includes("/service") ? ".uplot canvas" : "table").first().waitFor();
  times.push(await page.evaluate(() => performance.now()));
  await context.close();
}
times.sort((a, b) => a - b);
const at = (q) => Math.round(times[Math.min(times.length - 1, Math.floor(times.length * q))]);
console.log(`${requests} requests, ${bytes} bytes transferred until the first chart or table; ${at(0.5)} ms (median), ${at(0.9)} ms (90 %) of ${times.length} rounds with an empty cache`);
await browser.close();
await server?.close();
