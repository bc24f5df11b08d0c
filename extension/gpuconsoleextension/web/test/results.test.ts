// What the tests of the page report, and how the results of a second run are taken over.
import { resolve } from "node:path";
import { expect, test } from "vitest";
// @ts-expect-error a script without types
import results, { again, failed, fromVitest } from "../scripts/results.mjs";

type Line = { Action: string; Test: string; File: string };
const file = resolve("browser/a.test.mjs");
const event = (type: string, name: string, more = {}) => ({ type: `test:${type}`, data: { name, file, ...more } });
const report = async (...events: unknown[]) => {
  let text = "";
  for await (const line of results(events)) text += line;
  return text;
};
const told = (text: string) => text.split("\n").filter(Boolean).map((l) => JSON.parse(l) as Line).map((t) => [t.Action, t.Test]);

test("a test that passes alone counts as passed, and is named; one that fails again counts once", async () => {
  const first = await report(event("pass", "good"), event("fail", "chance (1|2)"), event("fail", "bad"), event("pass", file));
  expect(first).toMatch(/^\{"Action":"pass".*"Test":"good"/);
  expect(failed(first)).toEqual([["browser/a.test.mjs", "^chance \\(1\\|2\\)$"], ["browser/a.test.mjs", "^bad$"]]);
  const one = again(first, await report(event("pass", "good", { skip: "not asked for" }), event("pass", "chance (1|2)")));
  expect(one.flaky).toEqual(["browser/a.test.mjs: chance (1|2)"]);
  const two = again(one.text, await report(event("fail", "bad")));
  expect(two.flaky).toEqual([]);
  expect(told(two.text)).toEqual([["pass", "good"], ["pass", "chance (1|2)"], ["fail", "bad"]]);
});

test("a file that fails outside of its tests is run again as a whole", async () => {
  const hook = { details: { error: { failureType: "hookFailed" } } };
  const first = await report(event("fail", "one", hook), event("fail", "two", hook));
  expect(failed(first)).toEqual([["browser/a.test.mjs", ""]]);
  expect(told(again(first, await report(event("pass", "one"), event("pass", "two"))).text)).toEqual([["pass", "one"], ["pass", "two"]]);

  const broken = await report(event("fail", file));
  expect(told(broken)).toEqual([["fail", "browser/a.test.mjs"]]);
  expect(failed(broken)).toEqual([["browser/a.test.mjs", ""]]);
  const better = again(broken, await report(event("pass", "one"), event("pass", "two")));
  expect(better.flaky).toEqual(["browser/a.test.mjs: browser/a.test.mjs"]);
  expect(told(better.text)).toEqual([["pass", "one"], ["pass", "two"]]);
  expect(told(again(broken, broken).text)).toEqual([["fail", "browser/a.test.mjs"]]);
});

test("what vitest wrote", () => {
  const lines = fromVitest({
    testResults: [
      { name: file, status: "failed", assertionResults: [{ status: "passed", fullName: "one" }, { status: "failed", fullName: "two" }, { status: "pending", fullName: "three" }] },
      { name: resolve("test/b.test.ts"), status: "failed", assertionResults: [] },
    ],
  }).join("");
  expect(told(lines)).toEqual([["pass", "one"], ["fail", "two"], ["skip", "three"], ["fail", "test/b.test.ts"]]);
});
