// What the views do: charts, windows, tables, links, keyboard, and how they refresh.
import assert from "node:assert/strict";
import { test } from "node:test";
import { link, on, seen, settled, until, withBrowser } from "./harness.mjs";

withBrowser();

const chart = (page, title) => page.locator(".chart", { has: page.getByRole("heading", { name: title, exact: true }) });

test("fleet: what needs attention first, and every number is the API's", on("ready", {}, async ({ page, go, server }) => {
  await go();
  const answer = await (await fetch(`${server.url}api/v1/services`)).json();
  assert.deepEqual(await page.locator("tr[data-row]").evaluateAll((rows) => rows.map((r) => r.dataset.row)), answer.services.map((s) => s.service));
  for (const s of answer.services) {
    const cells = page.locator(`tr[data-row="${s.service}"] td`);
    const values = async (i) => cells.nth(i).locator("[data-value]").evaluateAll((all) => all.map((e) => e.dataset.value));
    assert.equal((await values(1))[0], String(s.values.utilization));
    assert.equal((await values(2))[0], String(s.totals.memory_used));
    assert.equal((await values(3))[0], String(s.totals.power));
  }
  assert.equal(await page.locator('[data-figure="GPUs"] [data-value]').getAttribute("data-value"), String(answer.summary.devices));
}));

test("fleet: filter and pages", on("large", {}, async ({ page, go }) => {
  await go();
  assert.equal(await page.locator("tr[data-row]").count(), 100);
  await page.getByRole("button", { name: "Show 100 more" }).click();
  await page.locator("tr[data-row]").nth(199).waitFor();
  await page.getByLabel("Filter services").fill("service-07");
  await page.clock.runFor(300);
  await page.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 10);
  assert.match(page.url(), /q=service-07/);
}));

test("service: nine cards, each the API's number", on("healthy", {}, async ({ page, go, server }) => {
  await go(link("chat-8b"));
  const { service } = await (await fetch(`${server.url}api/v1/service?${link("chat-8b").split("?")[1]}`)).json();
  const names = ["Utilization", "Memory used", "Memory total", "Tensor", "SM", "DRAM", "FP16", "FP32", "Power"];
  const keys = ["utilization", "memory_used", "memory_total", "tensor", "sm", "dram", "fp16", "fp32", "power"];
  assert.deepEqual(await page.locator(".cards dt").allInnerTexts(), names, "and no others: it has no inference engine");
  for (const [i, key] of keys.entries()) {
    assert.equal(await page.locator(`.cards [data-figure="${names[i]}"] .figure-value [data-value]`).getAttribute("data-value"), String(service.values[key]), key);
  }
}));

test("service: a second row of cards for its inference servers, with the reason for what is not there", on("inference", {}, async ({ page, go, server }) => {
  const row = page.getByRole("region", { name: "Inference" });
  const open = async (name) => {
    await go(link(name));
    return (await (await fetch(`${server.url}api/v1/service?${link(name).split("?")[1]}`)).json()).service.inference;
  };
  const shows = async (names, keys, inference) => {
    assert.deepEqual(await row.locator("dt").allInnerTexts(), names);
    for (const [i, key] of keys.entries()) {
      assert.equal(await row.locator(`[data-figure="${names[i]}"] .figure-value [data-value]`).first().getAttribute("data-value"), String(inference[key]), key);
    }
  };
  const names = ["TTFT p95", "TPOT p95", "Request p95", "Output", "Waiting / running", "KV cache", "Errors", "Energy"];
  const keys = ["time_to_first_token", "time_per_output_token", "request_duration", "output_tokens", "waiting", "kv_cache", "error_ratio", "tokens_per_joule"];
  const vllm = await open("chat-70b");
  await shows(names, keys, vllm);
  assert.equal(await row.locator('[data-figure="Waiting / running"] [data-value]').nth(1).getAttribute("data-value"), String(vllm.running));
  for (const title of ["Time to first token, p95", "Time per output token, p95", "Output tokens"]) await chart(page, title).waitFor();
  assert.equal(await chart(page, "Inter-token latency, p95").count(), 0, "the time per output token is known");

  await shows(names.with(1, "ITL p95"), keys.with(1, "inter_token_latency"), await open("chat-8b"));
  await chart(page, "Inter-token latency, p95").waitFor();
  const errors = row.locator('[data-figure="Errors"] [data-value]');
  assert.equal(await errors.getAttribute("title"), "no data. sglang: it does not count failed requests");

  await shows(names, keys, await open("embeddings"));
  assert.equal(await row.locator('[data-figure="Energy"] [data-value]').getAttribute("title"), "no data. triton: Triton knows responses, not tokens");
  await open("rerank");
  assert.equal(await row.count(), 0);
}));

