// The pictures of README.md, of what `make run` shows: node live/pictures.mjs [folder]
// It takes six minutes, so that the charts have something to tell, and the ports
// that `make run` takes.
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PNG } from "pngjs";
import { launch, open } from "../browser/browser.mjs";
import { seen, settled } from "../browser/harness.mjs";
import { eventually, root } from "./world.mjs";

const [folder = join(root, "docs/pictures")] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const url = "http://localhost:8480/";
const llama = "#/service?namespace=inference&service=llama&window=5m";
const views = [
  ["fleet", "#/", { width: 1280, height: 800 }],
  ["service", llama, { width: 1280, height: 800 }],
  ["cost", "#/cost", { width: 1280, height: 800 }],
];

const demo = spawn(join(root, "bin/demo"), ["--new-pod-at", "200s", "--xid-at", "280s", "--down-at", "120s", "--down-for", "40s"], { stdio: ["ignore", "inherit", "inherit"] });
const stop = () => demo.kill("SIGTERM");
process.once("exit", stop);
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
const api = (path) => fetch(`${url}api/v1/${path}`).then((r) => r.json());

await eventually("the demo answers", () => api("status"), 60);
await sleep(330);
const fault = await fetch("http://localhost:9481/fault", { method: "POST", body: JSON.stringify({ node: "gpu-node-a", kind: "exporter_down" }) });
if (!fault.ok) throw new Error(await fault.text());
await eventually("llama is partial", async () => (await api("services")).services.some((s) => s.service === "llama" && s.partial), 60);
await sleep(4);

const browser = await launch();
for (const theme of ["light", "dark"]) {
  for (const [name, hash, shape] of views) {
    const { page, context } = await open(browser, { ...shape, theme, clock: false });
    await page.goto(url + hash);
    await settled(page);
    await seen(page.locator("h1").first());
    await sleep(0.5);
    const path = join(folder, `${name}-${theme}.png`);
    // Again, without an alpha channel and as small as zlib can.
    const png = PNG.sync.read(await page.screenshot({ fullPage: true }));
    writeFileSync(path, PNG.sync.write(png, { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: -1 }));
    console.log(path);
    await context.close();
  }
}
await browser.close();
process.removeListener("exit", stop);
await new Promise((done) => { demo.once("exit", done); stop(); });
