import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client";
import type { Status, StoreProblem } from "../api/types";
import { count, duration, plural, safe, warmup } from "../format";
import type { Known } from "../poll";
import { nodesLink, placeLink } from "../router";
import { Banner, Panel, Retry } from "../parts/notices";
import { Name, Time } from "../parts/values";
import { exportersUnwell } from "../state";

/** What is not there yet, or not any more, and what would help. */
export function StatePanel({ letter, status, known, refresh }: { letter: "A" | "C" | "D" | "F" | "G"; status: Status; known: Known<unknown>; refresh: () => void }) {
  switch (letter) {
    case "A":
      return <NotEnabled />;
    case "C":
      return <Warming status={status} />;
    case "D":
      return <ScraperDown status={status} />;
    case "F":
      return <Unreachable status={status} known={known} refresh={refresh} />;
    case "G":
      return <NotStored status={status} />;
  }
}

export function Command({ children }: { children: string }) {
  return (
    <pre class="command" tabIndex={0}>
      <code>{children}</code>
    </pre>
  );
}

function NotEnabled() {
  return (
    <Panel tone="info" title="GPU telemetry is not enabled" state="A">
      <p>Nothing has ever arrived in the store. Point the collector at a dcgm-exporter:</p>
      <Command>{"DCGM_EXPORTER_ENDPOINT=http://localhost:9400/metrics \\\n  otelcol-gpu --config config/standalone.yaml"}</Command>
      <p>On Kubernetes, with NVIDIA’s GPU operator or its dcgm-exporter installed:</p>
      <Command>{"helm install otelcol-gpu charts/otelcol-gpu --namespace otelcol-gpu --create-namespace \\\n  --set clusterName=my-cluster"}</Command>
      <p>No GPU at hand? A simulated fleet:</p>
      <Command>make run</Command>
      <p class="quiet">This page notices by itself when the first data arrives.</p>
    </Panel>
  );
}

/** Devices report and no service has one: the next step, for the kind of installation that telemetry hints at. */
export function NoServices({ status }: { status: Status }) {
  const { devices, kubernetes } = status.telemetry;
  const reporting = devices ? `${plural(devices, "device")} ${devices === 1 ? "reports" : "report"}` : "Exporters report";
  return kubernetes ? (
    <Panel tone="info" title="No service has a GPU" state="B">
      <p>{reporting}, and no pod has {devices === 1 ? "it" : "one"}. A service appears here as soon as a pod with a GPU runs.</p>
      <Step name="A pod with a GPU">
        <Command>{`apiVersion: v1
kind: Pod
metadata:
  name: gpu-example
  labels: {app.kubernetes.io/name: gpu-example}
spec:
  containers:
    - name: main
      image: nvidia/cuda:12.8.1-base-ubuntu24.04
      command: [sleep, infinity]
      resources: {limits: {nvidia.com/gpu: 1}}`}</Command>
      </Step>
      <Step name="Pods do have GPUs">
        <p>
          Then the collector does not know of them: see that <code>gpu_allocation</code> reaches the kubelet, or that dcgm-exporter’s pod labels name them.
        </p>
        <Command>gpuctl doctor</Command>
      </Step>
    </Panel>
  ) : (
    <Panel tone="info" title="No service is known" state="B">
      <p>{reporting}. Outside Kubernetes nothing names the container or process that uses a GPU, so this page has nodes and devices. Next:</p>
      <Step name="A message when a GPU fails">
        <p>Events about devices are raised already. With a webhook they reach you:</p>
        <Command>{"WEBHOOK_URL=https://hooks.example.com/… otelcol-gpu \\\n  --config config/standalone.yaml --config config/webhooks.yaml"}</Command>
      </Step>
      <Step name="Jobs of Slurm">
        <p>
          With the scripts of docs/examples/slurm and <code>config/slurm-node.yaml</code> each device has its job: see “Slurm” in docs/install.md.
        </p>
      </Step>
      <Step name="Services of Kubernetes">
        <p>There the agent asks the kubelet which pod has which GPU, and each service has a page here:</p>
        <Command>{"helm install otelcol-gpu charts/otelcol-gpu --namespace otelcol-gpu --create-namespace \\\n  --set clusterName=my-cluster"}</Command>
      </Step>
    </Panel>
  );
}