test("charts: gaps are gaps, and their table says no data", on("gaps", {}, async ({ page, go }) => {
  await go(link("chat-8b", "&window=1h"));
  for (const title of ["Utilization", "Memory used", "Tensor activity", "Power"]) {
    assert.ok(Number(await chart(page, title).locator("[data-gaps]").getAttribute("data-gaps")) >= 16, title);
  }
  await page.getByRole("button", { name: "Show as tables" }).click();
  const table = page.getByRole("table", { name: "Utilization" });
  assert.equal(await table.locator("tbody tr").count(), 121);
  const silent = table.locator("tbody tr", { hasText: "no data" });
  assert.ok((await silent.count()) >= 16);
  assert.equal(await silent.first().locator("td").last().innerText(), "0");
}));

test("charts: the hover tells the value and how many pods are in the mean, in all four at once", on("partial", {}, async ({ page, go }) => {
  await go(link("chat-70b", "&window=30m"));
  const reading = (title) => seen(chart(page, title).locator("[data-reading]"));
  assert.match(await reading("Utilization"), /^latest \d+ %, mean of 4 pods$/);
  const over = chart(page, "Utilization").locator(".u-over");
  const box = await over.boundingBox();
  await over.hover({ position: { x: box.width * 0.3, y: 50 } });
  await until(async () => assert.match(await reading("Utilization"), /^13:4\d:\d\d \d+ %, mean of 6 pods$/));
  await settled(page);
  const when = (await reading("Utilization")).slice(0, 8);
  for (const title of ["Memory used", "Tensor activity", "Power"]) assert.equal((await reading(title)).slice(0, 8), when, title);
}));

test("charts: one line a pod, and one of them stands out", on("healthy", {}, async ({ page, go }) => {
  await go(link("chat-8b", "&by=pod"));
  const legend = page.getByRole("list", { name: "Lines" }).getByRole("button");
  assert.equal(await legend.count(), 6);
  await legend.nth(2).click();
  await until(async () => assert.equal(await legend.nth(2).getAttribute("aria-pressed"), "true"));
  await settled(page);
  assert.match(await seen(chart(page, "Power").locator("[data-reading]")), new RegExp(`${await legend.nth(2).innerText()}: \\d+ W`));
}));

test("windows: four, remembered, and shared by tabs", on("healthy", {}, async ({ page, context, go, server }) => {
  await go(link("chat-8b"));
  const group = page.getByRole("group", { name: "Display window" });
  assert.deepEqual(await group.getByRole("button").allInnerTexts(), ["5 min", "30 min", "1 hour", "24 hours"]);
  const other = await context.newPage();
  await other.goto(server.url + link("rerank"));
  await settled(other);
  for (const [name, window, points] of [["5 min", "5m", 21], ["30 min", "30m", 121], ["1 hour", "1h", 121], ["24 hours", "24h", 289]]) {
    await group.getByRole("button", { name }).click();
    await until(async () => assert.equal(await page.getByRole("slider").first().getAttribute("aria-valuemax"), String(points - 1)));
    assert.match(page.url(), new RegExp(`window=${window}`));
    await other.getByRole("group", { name: "Display window" }).getByRole("button", { name, pressed: true }).waitFor();
  }
  await go(link("vision", "", "us-east-1"));
  assert.equal(await group.getByRole("button", { pressed: true }).innerText(), "24 hours");
  await page.reload();
  await settled(page);
  assert.equal(await group.getByRole("button", { pressed: true }).innerText(), "24 hours");
  await go(link("vision", "&window=5m", "us-east-1"));
  assert.equal(await group.getByRole("button", { pressed: true }).innerText(), "5 min", "a deep link has its own window");
}));

