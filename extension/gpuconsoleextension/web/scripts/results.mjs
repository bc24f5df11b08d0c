// Test results, one a line, as `go test -json` has them: scripts/test counts them.
// A reporter of node:test; and by itself:
//   node scripts/results.mjs vitest FILE     what vitest wrote with its json reporter, as such lines
//   node scripts/results.mjs failed FILE     what is to be run once more, one a line: its file, tab, its name as a pattern
//   node scripts/results.mjs again FIRST SECOND
//     FIRST with the results of SECOND, the run after `failed`; prints the names of those that passed there
import { readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { argv, cwd } from "node:process";
import { fileURLToPath } from "node:url";

const line = (action, file, name, more = {}) => `${JSON.stringify({ Action: action, Package: "console", Test: name, File: relative(cwd(), file), ...more })}\n`;

/** What failed outside of a test is reported as the file's, which is then run once more as a whole. */
export default async function* results(source) {
  for await (const { type, data } of source) {
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    const ofFile = data.name.endsWith(".mjs");
    if (ofFile && type === "test:pass") continue;
    const whole = ofFile || data.details?.error?.failureType === "hookFailed";
    yield line(data.skip !== undefined ? "skip" : type === "test:pass" ? "pass" : "fail", data.file, ofFile ? relative(cwd(), data.name) : data.name, whole ? { Whole: true } : {});
  }
}

export function fromVitest({ testResults }) {
  const action = { passed: "pass", failed: "fail" };
  return testResults.flatMap(({ name: file, status, assertionResults }) =>
    status === "failed" && !assertionResults.some((t) => t.status === "failed")
      ? [line("fail", file, relative(cwd(), file), { Whole: true })]
      : assertionResults.map((t) => line(action[t.status] ?? "skip", file, t.fullName)),
  );
}

const parse = (text) => text.split("\n").filter(Boolean).map((l) => JSON.parse(l));

/** Files and names, as patterns that match nothing else; a file alone is to be run as a whole. */
export function failed(text) {
  const bad = parse(text).filter((t) => t.Action === "fail");
  const whole = new Set(bad.filter((t) => t.Whole).map((t) => t.File));
  const tests = bad.filter((t) => !whole.has(t.File)).map((t) => [t.File, `^${t.Test.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`]);
  return [...[...whole].map((file) => [file, ""]), ...tests];
}

/** The results of a first run, of which what failed is taken from a second; and what passed there alone. */
export function again(text, second) {
  const now = parse(second);
  const of = (file) => now.filter((t) => t.File === file);
  const key = (t) => `${t.File}: ${t.Test}`;
  const first = parse(text);
  const known = new Set(first.map(key));
  const flaky = [];
  const lines = first.flatMap((t) => {
    if (t.Action !== "fail" || of(t.File).some((n) => n.Action === "fail")) return [t];
    // The file itself: its tests may not have run before.
    const better = t.Test === t.File ? of(t.File).filter((n) => !known.has(key(n))) : of(t.File).filter((n) => n.Test === t.Test && n.Action === "pass");
    if (!better.length && !(t.Test === t.File && of(t.File).some((n) => n.Action === "pass"))) return [t];
    flaky.push(key(t));
    return better;
  });
  return { text: lines.map((t) => `${JSON.stringify(t)}\n`).join(""), flaky };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [command, ...files] = argv.slice(2);
  const [one, two] = files.map((name) => readFileSync(name, "utf8"));
  switch (command) {
    case "vitest":
      process.stdout.write(fromVitest(JSON.parse(one)).join(""));
      break;
    case "failed":
      for (const [file, pattern] of failed(one)) console.log(`${file}\t${pattern}`);
      break;
    case "again": {
      const { text, flaky } = again(one, two);
      writeFileSync(files[0], text);
      for (const name of flaky) console.log(name);
      break;
    }
  }
}
