// What a browser has to fetch before it can draw: at most 80 KB compressed.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const most = 80_000;
const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const files = ["index.html", "favicon.svg", ...readdirSync(`${dist}assets`).map((name) => `assets/${name}`)];
let total = 0;
for (const name of files) {
  const size = gzipSync(readFileSync(dist + name), { level: 9 }).length;
  total += size;
  console.log(`${String(size).padStart(7)}  ${name}`);
}
console.log(`${String(total).padStart(7)}  of ${most} bytes`);
if (total > most) process.exit(1);