test("pods: warming ones are marked, in words", on("ready", {}, async ({ page, go }) => {
  await go(link("embeddings"));
  const warming = page.locator("tr.pod-warming");
  assert.equal(await warming.count(), 1);
  assert.match(await seen(warming), /warming up/);
  assert.equal(await page.locator('[data-banner="warming"], [data-banner="partial"]').count(), 0);
}));

test("nodes: free, held by whom, idle, lost, MIG layout, temperature, XID, pending pods", on("ready", {}, async ({ page, go }) => {
  await go("#/nodes");
  assert.match(await seen(page.locator('[data-banner="pending"]')), /2 GPU pods wait for a node.*ablation-sweep/s);
  const node = async (name) => {
    const item = page.locator(`[data-node="${name}"]`);
    await item.locator("summary").first().click();
    await item.locator("table").waitFor();
    return item;
  };
  assert.match(await seen(await node("gpu-h100-eu-02")), /1 lost.*GPU lost.*XID 94.*ECC uncorrected.*throttled: hw thermal.*hot, above 85 °C.*XID 94 × 2.*1 ECC uncorrected.*throttled: hw thermal.*88 °C hot/s);
  assert.match(await seen(await node("gpu-a100-eu-01")), /4 idle-held.*3 free.*notebooks-/s);
  assert.match(await seen(await node("gpu-a100-mig-01")), /MIG 1 × 3g\.40gb, 1 × 2g\.20gb, 2 × 1g\.10gb.*mig-tutorials-00/s);
  assert.match(await seen(await node("gpu-l4-shared-01")), /cordoned.*rerank-shared-0.*25 % of it, time-slicing/s);
  assert.match(await seen(await node("gpu-h200-us-07")), /node lost.*stale 12 min [345]\d s.*not known/s);
}));

