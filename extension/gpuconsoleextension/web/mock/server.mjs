// The console's API and files, played by a scenario: for tests and development only.
//   node mock/server.mjs [--port 8480] [--scenario ready] [--prefix /console]
// POST /mock/scenario?name=… changes the scenario of a server that runs.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { capacity } from "./capacity.mjs";
import { cost } from "./cost.mjs";
import { deviceRange, range } from "./range.mjs";
import { freshness, raised, scenarios, status, worldOf } from "./scenarios.mjs";
import { plan, serviceKey } from "./world.mjs";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".md": "text/plain; charset=utf-8" };

/** The policy under which the page has to work: nothing inline, nothing from elsewhere. */
export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

class Refusal extends Error {
  constructor(code, reason, error, detail = "", headers = {}) {
    super(error);
    Object.assign(this, { code, reason, detail, headers });
  }
}

/** The answer to a request, or a Refusal. `world` is what the scenario makes of the moment. */
export function answer(path, query, now, world) {
  if (world.busy && path !== "status") throw new Refusal(503, "busy", "The server is busy.", "Ten requests are being answered already.", { "Retry-After": "2" });
  if (path === "status") return status(now, world);
  if (world.unreachable && path !== "events" && path !== "cost") throw new Refusal(502, world.unreachable.reason, world.unreachable.error, world.unreachable.detail);
  const fresh = freshness(now, world);
  if (path === "cost" && query.get("share_unheld") && (query.get("tenant") || query.get("namespace"))) throw new Refusal(400, "invalid_parameter", "share_unheld needs the whole fleet.", "tenant and namespace leave out what has no owner.");
  if (path === "cost") return cost(query, now, world, fresh);
  const limit = Number(query.get("limit") ?? 100);
  if (!Number.isInteger(limit) || limit < 1) throw new Refusal(400, "invalid_parameter", "limit is not a number from 1 on.", query.get("limit"));
  if (limit > 100) throw new Refusal(400, "limit_exceeded", "limit is above max_services_per_request.", `${limit} is above 100.`);
  const page = (list) => {
    const from = Number(query.get("cursor") ?? 0);
    return { list: list.slice(from, from + limit), next: from + limit < list.length ? String(from + limit) : null, total: list.length };
  };
  const q = (query.get("q") ?? "").toLowerCase();
  const named = { cluster: query.get("cluster") || null, slurm_cluster: query.get("slurm_cluster") ?? "", namespace: query.get("namespace"), service: query.get("service") };
  const key = serviceKey(named);
  const service = world.services.find((s) => serviceKey(s) === key);
  switch (path) {
    case "services": {
      const { list, next, total } = page(world.services.filter((s) => [s.service, s.namespace, s.cluster ?? ""].some((t) => t.toLowerCase().includes(q))));
      const trend = query.get("trend") === "true";
      return { freshness: fresh, services: trend ? list : list.map((s) => ({ ...s, trend: null })), total, next, summary: world.summary, trend: trend ? { start: new Date(now - 59 * trendStep(query) * 1000).toISOString(), step: trendStep(query), points: 60 } : null };
    }
    case "service":
      if (!service) throw new Refusal(404, "not_found", "Nothing is known of this service.");
      return { freshness: fresh, service: { ...service, trend: null }, missing_pods: world.pods.get(key).filter((p) => p.state === "missing").map((p) => p.pod).slice(0, 50) };
    case "pods": {
      if (!service) throw new Refusal(404, "not_found", "Nothing is known of this service.");
      const rank = ["missing", "degraded", "warming", "not_running", "reporting"];
      const { list, next, total } = page([...(world.pods.get(key) ?? [])].sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || (a.pod < b.pod ? -1 : 1)));
      return { freshness: fresh, pods: list, total, next };
    }
    case "nodes": {
      const unwell = (n) => query.get("attention") !== "true" || n.state !== "ok" || n.counts.lost > 0 || n.devices.some((d) => d.health && !["ok", "unknown"].includes(d.health.state));
      const exact = query.has("node") || query.has("device");
      const { list, next, total } = page(exact ? placed(world, query) : world.nodes.filter((n) => unwell(n) && [n.node, n.cluster ?? ""].some((t) => t.toLowerCase().includes(q))));
      const pending = world.services.filter((s) => s.pods.pending);
      return { freshness: fresh, nodes: list, total, next, pending: { pods: world.summary.pods_pending, services: pending.map((s) => ({ cluster: s.cluster, namespace: s.namespace, service: s.service, pods: s.pods.pending })) }, exporters: [] };
    }
    case "capacity":
      return capacity(query, now, world, fresh, page);
    case "device_range": {
      const window = windowOf(query);
      const id = query.get("device");
      const devices = placed(world, query).flatMap((n) => n.devices).filter((d) => !id || d.id === id || d.parent === id);
      if (!devices.length) throw new Refusal(404, "not_found", "Nothing is known of this node or device.");
      return deviceRange(now, fresh, devices, window, (t, d) => (world.young && t < now / 1000 - world.young) || (d.data_age !== null && t > now / 1000 - d.data_age + 15));
    }
    case "range": {
      const window = windowOf(query);
      return range(now, fresh, service, world.pods.get(key) ?? [], window, query.get("by") ?? "service", plan.find((p) => p.service === named.service), silence(now, world));
    }
    case "events": {
      const severe = query.get("min_severity");
      const order = ["trace", "debug", "info", "warn", "error", "fatal"];
      const raisedKeys = new Set(world.events.filter((e) => order.indexOf(e.severity) >= order.indexOf(severe)).map((e) => e.key));
      const says = (e) => !q || [e.name, e.body, ...Object.values(e.subject)].some((t) => t?.toLowerCase().includes(q));
      const wanted = world.events.filter((e) => says(e) && (query.get("active") !== "true" || e.active) && (!query.get("name") || e.name === query.get("name")) && (!severe || raisedKeys.has(e.key)) && (!named.service || (e.subject.service === named.service && e.subject.namespace === named.namespace)));
      const { list, next, total } = page(wanted);
      return { freshness: fresh, events: list, total, next, raised: raised(wanted), notices: wanted.filter((e) => e.notice && e.active).length };
    }
  }
  throw new Refusal(404, "not_found", "There is no such endpoint.");
}

