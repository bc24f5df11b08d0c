import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Capacity as CapacityData, CapacityNode, CapacityPool, Status, WaitingPods } from "../api/types";
import { count, duration, safe, text } from "../format";
import { type Known, usePoll } from "../poll";
import { type CapacityRoute, capacityLink, placeLink, replace } from "../router";
import { Skeleton } from "../parts/Figure";
import { Banner, Failure, Panel, Tag } from "../parts/notices";
import { Search } from "../parts/Search";
import { type Column, More, Row, Table } from "../parts/table";
import { Count, Name, Time, Value } from "../parts/values";
import { Switch } from "./Charts";
import { Command } from "./States";

const sizes = ["1", "2", "4", "8"] as const;
const shows = ["fit", "stranded", "free", "all"] as const;
const showNames = { fit: "Where it fits", stranded: "Stranded", free: "Free", all: "All" };

/** What the scheduler has to give, where a request fits, what is stranded and why, and what waits. */
export function Capacity({ at, status }: { at: CapacityRoute; status: Status }) {
  const size = /^([1-9]\d{0,2}|10[01]\d|102[0-4])$/.test(at.size) ? at.size : "8";
  const show = shows.find((s) => s === at.show) ?? "fit";
  const page = Math.min(100, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const poll = usePoll(
    async (signal) => {
      const query = { size, show, q: at.q };
      const first = await api.capacity({ ...query, limit: Math.min(page, limit) }, signal);
      const nodes = [...first.nodes];
      let next = first.next;
      while (next && nodes.length < limit) {
        const more = await api.capacity({ ...query, limit: page, cursor: next }, signal);
        nodes.push(...more.nodes);
        next = more.next;
      }
      return { ...first, nodes };
    },
    status.config.refresh * 1000,
    [size, show, at.q, limit],
  );
  const known = poll.known.value;
  const { data } = known;
  const go = (over: Partial<CapacityRoute>) => replace(capacityLink({ ...at, size, show, ...over }));
  return (
    <>
      <div class="toolbar">
        <h1>Capacity</h1>
        <Switch label="Devices of a request" options={sizes.map((s) => [s, s] as const)} value={size as (typeof sizes)[number]} change={(to) => go({ size: to })} />
      </div>
      <Failure known={known} refresh={poll.refresh} />
      {!data && !known.error && <Skeleton rows={6} />}
      {data && <Silent data={data} />}
      {data?.reason && <NotReported />}
      {data && !data.reason && (
        <>
          {data.hints.map((h) => (
            <Banner key={`${h.cluster ?? ""}\n${h.resource}`} tone="warn" title={`GPUs are free while pods wait${h.cluster ? ` in ${safe(h.cluster)}` : ""}`} name="free_but_waiting">
              <p>{safe(h.text)}</p>
            </Banner>
          ))}
          <Pools pools={data.pools} size={data.size} />
          <Waiting waiting={data.waiting} total={data.waiting_total} />
          <Nodes known={known as Known<CapacityData> & { data: CapacityData }} at={at} show={show} go={go} />
          <More shown={data.nodes.length} total={data.total} word="nodes" limit={page} grow={() => setLimit(limit + page)} />
        </>
      )}
    </>
  );
}

function Silent({ data }: { data: CapacityData }) {
  if (!data.silent.length) return null;
  return (
    <Banner tone="bad" title="The capacity of a cluster is not reported any more" name="silent">
      <ul class="names">
        {data.silent.map((s) => (
          <li key={s.cluster ?? ""}>
            {s.cluster ? <Name>{s.cluster}</Name> : "telemetry that names no cluster"} <span class="quiet">last evaluated <Time at={s.last} /></span>
          </li>
        ))}
      </ul>
    </Banner>
  );
}

function NotReported() {
  return (
    <Panel tone="info" title="Capacity is not reported" state="no_scheduling">
      <p>The gpu_scheduling receiver reads the nodes and pods of a Kubernetes cluster, once a cluster, in the gateway. It is in no pipeline, or the cluster has no accelerators.</p>
      <Command>{`otelcol-gpu --config gateway.yaml --config scheduler.yaml`}</Command>
    </Panel>
  );
}

const poolColumns = (size: number): readonly Column[] => [
  { name: "Devices", head: true },
  { name: "Allocatable", number: true },
  { name: "Requested", number: true },
  { name: "Free", number: true },
  { name: "Stranded", title: "Free, and no pod can get them now: by the first reason that applies" },
  { name: `Requests of ${size}`, title: `How many requests of ${size} would find a place now, and on how many nodes` },
  { name: "Fragmented", title: "Part of the free devices that requests as pods made them of late cannot use", number: true },
];

const reasonWords = (reason: string): string => safe(reason).replaceAll("_", " ");

function Pools({ pools, size }: { pools: readonly CapacityPool[]; size: number }) {
  const columns = poolColumns(size);
  return (
    <section class="pods" aria-label="Free devices">
      <div class="toolbar">
        <h2>Free devices</h2>
      </div>
      <Table caption="Devices by resource and model" columns={columns}>
        {pools.map((p) => (
          <Row
            key={`${p.cluster ?? ""}\n${p.resource}\n${p.model ?? ""}`}
            columns={columns}
            data={p.model ?? p.resource}
            cells={[
              <>
                <Name>{p.model ?? p.resource}</Name>
                <span class="under">{[p.model ? p.resource : "model not known", p.cluster].filter((s): s is string => !!s).map(safe).join(" · ")}</span>
              </>,
              <Count value={p.allocatable} />,
              <Count value={p.requested} />,
              <Count value={p.free} />,
              <>
                <Count value={p.stranded} />
                {p.stranded_by.length > 0 && <span class="of"> · {p.stranded_by.map((s) => `${count(s.devices)} ${reasonWords(s.reason)}`).join(", ")}</span>}
              </>,
              <>
                <Count value={p.fits} />
                {p.fit_nodes !== null && <span class="of"> · on {count(p.fit_nodes)} {p.fit_nodes === 1 ? "node" : "nodes"}</span>}
                {p.requests.length > 0 && (
                  <span class="under" title="How many requests of other sizes fit">
                    {p.requests.map((r) => `${r.size}: ${r.fits === null ? "—" : count(r.fits)}${r.fragmentation === null ? "" : ` (${text(r.fragmentation, "1")} fragmented)`}`).join(", ")}
                  </span>
                )}
              </>,
              <Value value={p.fragmentation} unit="1" title={p.fragmentation === null ? "none is free, or no pod asked of late" : undefined} />,
            ]}
          />
        ))}
      </Table>
    </section>
  );
}

const waitingColumns: readonly Column[] = [
  { name: "Namespace", head: true },
  { name: "Queue" },
  { name: "Reason" },
  { name: "Resource" },
  { name: "Pods", number: true },
  { name: "Devices", number: true },
  { name: "Oldest", title: "How long the oldest pod of the namespace, queue and reason has waited", number: true },
];

function Waiting({ waiting, total }: { waiting: readonly WaitingPods[]; total: number }) {
  return (
    <section class="pods" aria-label="Waiting pods">
      <div class="toolbar">
        <h2>Who waits</h2>
        <p class="quiet" role="status">{total === 0 ? "No GPU pod waits for a node." : "the oldest first"}</p>
      </div>
      {waiting.length > 0 && (
        <Table caption="Pods that wait for a node" columns={waitingColumns}>
          {waiting.map((w) => (
            <Row
              key={JSON.stringify([w.cluster, w.namespace, w.queue, w.reason, w.resource])}
              columns={waitingColumns}
              data={w.namespace}
              cells={[
                <>
                  <Name>{w.namespace}</Name>
                  {w.cluster && <span class="under"><Name>{w.cluster}</Name></span>}
                </>,
                w.queue ? <Name>{w.queue}</Name> : <span class="none">no queue</span>,
                <Tag tone={w.reason === "insufficient_gpu" ? "warn" : "info"}>{reasonWords(w.reason)}</Tag>,
                <Name>{w.resource}</Name>,
                <Count value={w.pods} />,
                <Count value={w.devices} />,
                w.oldest === null ? <Value value={null} unit="s" /> : <span class="value" data-value={w.oldest}>{duration(w.oldest)}</span>,
              ]}
            />
          ))}
        </Table>
      )}
      {total > waiting.length && <p class="quiet">The first {count(waiting.length)} of {count(total)}.</p>}
    </section>
  );
}

const nodeColumns = (size: number): readonly Column[] => [
  { name: "Node", head: true },
  { name: "Devices" },
  { name: "Allocatable", number: true },
  { name: "Requested", number: true },
  { name: "Free", number: true },
  { name: "Stranded", number: true },
  { name: `Requests of ${size}`, number: true },
];

function Nodes({ known, at, show, go }: { known: Known<CapacityData> & { data: CapacityData }; at: CapacityRoute; show: (typeof shows)[number]; go: (over: Partial<CapacityRoute>) => void }) {
  const { data } = known;
  const columns = nodeColumns(data.size);
  return (
    <section class={known.outdated ? "pods outdated" : "pods"} aria-label="Nodes">
      <div class="toolbar">
        <h2>Nodes</h2>
        <Switch label="Nodes" options={shows.map((s) => [s, showNames[s]] as const)} value={show} change={(to) => go({ show: to })} />
        <Search label="Filter nodes" value={at.q} change={(q) => go({ q })} />
      </div>
      {!data.nodes_known && <p class="empty">gpu_scheduling reports no nodes here (nodes: false).</p>}
      {data.nodes_known && data.nodes.length === 0 && <p class="empty">{show === "fit" ? `A request of ${data.size} fits on no such node.` : "There is no such node."}</p>}
      {data.nodes.length > 0 && (
        <Table caption="Devices of nodes" columns={columns}>
          {data.nodes.map((n) => (
            <Row key={JSON.stringify([n.cluster, n.node, n.resource, n.model])} columns={columns} data={n.node} cells={nodeCells(n)} />
          ))}
        </Table>
      )}
    </section>
  );
}

const nodeCells = (n: CapacityNode) => [
  <>
    <a href={placeLink({ cluster: n.cluster, node: n.node })}>
      <Name>{n.node}</Name>
    </a>
    {n.cluster && <span class="under"><Name>{n.cluster}</Name></span>}
    {n.schedulable === false && <Tag tone="info">cordoned</Tag>}
  </>,
  <>
    <Name>{n.model ?? n.resource}</Name>
    {n.model && <span class="under"><Name>{n.resource}</Name></span>}
  </>,
  <Count value={n.allocatable} />,
  <Count value={n.requested} />,
  <Count value={n.free} />,
  <Count value={n.stranded} />,
  <Count value={n.fits} />,
];