test("nodes: at every width, the parts of a row lie side by side and within it, the age in its first line", on("ready", {}, async ({ page, go }) => {
  await go("#/nodes");
  for (const width of [360, 420, 720, 721, 900, 1024, 1180, 1280, 1281, 1440, 1920, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    const wrong = await page.locator(".node > details > summary").evaluateAll((rows) =>
      rows.flatMap((row) => {
        const box = (e) => e.getBoundingClientRect();
        const parts = [...row.children].filter((e) => box(e).width > 0);
        const outside = parts.filter((e) => box(e).left < box(row).left - 1 || box(e).right > box(row).right + 1);
        const pairs = parts.flatMap((a, i) => parts.slice(i + 1).map((b) => [a, b]));
        const over = pairs.filter(([a, b]) => box(a).left < box(b).right - 1 && box(b).left < box(a).right - 1 && box(a).top < box(b).bottom - 1 && box(b).top < box(a).bottom - 1);
        return [...outside.map((e) => `outside: ${e.className}`), ...over.map(([a, b]) => `${a.className} over ${b.className}`)];
      }),
    );
    assert.deepEqual(wrong, [], `at ${width} px`);
    if (width <= 720) continue;
    const apart = await page.locator(".node > details > summary").evaluateAll((rows) =>
      rows.map((row) => Math.abs(row.querySelector(".node-age").getBoundingClientRect().top - row.querySelector(".strip").getBoundingClientRect().top)),
    );
    assert.ok(Math.max(...apart) < 24, `at ${width} px the age is ${Math.max(...apart)} px below the boards`);
  }
}));

test("health: words, a filter, and why on the page of the node", on("ready", {}, async ({ page, go, server }) => {
  await go("#/nodes");
  const shown = (name) => seen(page.locator(`[data-node="${name}"] .node-health`));
  assert.match(await shown("gpu-a100-eu-01"), /ok, 40 of 104 checks/);
  assert.match(await shown("gpu-h100-eu-02"), /failed, 35 of 91 checks/);
  assert.match(await shown("gpu-h200-us-07"), /unknown$/);
  await page.getByRole("button", { name: "Needs attention" }).click();
  await until(async () => assert.equal(await page.locator('[data-node="gpu-a100-eu-01"]').count(), 0));
  assert.equal(await page.getByRole("button", { name: "Needs attention", pressed: true }).count(), 1);
  assert.match(page.url(), /attention=true/);
  await page.locator('[data-node="gpu-h100-eu-02"] summary').first().click();
  await page.getByRole("link", { name: "Charts and health of gpu-h100-eu-02" }).click();
  const health = page.getByRole("region", { name: "Health" });
  await health.locator("[data-incident]").first().waitFor();
  assert.match(await seen(health), /failed, 35 of 91 checks since 13:44:09 To do: RMA.*SRAM worn.*GPU 3.*140, limit 100.*without: recovery action.*slower than its peers: link.*XID 94/s);
  assert.match(await health.getByRole("link", { name: "SRAM worn" }).getAttribute("href"), /runbooks\/health-sram-worn\.md$/);
  const { summary } = await (await fetch(`${server.url}api/v1/services`)).json();
  await go();
  const tile = page.locator('[data-figure="Unhealthy GPUs"]');
  assert.equal(await tile.locator("[data-value]").getAttribute("data-value"), String(summary.health.failed + summary.health.degraded));
  assert.match(await seen(tile), /1 failed, 2 degraded/);
  await go(link("chat-70b"));
  assert.match(await seen(page.locator(".head-line")), /1 of 24 GPUs failed 2 of 24 GPUs degraded/);
}));

test("events: what happened and what became of the webhooks", on("ready", {}, async ({ page, go }) => {
  await go("#/events");
  const first = page.locator(".event").first();
  assert.match(await seen(first), /14:04:27.*warn.*Service chat-70b.*gpu\.service\.partial.*ops-slack delivered.*billing will be tried again.*2 attempts/s);
  await first.locator(".deliveries summary").nth(1).click();
  await settled(page);
  assert.match(await seen(first), /billing\.example\.com \(standard\): 503 http_5xx, attempt 1 of 3, 412 ms/);
  const all = await seen(page.locator(".events"));
  for (const word of ["pager given up", "billing blocked", "ops-slack dropped", "billing delivered test", "20 Nov"]) assert.ok(all.includes(word), word);
  await page.getByRole("button", { name: "Errors", exact: true }).click();
  await until(async () => assert.equal(await page.locator(".event").count(), 3));
}));

test("events: found by a text, what is active, and a notice acknowledged", on("ready", {}, async ({ page, go }) => {
  await go("#/events?q=gpu-l4-us-01");
  await until(async () => assert.equal(await page.locator(".event").count(), 2));
  await page.getByRole("searchbox").fill("xid");
  await until(async () => assert.equal(await page.locator(".event").count(), 1));
  await page.getByRole("button", { name: "Active now" }).click();
  await page.getByRole("button", { name: "Acknowledge" }).click();
  await page.getByText("No such event in the log.").waitFor();
  await page.getByRole("button", { name: "Active now" }).click();
  await until(async () => assert.match(await seen(page.locator(".event")), /acknowledged 14:05:09/));
}));

test("node and device: six charts, a line a device, over the window that an address names", on("ready", {}, async ({ page, go }) => {
  await go("#/node?cluster=eu-west-1&node=gpu-h100-eu-02&window=30m");
  await page.locator(".uplot").nth(5).waitFor();
  assert.deepEqual(await page.locator(".chart h3").allInnerTexts(), ["Utilization", "Memory used", "Power", "Temperature", "SM clock", "Throttled"]);
  const legend = page.getByRole("list", { name: "Lines" }).getByRole("button");
  assert.equal(await legend.count(), 8);
  const reading = (title) => seen(chart(page, title).locator("[data-reading]"));
  assert.match(await reading("SM clock"), /^latest [\d.]+ [MG]Hz to [\d.]+ GHz, 7 devices$/, "one is lost");
  await legend.nth(1).click();
  await until(async () => assert.match(await reading("Throttled"), /GPU 1: 100 %$/));
  await page.getByRole("group", { name: "Display window" }).getByRole("button", { name: "5 min" }).click();
  await until(async () => assert.equal(await page.getByRole("slider").first().getAttribute("aria-valuemax"), "20"));
  assert.match(page.url(), /node\?.*window=5m/);
  await page.getByRole("link", { name: "GPU 2" }).click();
  await until(async () => assert.match(await page.locator("h1").innerText(), /GPU\s2/));
  await page.locator(".uplot").nth(5).waitFor();
  await settled(page);
  assert.ok(Number(await chart(page, "Power").locator("[data-gaps]").getAttribute("data-gaps")) >= 10, "a lost device's line ends");
  assert.match(await seen(page.locator(".device-table")), /GPU 2.*lost/s);
  await go("#/device?device=GPU-of-nobody");
  assert.match(await seen(page.locator('[data-state="not_found"]')), /Nothing is known of this device/);
}));

test("fleet: sparklines over a window of one's choice", on("healthy", {}, async ({ page, go, server }) => {
  await go();
  assert.ok(server.requests.some((r) => r.includes("/services?") && r.includes("window=1h")));
  await page.getByRole("group", { name: "Display window" }).getByRole("button", { name: "24 hours" }).click();
  await until(() => assert.ok(server.requests.some((r) => r.includes("/services?") && r.includes("window=24h"))));
  await page.locator('tr[data-row="chat-8b"] a').click();
  await until(async () => assert.equal(await page.getByRole("group", { name: "Display window" }).getByRole("button", { pressed: true }).innerText(), "24 hours", "and charts have the same"));
}));

test("deep link: hostile names come through, as text", on("hostile", {}, async ({ page, go }) => {
  await go();
  page.on("dialog", (d) => assert.fail(`a dialog: ${d.message()}`));
  assert.equal(await page.locator("tr[data-row]").count(), 5);
  await page.getByRole("link", { name: "<script>alert('x')</script>" }).click();
  await page.locator(".uplot").nth(3).waitFor();
  await settled(page);
  assert.equal(await page.locator("h1").innerText(), "<script>alert('x')</script>");
  assert.deepEqual(await page.locator('[data-banner="partial"] .names li').allInnerTexts(), ['"><svg onload=alert(1)>']);
  await page.reload();
  await settled(page);
  assert.equal(await page.locator(".uplot").count(), 4);
  assert.equal(await page.locator("main script, main img").count(), 0);
  await go();
  assert.match(await seen(page.locator("table")), /admin\ufffdgpj\.exe\ufffd/, "what cannot be seen is shown");
}));

test("deep link: a service of no cluster", on("no_cluster", {}, async ({ page, go }) => {
  await go("#/service?namespace=inference&service=chat-8b");
  assert.equal(await page.locator(".cards").count(), 1);
}));

test("Grafana: every variable in the link; hidden when no URL is configured", on("healthy", {}, async ({ page, go, server }) => {
  await go(link("chat-8b", "&window=30m"));
  const open = page.getByRole("link", { name: /Open in Grafana/ });
  assert.equal(await open.getAttribute("href"), "https://grafana.example.com/d/gpu-service?var-app=chat-8b&var-service=chat-8b&var-namespace=inference&var-rack=eu-west-1&from=now-30m&to=now");
  server.set("no_grafana");
  await page.reload();
  await settled(page);
  assert.equal(await open.count(), 0);
}));

test("keyboard: skip link, rows, and the moment of a chart", on("healthy", {}, async ({ page, go }) => {
  await go();
  await page.keyboard.press("Tab");
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content"));
  await page.keyboard.press("Enter");
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.id), "main"));
  await page.locator('tr[data-row="chat-8b"] a').focus();
  await page.keyboard.press("Enter");
  await settled(page);
  const slider = page.getByRole("slider", { name: "Utilization: moment" });
  await page.locator(".uplot").nth(3).waitFor();
  await settled(page);
  await slider.focus();
  const last = Number(await slider.getAttribute("aria-valuenow"));
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await until(async () => assert.equal(Number(await slider.getAttribute("aria-valuenow")), last - 2));
  assert.match(await slider.getAttribute("aria-valuetext"), /^\d\d:\d\d:\d\d: \d+\u202f%, mean of 6\u00a0pods$/);
  await page.keyboard.press("Home");
  await until(async () => assert.equal(await slider.getAttribute("aria-valuenow"), "0"));
}));

