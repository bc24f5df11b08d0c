// Jobs of Slurm: their services, the boards that they have, and what they cost, beside services of Kubernetes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { on, seen, settled, withBrowser } from "./harness.mjs";

withBrowser();

test("fleet and service: jobs are called so, and a service is found by the cluster of Slurm", on("slurm", {}, async ({ page, go }) => {
  await go();
  const row = page.locator("tr", { hasText: "ada/train" });
  assert.match(await seen(row), /research.*hpc/);
  await row.getByRole("link", { name: "ada/train" }).click();
  await settled(page);
  assert.match(page.url(), /slurm_cluster=hpc/);
  assert.match(await seen(page.locator("main")), /job 4711 ada reporting .* gpu-h100-01 4 × H100/);
  assert.doesNotMatch(await seen(page.locator("main")), /pretrain-13b/);
}));

test("nodes: a board has a job, and the job leads to its service", on("slurm", {}, async ({ page, go }) => {
  await go("#/nodes");
  await page.locator("[data-node]", { hasText: "gpu-a100-" }).locator("summary").first().click();
  const owner = page.locator(".holders li", { hasText: "bob" }).first();
  await owner.waitFor();
  assert.match(await seen(owner), /^job 471\d ?chemistry · bob$/);
  await owner.getByRole("link").click();
  await settled(page);
  assert.match(await seen(page.locator("h1")), /bob\/sweep/);
}));

test("cost: an account is not the namespace of its name, and both lead to their services", on("slurm", {}, async ({ page, go }) => {
  await go("#/cost?by=namespace");
  const research = page.locator('.cost-table tr[data-row="research"]');
  assert.equal(await research.count(), 2);
  await research.filter({ hasText: "hpc" }).getByRole("link").click();
  await settled(page);
  assert.deepEqual(await page.locator(".cost-table tr[data-row]").evaluateAll((rows) => rows.map((r) => r.dataset.row)), ["ada/train", "fleet"]);
  await page.getByRole("link", { name: "ada/train" }).click();
  await settled(page);
  assert.match(await seen(page.locator("h1")), /ada\/train/);
}));