const trendStep = (query) => ({ "5m": 5, "30m": 30, "1h": 60, "24h": 1440 })[query.get("window") ?? "1h"];

function windowOf(query) {
  const window = query.get("window");
  if (!["5m", "30m", "1h", "24h"].includes(window)) throw new Refusal(400, "invalid_parameter", "window is not 5m, 30m, 1h or 24h.", String(window));
  return window;
}

/** The node that is named, or that has the device. */
const placed = (world, query) =>
  world.nodes.filter((n) => n.cluster === (query.get("cluster") || null) && (!query.get("node") || n.node === query.get("node")) && (!query.get("device") || n.devices.some((d) => d.id === query.get("device"))));

/** Which pods were silent when: missing ones for six minutes; in the scenario of gaps, all for a while. */
function silence(now, world) {
  const missing = new Set([...world.pods.values()].flat().filter((p) => p.state === "missing").map((p) => p.pod));
  return (t, pod) => {
    const ago = now / 1000 - t;
    if (missing.has(pod)) return ago < 372;
    if (!world.gaps) return false;
    return (ago > 1000 && ago < 1500) || (ago > 90 && ago < 170);
  };
}

/** Starts a server; `time` is a function that tells the time it believes in. */
export function serve({ scenario = "ready", port = 0, prefix = "", time = Date.now } = {}) {
  let name = scenario;
  let began = time();
  const acknowledged = new Map(); // when, by event
  const requests = [];
  const arrivals = []; // of the same, milliseconds: what passed by itself, and what `time` was moved by
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://mock");
    requests.push(url.pathname + url.search);
    arrivals.push(performance.now() + time());
    if (request.method === "POST" && url.pathname === "/mock/scenario") {
      name = url.searchParams.get("name");
      began = time();
      return response.writeHead(scenarios[name] ? 204 : 400).end();
    }
    if (!url.pathname.startsWith(prefix)) return response.writeHead(404).end();
    const path = url.pathname.slice(prefix.length);
    if (!path.startsWith("/api/v1/")) return file(path, response);
    const send = (code, body, headers = {}) =>
      response.writeHead(code, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers }).end(JSON.stringify(body));
    try {
      const wanted = scenarios[name].token;
      if (wanted && request.headers.authorization !== `Bearer ${wanted}`) throw new Refusal(401, "unauthenticated", "A token is needed.", "", { "WWW-Authenticate": "Bearer" });
      const world = worldOf(name, time(), began);
      world.events = world.events.map((e) => (acknowledged.has(e.id) ? { ...e, active: false, acknowledged_at: acknowledged.get(e.id) } : e));
      if (path === "/api/v1/acknowledge") {
        if (request.method !== "POST" || request.headers["content-type"] !== "application/json") throw new Refusal(405, "method_not_allowed", "This changes something.", "Use POST.");
        let body = "";
        request.on("data", (part) => (body += part));
        request.on("end", () => {
          const event = world.events.find((e) => e.id === JSON.parse(body).event_id);
          acknowledged.set(event.id, new Date(time()).toISOString());
          send(200, { event: { ...event, active: false, acknowledged_at: acknowledged.get(event.id) } });
        });
        return;
      }
      if (url.searchParams.get("format") === "csv") return response.writeHead(200, { "Content-Type": "text/csv", "Cache-Control": "no-store" }).end("start,end,state\r\n");
      send(200, answer(path.slice(8), url.searchParams, time(), world));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      send(refusal.code, { error: refusal.message, reason: refusal.reason, detail: refusal.detail }, refusal.headers);
    }
  });
  return new Promise((resolve) =>
    server.listen(port, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${server.address().port}${prefix}/`,
        requests,
        arrivals,
        set(to) {
          name = to;
          began = time();
        },
        close: () => new Promise((done) => (server.closeAllConnections(), server.close(done))),
      }),
    ),
  );
}

function file(path, response) {
  const at = normalize(join(dist, path === "/" || path === "" ? "index.html" : path));
  if (!at.startsWith(dist) || !existsSync(at)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": types[extname(at)] ?? "application/octet-stream", "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache" });
  createReadStream(at).pipe(response);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const option = (name, otherwise) => (process.argv.includes(`--${name}`) ? process.argv[process.argv.indexOf(`--${name}`) + 1] : otherwise);
  const { url } = await serve({ port: Number(option("port", 8480)), scenario: option("scenario", "ready"), prefix: option("prefix", "") });
  console.log(`${url} plays ${option("scenario", "ready")}; scenarios: ${Object.keys(scenarios).join(", ")}`);
}