export function Step({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <details class="step">
      <summary>{name}</summary>
      {children}
    </details>
  );
}

function Warming({ status }: { status: Status }) {
  const { services, pods_warming: pods } = status.telemetry;
  return (
    <Panel tone="info" title="Warming up" state="C">
      <p>
        {services ? plural(services, "service") : "Services"}
        {pods ? ` with ${plural(pods, "pod")}` : ""} {services === 1 ? "is" : "are"} starting. Metrics should appear within {warmup(status.config)}.
      </p>
      <p class="quiet">They appear here by themselves; there is no need to reload.</p>
      <span class="progress" aria-hidden="true" />
    </Panel>
  );
}

function ScraperDown({ status }: { status: Status }) {
  const t = status.telemetry;
  const age = status.freshness.data_age;
  const down = unwellExporters(t);
  // One that was not found on Kubernetes.
  const byAddress = t.kubernetes ? undefined : t.down_exporters[0];
  return (
    <Panel tone="bad" title="The scraper is down" state="D">
      <p>
        {down > 0
          ? `No exporter answers: ${count(t.exporters_down ?? 0)} down${t.exporters_frozen ? `, ${count(t.exporters_frozen)} frozen` : ""}.`
          : "Telemetry has ceased to arrive, and nothing says why."}{" "}
        {age !== null && <>The newest data is {duration(age)} old; what stands below was so then.</>}
      </p>
      <Exporters status={status} />
      <p>Look at the exporter, and at what the collector says of it:</p>
      <Command>
        {byAddress
          ? `curl -sS http://${safe(byAddress.address)}/metrics | head`
          : "kubectl get pods -A -l app=nvidia-dcgm-exporter -o wide\nkubectl logs -n otelcol-gpu ds/otelcol-gpu-agent | grep -i dcgm"}
      </Command>
    </Panel>
  );
}

function Unreachable({ status, known, refresh }: { status: Status; known: Known<unknown>; refresh: () => void }) {
  const error = status.store.error;
  return (
    <Panel tone="bad" title="The metric store cannot be reached" state="F">
      <p>{error ? `${safe(error.error)} ${safe(error.detail)}` : "It does not answer."}</p>
      <p>
        {status.store.engine === "prometheus"
          ? "The console reads a Prometheus-compatible server that is named under gpu_store in the collector’s configuration."
          : "The console reads the store embedded in the collector; its log says what is the matter with the directory."}
        {status.store.circuit_open && " It failed several times in a row and is left alone for a moment."}
      </p>
      <p class="quiet">No chart is drawn, for an empty one would look like no load. Telemetry itself, events and webhooks do not depend on the store.</p>
      <Retry known={known} refresh={refresh} />
    </Panel>
  );
}

/** Samples arrive, and the store does not take them: what is missing here need not be missing. */
function NotStored({ status }: { status: Status }) {
  const { problems } = status.store;
  const lasts = problems.some((p) => p.ended === null);
  const age = status.freshness.data_age;
  return (
    <Panel tone={lasts ? "bad" : "info"} title={lasts ? "What arrives cannot be stored" : "The store takes samples again"} state="G">
      <Problems problems={problems} />
      {!lasts && <p>The next samples appear here by themselves.</p>}
      <p>
        {age === null ? "Nothing was stored before." : <>The newest data is {duration(age)} old; what stands below was so then.</>} Exporters and nodes that seem silent may report all the same.
      </p>
      <p class="quiet">Events, webhooks and other backends do not depend on the store.</p>
    </Panel>
  );
}

