// The real thing for browser tests: the collector that `make build` made, fed by
// gpusim, on free ports, with times short enough to wait for.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as listen } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../../../", import.meta.url));
const binary = (name) => {
  const path = join(root, "bin", name);
  if (!existsSync(path)) throw new Error(`bin/${name} is not there: run make build, or make test-browser, which builds Prometheus too`);
  return path;
};

/** Seconds, as the collector below is configured. */
export const times = { scrape: 1, summary: 2, stale: 8, warmup: 10 };

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Tries until it is so; `what` is told if it never is. */
export async function eventually(what, check, seconds = 120) {
  let last;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(100)) {
    try {
      const got = await check();
      if (got) return got;
      last = got;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`${what}: not within ${seconds} s; last: ${last?.stack ?? last}`);
}

// Below what systems give to outgoing connections: no client takes a port
// between here and its use. None is found twice, nor by a test file that runs beside
// this one: each process has a range of its own.
const ports = 1000;
const firstPort = 15_000 + ports * (process.pid % 17), lastPort = firstPort + ports;
let nextPort = firstPort + Math.floor(Math.random() * ports);

export async function freePorts(n) {
  const found = [];
  while (found.length < n) {
    const port = nextPort++;
    if (nextPort === lastPort) nextPort = firstPort;
    const free = await new Promise((done) => {
      const server = listen();
      server.once("error", () => done(false));
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (free) found.push(port);
  }
  return found;
}

/** A child whose end is waited for; it never outlives the test. */
class Child {
  constructor(path, args, log, env = {}) {
    this.log = log;
    const fd = openSync(log, "w");
    this.process = spawn(path, args, { stdio: ["ignore", fd, fd], env: { ...process.env, ...env } });
    this.ended = new Promise((done) => this.process.once("exit", done));
    this.kill = () => this.process.kill("SIGKILL");
    process.once("exit", this.kill);
  }
  said() {
    return readFileSync(this.log, "utf8");
  }
  get gone() {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }
  async stop() {
    if (!this.gone) {
      this.process.kill("SIGTERM");
      const late = setTimeout(this.kill, 15_000);
      await this.ended;
      clearTimeout(late);
    }
    process.removeListener("exit", this.kill);
  }
}

/** A folder for everything that a test file starts, and the end of it all. */
export class World {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "gpu-console-"));
    this.children = [];
    this.n = 0;
  }

  child(name, args, env) {
    const c = new Child(binary(name), args, join(this.folder, `${name}-${this.n++}.log`), env);
    this.children.push(c);
    return c;
  }

  /** Starts a fleet: `nodes` as gpusim's configuration has them. */
  fleet(nodes) {
    const file = join(this.folder, `fleet-${this.n}.json`);
    writeFileSync(file, JSON.stringify({ seed: 3, nodes }));
    return this.simulate(["--config", file, "--sink", ""]);
  }

  /** Starts the fleet of `make run`, to which nothing happens by itself: with kubelets, engines, and a sink for webhooks. */
  async demo() {
    const [port] = await freePorts(1);
    const kubelets = join(this.folder, "k");
    mkdirSync(kubelets);
    return { kubelets, sink: `http://127.0.0.1:${port}`, ...(await this.simulate(["--faults=false", "--sink", `127.0.0.1:${port}`, "--kubelets", kubelets])) };
  }

  async simulate(args) {
    const [control] = await freePorts(1);
    const child = this.child("gpusim", ["run", ...args, "--base-port", "0", "--control", `127.0.0.1:${control}`]);
    const url = `http://127.0.0.1:${control}`;
    const truth = () => fetch(`${url}/truth`).then((r) => r.json());
    const first = await eventually("gpusim answers", truth);
    const post = async (path, body) => {
      const r = await fetch(url + path, { method: "POST", body: JSON.stringify(body) });
      if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
      return r.status === 204 ? null : r.json();
    };
    return {
      child, truth, exporters: first.nodes.map((n) => n.url), engines: (first.engines ?? []).map((e) => e.url),
      /** What the engines of a service did. */
      requests: (query) => fetch(`${url}/truth/requests?${new URLSearchParams(query)}`).then((r) => r.json()),
      fault: (fault) => post("/fault", fault),
      end: (id) => post("/fault", { id, end: true }),
      pods: (node, pods) => post("/pods", { node, pods }),
    };
  }

  /** Starts a collector on config/standalone.yaml; further files of config/ and `more` are merged last. */
  async collector({ exporters = [], configs = [], more = {}, env = {} }) {
    const [prometheus, health, grpc, http, own, store, console, apps] = await freePorts(8);
    const at = (port) => ({ endpoint: `127.0.0.1:${port}` });
    const seconds = (n) => `${n}s`;
    const overlay = {
      receivers: { dcgm: { endpoints: exporters.length ? exporters : ["http://127.0.0.1:1/metrics"], collection_interval: seconds(times.scrape), exporter_interval: "1s" }, otlp: { protocols: { grpc: at(grpc), http: at(http) } } },
      processors: { gpu_summary: { interval: seconds(times.summary), initial_interval: "1s", staleness: seconds(times.stale), warmup: seconds(times.warmup) } },
      exporters: { prometheus: at(prometheus), "prometheus/apps": at(apps) },
      extensions: { health_check: at(health), gpu_store: { api: at(store) }, gpu_console: { ...at(console), refresh: "1s", stale_after: seconds(times.stale), warmup: seconds(times.warmup), circuit_breaker: { open_for: "1s" } } },
      // Without exporters nothing ever arrives.
      service: { telemetry: { metrics: { readers: [{ pull: { exporter: { prometheus: { host: "127.0.0.1", port: own } } } }] } }, ...(exporters.length ? {} : { pipelines: { metrics: { receivers: ["otlp"] } } }) },
    };
    const files = ["standalone.yaml", ...configs].flatMap((name) => ["--config", join(root, "config", name)]);
    const args = [...files, "--config", `yaml:${JSON.stringify(overlay)}`, "--config", `yaml:${JSON.stringify(more)}`];
    const child = this.child("otelcol-gpu", args, { STATE_DIRECTORY: join(this.folder, `state-${this.n}`), ...env });
    const url = `http://127.0.0.1:${console}/`;
    const api = async (path, query = {}) => {
      const r = await fetch(`${url}api/v1/${path}?${new URLSearchParams(query)}`);
      if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
      return r.json();
    };
    await eventually("the collector answers", async () => {
      if (child.gone) throw new Error(child.said().slice(-2000));
      return api("status");
    });
    /** What gpuctl prints about this collector, and its exit status. */
    const gpuctl = (...args) =>
      new Promise((done) => {
        execFile(binary("gpuctl"), [...args, "--endpoint", url], (error, out, err) => done({ status: error ? error.code : 0, out: out + err }));
      });
    return { child, url, api, gpuctl, port: console, store: `http://127.0.0.1:${store}` };
  }

  /** Starts a collector whose console reads a server at a URL. */
  reader(url, gpu_console = {}) {
    return this.collector({
      more: {
        extensions: { gpu_store: { engine: "prometheus", prometheus: { url } }, gpu_console },
        service: { pipelines: { "metrics/prometheus": { exporters: ["prometheus"] }, "metrics/apps-prometheus": { exporters: ["prometheus/apps"] } } },
      },
    });
  }

  /** Starts a Prometheus server that takes remote write. */
  async prometheus() {
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const file = join(this.folder, "prometheus.yml");
    writeFileSync(file, "{}\n");
    const child = this.child("prometheus", [`--config.file=${file}`, `--storage.tsdb.path=${join(this.folder, "prometheus")}`, `--web.listen-address=127.0.0.1:${port}`, "--web.enable-remote-write-receiver", "--log.level=warn"]);
    await eventually("Prometheus answers", async () => (await fetch(`${url}/-/ready`)).ok);
    return { child, url };
  }

  /** A way to a store that the test can close, slow down and open again. */
  async way(to) {
    const target = new URL(to);
    const state = { open: true, hold: 0 };
    const server = createServer(async (asked, answer) => {
      if (state.hold) await sleep(state.hold);
      if (!state.open) return asked.socket.destroy();
      const on = request({ host: target.hostname, port: target.port, path: asked.url, method: asked.method, headers: asked.headers }, (r) => {
        answer.writeHead(r.statusCode, r.headers);
        r.pipe(answer);
      });
      on.on("error", () => answer.destroy());
      asked.pipe(on);
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    this.children.push({ stop: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }) });
    return Object.assign(state, { url: `http://127.0.0.1:${server.address().port}` });
  }

  async end() {
    for (const c of this.children.reverse()) await c.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const pod = (service, name, devices, more = {}) => ({ namespace: "inference", name, container: "main", labels: { "app.kubernetes.io/name": service }, devices, load: "inference", ...more });
