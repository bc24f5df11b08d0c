// Test results, one a line, as `go test -json` has them: scripts/test counts them.
// A reporter of node:test; and by itself, for what vitest wrote with its json reporter:
//   node scripts/results.mjs FILE
import { readFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const line = (result, name) => `${JSON.stringify({ Action: result, Package: "console", Test: name })}\n`;

export default async function* results(source) {
  for await (const { type, data } of source) {
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite" || data.name.endsWith(".mjs")) continue;
    yield line(data.skip !== undefined ? "skip" : type === "test:pass" ? "pass" : "fail", data.name);
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const action = { passed: "pass", failed: "fail" };
  for (const file of JSON.parse(readFileSync(argv[2], "utf8")).testResults) {
    for (const t of file.assertionResults) process.stdout.write(line(action[t.status] ?? "skip", t.fullName));
  }
}