/** What the store cannot keep although it can be read. */
export function StoreProblems({ status }: { status: Status }) {
  const { problems } = status.store;
  if (!problems.length) return null;
  const samples = problems.some((p) => p.part === "samples");
  return (
    <Banner tone="bad" title={samples ? "The store does not keep all that arrives" : "The log of events is not kept on disk"} name="store">
      <Problems problems={problems} />
      {samples && <p>What is missing or stale since then may be so for this reason alone.</p>}
    </Banner>
  );
}

const causes: Record<string, string> = {
  disk_full: "the disk is full",
  read_only: "the disk is read-only",
  write_failed: "the disk has failed",
  too_slow: "the disk is too slow",
  max_bytes: "max_bytes is reached",
  max_series: "max_series is reached",
  too_new: "they are ahead of this machine’s clock",
  too_old: "they are too old",
  out_of_order: "they are older than what is stored of their series",
  invalid: "Prometheus does not allow their labels",
  too_large: "their labels are too long",
};

function Problems({ problems }: { problems: readonly StoreProblem[] }) {
  return (
    <ul aria-label="What is not stored">
      {problems.map((p) => (
        <li key={`${p.part}\n${p.reason}\n${p.since}`}>
          {p.part[0]!.toUpperCase() + p.part.slice(1)} {p.ended === null ? "are" : "were"} not stored: {causes[p.reason] ?? safe(p.reason)}, since <Time at={p.since} />
          {p.ended !== null && <>, until <Time at={p.ended} /></>}
          {p.refused > 0 && `; ${count(p.refused)} refused`}. {p.ended === null && <span class="quiet">{safe(p.detail.charAt(0).toUpperCase() + p.detail.slice(1))}.</span>}
        </li>
      ))}
    </ul>
  );
}

/** The console's own server does not answer, and never did since the page was opened. */
export function Offline({ error, known, refresh }: { error: ApiError; known: Known<unknown>; refresh: () => void }) {
  const busy = error.reason === "busy";
  return (
    <Panel tone={busy ? "info" : "bad"} title={busy ? "The server is busy with other readers" : "The console’s server does not answer"} state={busy ? "busy" : "offline"}>
      <p>
        {error.message} {error.detail}
      </p>
      <Retry known={known} refresh={refresh} />
    </Panel>
  );
}

/** Some exporters are down although the rest reports. */
export function SomeDown({ status }: { status: Status }) {
  const title = exportersUnwell(status.telemetry);
  if (!title) return null;
  return (
    <Banner tone="warn" title={title} name="exporters">
      <Exporters status={status} />
    </Banner>
  );
}

const unwellExporters = (t: Status["telemetry"]): number => (t.exporters_down ?? 0) + (t.exporters_frozen ?? 0) + (t.exporters_unrecognized ?? 0);

/** Those that are down or frozen, or have unknown fields, by their node where it is known, else by their address. */
function Exporters({ status }: { status: Status }) {
  const t = status.telemetry;
  const more = unwellExporters(t) - t.down_exporters.length;
  if (!t.down_exporters.length) return null;
  return (
    <ul class="names" aria-label="Exporters that are not well">
      {t.down_exporters.map((e) => (
        <li key={`${e.cluster ?? ""}\n${e.node ?? ""}\n${e.address}`}>
          {e.node === null ? (
            <a href={nodesLink({})}>
              <Name>{e.address}</Name>
            </a>
          ) : (
            <a href={placeLink({ cluster: e.cluster, node: e.node })}>
              <Name>{e.node}</Name>
            </a>
          )}
          {e.node !== null && !t.kubernetes && <span class="quiet"> ({safe(e.address)})</span>}
          {e.state === "frozen" && <span class="quiet"> frozen</span>}
          {e.state === "unrecognized" && <span class="quiet"> fields not known</span>}
        </li>
      ))}
      {more > 0 && <li class="quiet">and {count(more)} more</li>}
    </ul>
  );
}
