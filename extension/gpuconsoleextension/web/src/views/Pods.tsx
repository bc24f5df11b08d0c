import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Device, Pod, Pods as PodsData, ServiceName, Status } from "../api/types";
import { gap, gpuName, plural, safe, warmup } from "../format";
import { type Known, usePoll } from "../poll";
import { placeLink } from "../router";
import { Failure, Tag, type Tone } from "../parts/notices";
import { ReasonTags } from "../parts/reasons";
import { pressing } from "../reasons";
import { type Column, More, Row, Table } from "../parts/table";
import { Age, Memory, Name, Partly, unmeasured, Utilization, Value } from "../parts/values";

const columns: readonly Column[] = [
  { name: "Pod", head: true },
  { name: "State", class: "wide" },
  { name: "Utilization" },
  { name: "Memory" },
  { name: "Tensor", number: true },
  { name: "Power", number: true },
  { name: "Node" },
  { name: "Devices", class: "wide" },
  { name: "Data age", number: true },
];

const states: Record<Pod["state"], { tone: Tone; word: string; title: string }> = {
  reporting: { tone: "good", word: "reporting", title: "Every device that it holds reports" },
  degraded: { tone: "warn", word: "degraded", title: "Some of its devices report nothing; its values are over those that do" },
  missing: { tone: "bad", word: "missing", title: "None of its devices reports; averages leave it out" },
  warming: { tone: "info", word: "warming up", title: "Too young to be judged; averages leave it out" },
  not_running: { tone: "calm", word: "not running", title: "Pending, starting, failing or completed" },
  unknown: { tone: "calm", word: "not known", title: "Nothing says yet in which state it is" },
};

/** The pods of a service, as many as are shown. */
export function usePods(name: ServiceName, status: Status) {
  const page = Math.min(100, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const poll = usePoll(
    async (signal) => {
      const first = await api.pods(name, { limit: Math.min(page, limit) }, signal);
      const pods = [...first.pods];
      let next = first.next;
      while (next && pods.length < limit) {
        const more = await api.pods(name, { limit: page, cursor: next }, signal);
        pods.push(...more.pods);
        next = more.next;
      }
      return { ...first, pods };
    },
    status.config.refresh * 1000,
    [limit],
  );
  return { poll, page, grow: () => setLimit(limit + page) };
}

export function Pods({ pods: { poll, page, grow }, cluster, status }: { pods: ReturnType<typeof usePods>; cluster: string | null; status: Status }) {
  const known = poll.known.value;
  return (
    <section aria-label="Pods" class="pods">
      <div class="toolbar">
        <h2>Pods</h2>
        {known.data && <p class="quiet">{plural(known.data.total, "pod")}, what needs attention first</p>}
      </div>
      <Failure known={known} refresh={poll.refresh} />
      {known.data && known.data.pods.length === 0 && <p class="empty">No pod is known.</p>}
      {known.data && known.data.pods.length > 0 && <Rows known={known as Known<PodsData> & { data: PodsData }} cluster={cluster} status={status} />}
      {known.data && <More shown={known.data.pods.length} total={known.data.total} word="pods" limit={page} grow={grow} />}
    </section>
  );
}

function Rows({ known, cluster, status }: { known: Known<PodsData> & { data: PodsData }; cluster: string | null; status: Status }) {
  return (
    <Table caption="Pods of the service" columns={columns} class="pods-table">
      {known.data.pods.map((pod) => {
        const state = states[pod.state] ?? states.unknown;
        const wrong = pod.devices.flatMap((d) => d.reasons);
        return (
          <Row
            key={pod.pod}
            columns={columns}
            data={pod.pod}
            class={`pod-${pod.state}${pod.stale ? " is-stale" : ""}`}
            cells={[
              pod.job && !pod.job.nested ? (
                <>
                  <Name>{`job ${pod.job.id}`}</Name>
                  {pod.job.user && <span class="under"><Name>{pod.job.user}</Name></span>}
                </>
              ) : (
                <Name>{pod.pod}</Name>
              ),
              <span class="tags">
                <Tag tone={state.tone === "good" && pressing(wrong) ? "calm" : state.tone} title={pod.state === "warming" ? `${state.title}; metrics should appear within ${warmup(status.config)}` : state.title}>
                  {state.word}
                </Tag>
                {(pod.exporter === "down" || pod.exporter === "frozen" || pod.exporter === "unrecognized") && (
                  <Tag tone="bad" title="The exporter of its node">
                    {pod.exporter === "unrecognized" ? "exporter's fields not known" : `exporter ${pod.exporter}`}
                  </Tag>
                )}
                <ReasonTags reasons={wrong} />
              </span>,
              <Utilization ratio={pod.values.utilization} of={pod.coverage.utilization} />,
              <Memory used={pod.values.memory_used} total={pod.values.memory_total} of={pod.coverage.memory_used} />,
              <>
                <Value value={pod.values.tensor} unit="1" unmeasured={unmeasured(pod, "tensor")} />
                <Partly of={pod.coverage.tensor} />
              </>,
              <>
                <Value value={pod.values.power} unit="W" />
                <Partly of={pod.coverage.power} />
              </>,
              pod.node ? (
                <a href={placeLink({ cluster, node: pod.node })}>
                  <Name>{pod.node}</Name>
                </a>
              ) : (
                <span class="none">no node</span>
              ),
              <Devices devices={pod.devices} cluster={cluster} />,
              <Age age={pod.data_age} stale={pod.stale} staleAfter={known.data.freshness.stale_after} receivedAt={known.receivedAt} time={pod.data_time} />,
            ]}
          />
        );
      })}
    </Table>
  );
}

/** The devices of a pod: how many of which kind, and each with its own value on demand. */
function Devices({ devices, cluster }: { devices: readonly Device[]; cluster: string | null }) {
  if (!devices.length) return <span class="none">none known</span>;
  const kinds = new Map<string, number>();
  for (const d of devices) {
    const kind = d.mig_profile ? `MIG ${d.mig_profile}` : isPart(d) ? partName(d) : d.parent ? "share" : shortModel(d);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return (
    <details class="devices">
      <summary>{[...kinds].map(([kind, n]) => (kind === "share" ? plural(n, "share") : `${n}${gap}×${gap}${kind}`)).join(", ")}</summary>
      <ul>
        {devices.map((d) => (
          <li key={d.id}>
            <a class="device-index" href={placeLink({ cluster, device: d.id })}>
              {gpuName(d)}
            </a>
            {d.values.utilization === null ? <span class="none">silent</span> : <Value value={d.values.utilization} unit="1" />}
            {d.stale && d.values.utilization !== null && <span class="stale-mark">stale</span>}
            <code>{safe(d.id)}</code>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** "NVIDIA H100 80GB HBM3" is "H100 80GB HBM3" to everybody who looks at this page. */
export const shortModel = (d: Pick<Device, "model" | "vendor">): string => (d.model ? safe(d.model).replace(/^(NVIDIA|AMD)\s+/i, "") : d.vendor && d.vendor !== "NVIDIA" ? `${safe(d.vendor)}${gap}GPU` : "GPU");

/** A partition of AMD or a tile of Intel. */
export const isPart = (d: { parent: string | null; partition: string | null }): boolean => d.parent !== null && d.partition !== null;
const partName = (d: Device): string => (d.partition_profile ? `${safe(d.partition_profile)}${gap}partition` : "tile");