test("refresh: without flicker, and not while the tab is hidden", on("healthy", {}, async ({ page, go, server, advance }) => {
  await go(link("chat-8b"));
  for (const part of ["canvas", "tr[data-row]", ".cards"]) await page.locator(part).first().waitFor();
  await page.evaluate(() => {
    window.kept = [document.querySelector("canvas"), document.querySelector("tr[data-row]"), document.querySelector(".cards")];
  });
  const before = await page.locator("[data-as-of]").innerText();
  await advance(32_000);
  await until(async () => assert.notEqual(await page.locator("[data-as-of]").innerText(), before));
  assert.deepEqual(await page.evaluate(() => window.kept.map((e) => e.isConnected)), [true, true, true]);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await settled(page); // what was asked for before it was hidden
  const asked = server.requests.length;
  await advance(60_000);
  assert.equal(server.requests.length, asked, "it asks although nobody looks");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await until(() => assert.ok(server.requests.length > asked, "it does not ask although somebody looks again"));
}));

test("theme: as the system has it, or as chosen, remembered", on("healthy", { theme: "dark" }, async ({ page, go }) => {
  await go();
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "dark");
  await page.getByRole("button", { name: /Theme: auto/ }).click();
  await until(async () => assert.equal(await theme(), "light"));
  await page.reload();
  await settled(page);
  assert.equal(await theme(), "light");
}));

test("it works under a path prefix", on("healthy", { prefix: "/a/gpu%20console" }, async ({ page, go }) => {
  await go(link("chat-8b"));
  await page.locator(".uplot").nth(3).waitFor();
  assert.equal(await page.locator(".uplot").count(), 4);
}));

test("what a vendor does not measure is called so, and partitions are below their board", on("vendors", {}, async ({ page, go, server }) => {
  const services = (await (await fetch(`${server.url}api/v1/services`)).json()).services;
  const [amd, nvidia] = [services.find((s) => s.not_measured.length), services.find((s) => !s.not_measured.length)];
  const absent = "not measured by this vendor";

  await go(link(amd.service));
  for (const name of ["Tensor", "SM", "DRAM", "FP16", "FP32"]) {
    const card = page.locator(`.cards [data-figure="${name}"]`);
    assert.equal(await card.locator("[data-unmeasured]").innerText(), absent);
    assert.equal(await card.locator(".figure-value [data-value]").getAttribute("data-value"), "null");
  }
  for (const name of ["Utilization", "Power"]) assert.equal(await page.locator(`.cards [data-figure="${name}"] [data-unmeasured]`).count(), 0);
  await chart(page, "Tensor activity").waitFor();
  assert.equal(await chart(page, "Tensor activity").locator(".empty").innerText(), absent);
  assert.equal(await chart(page, "Tensor activity").locator(".plot").count(), 0, "and no empty plot");
  assert.equal(await chart(page, "Power").locator(".plot").count(), 1);
  assert.match(await page.locator(".pods-table tr[data-row] [data-unmeasured]").first().textContent(), /^not measured by this vendor$/);

  await go(link(nvidia.service));
  await chart(page, "Tensor activity").locator(".plot").waitFor();
  assert.equal(await page.locator("[data-unmeasured]").count(), 0);

  await go("#/node?cluster=eu-west-1&node=gpu-mi300x-cpx-01");
  const rows = page.locator(".device-table tr[data-row]");
  await rows.first().waitFor();
  const texts = (await rows.locator("th").allInnerTexts()).map((t) => t.replaceAll(/\s+/g, " "));
  assert.deepEqual(texts.slice(0, 3), ["GPU 0 Instinct MI300X; 8 partitions; cpx_nps4", "partition 0 cpx_nps4", "partition 1 cpx_nps4"]);
  assert.equal(texts.length, 10);
  assert.match(await rows.first().innerText(), /partitioned/);
}));
