import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Device, GpuNode, Nodes as NodesData, Status, WindowName } from "../api/types";
import { count, gpuName, plural, text } from "../format";
import { type Known, usePoll } from "../poll";
import { windowOf } from "../preferences";
import { nodesLink, placeLink, replace, serviceLink } from "../router";
import { HealthTag } from "../parts/health";
import { Banner, Failure, Tag } from "../parts/notices";
import { ReasonTags } from "../parts/reasons";
import { Skeleton } from "../parts/Figure";
import { More } from "../parts/table";
import { Search } from "../parts/Search";
import { Age, Name } from "../parts/values";
import { DeviceCharts } from "./Charts";
import { shortModel } from "./Pods";
import { DeviceTable } from "./Devices";

/** So few nodes are all open, and have their charts at once. */
const few = 2;

/** All nodes; `alone`: as a view of its own, else below another. */
export function Nodes({ q, node, attention = false, status, alone = true }: { q: string; node: string; attention?: boolean; status: Status; alone?: boolean }) {
  const page = Math.min(50, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const poll = usePoll(
    async (signal) => {
      const wanted = { q, ...(attention && { attention }) };
      const first = await api.nodes({ ...wanted, limit: Math.min(page, limit) }, signal);
      const nodes = [...first.nodes];
      let next = first.next;
      while (next && nodes.length < limit) {
        const more = await api.nodes({ ...wanted, limit: page, cursor: next }, signal);
        nodes.push(...more.nodes);
        next = more.next;
      }
      return { ...first, nodes };
    },
    status.config.refresh * 1000,
    [q, attention, limit],
  );
  const known = poll.known.value;
  return (
    <>
      {alone && <h1 class="vh">Nodes</h1>}
      <Failure known={known} refresh={poll.refresh} />
      {!known.data && !known.error && <Skeleton rows={6} />}
      {known.data && (
        <>
          <Pending pending={known.data.pending} />
          <div class="toolbar">
            <h2>Nodes</h2>
            {alone && (
              <>
                <span class="switch">
                  <button type="button" aria-pressed={attention} onClick={() => replace(nodesLink({ q, attention: !attention }))}>
                    Needs attention
                  </button>
                </span>
                <Search label="Filter nodes" value={q} change={(text) => replace(nodesLink({ q: text, attention }))} />
              </>
            )}
            <p class="quiet" role="status">
              {attention ? `${plural(known.data.total, "node")} ${known.data.total === 1 ? "needs" : "need"} attention` : `${plural(known.data.total, "node")}, what needs attention first`}
            </p>
            <span class="spread" />
            <Key />
          </div>
          {known.data.nodes.length === 0 && <p class="empty">{q ? "No such node has this text in its name or cluster." : attention ? "No node needs attention." : "No node is known."}</p>}
          <ul class="nodes">
            {known.data.nodes.map((n) => (
              <NodeItem
                key={`${n.cluster ?? ""}\n${n.node}`}
                node={n}
                known={known as Known<NodesData> & { data: NodesData }}
                open={n.node === node || known.data!.total <= few}
                status={status}
                charts={known.data!.total <= few ? windowOf(null, status) : null}
              />
            ))}
          </ul>
          <More shown={known.data.nodes.length} total={known.data.total} word="nodes" limit={page} grow={() => setLimit(limit + page)} />
          <Strays known={known as Known<NodesData> & { data: NodesData }} />
        </>
      )}
    </>
  );
}

function Pending({ pending }: { pending: NodesData["pending"] }) {
  if (!pending.pods) return null;
  return (
    <Banner tone="warn" title={`${plural(pending.pods, "GPU pod")} wait${pending.pods === 1 ? "s" : ""} for a node`} name="pending">
      <ul class="names">
        {pending.services.map((s) => (
          <li key={`${s.cluster ?? ""}\n${s.namespace}\n${s.service}`}>
            <a href={serviceLink(s)}>
              <Name>{s.service}</Name>
            </a>{" "}
            <span class="quiet">
              in <Name>{s.namespace}</Name>, {plural(s.pods, "pod")}
            </span>
          </li>
        ))}
      </ul>
    </Banner>
  );
}

const exporterWords = { up: "up", down: "down", frozen: "frozen", unrecognized: "fields not known", unknown: "silent" } as const;

/** Exporters scraped by an address: which node is behind it, nobody says. */
function Strays({ known }: { known: Known<NodesData> & { data: NodesData } }) {
  const { exporters, freshness } = known.data;
  if (!exporters.length) return null;
  return (
    <section class="strays" aria-labelledby="strays">
      <div class="toolbar">
        <h2 id="strays">Exporters</h2>
        <p class="quiet">scraped by address: which node each is on is not known</p>
      </div>
      <ul>
        {exporters.map((e) => (
          <li key={`${e.cluster ?? ""}\n${e.address}`} data-exporter={e.address}>
            <Name>{e.address}</Name>
            {e.cluster && (
              <span class="quiet">
                in <Name>{e.cluster}</Name>
              </span>
            )}
            <Tag tone={e.state === "up" ? "good" : "bad"}>{exporterWords[e.state]}</Tag>
            {e.state === "unknown" && <Age age={e.data_age} stale={true} staleAfter={freshness.stale_after} receivedAt={known.receivedAt} time={e.data_time} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

const cells: readonly [string, string][] = [
  ["held", "held, and how busy"],
  ["idle", "idle-held"],
  ["free", "free"],
  ["silent", "held, no data"],
  ["lost", "lost"],
  ["unknown", "owner unknown"],
];

/** What the cells mean. */
function Key() {
  return (
    <ul class="key" aria-label="Key">
      {cells.map(([state, word]) => (
        <li key={state}>
          <span class={`cell ${state}`} aria-hidden="true">
            {state === "held" && <span class="cell-fill" style={{ height: "60%" }} />}
          </span>
          {word}
        </li>
      ))}
    </ul>
  );
}

function NodeItem({ node: n, known, open: wanted, status, charts }: { node: GpuNode; known: Known<NodesData> & { data: NodesData }; open: boolean; status: Status; charts: WindowName | null }) {
  const [open, setOpen] = useState(wanted);
  useEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  const physical = n.devices.filter((d) => d.parent === null);
  const models = [...new Set(physical.map(shortModel))];
  const c = n.counts;
  return (
    <li class={`node node-${n.state}${n.stale ? " is-stale" : ""}`} data-node={n.node}>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="node-name">
            <Name>{n.node}</Name>
            {n.cluster && (
              <span class="under">
                <Name>{n.cluster}</Name>
              </span>
            )}
          </span>
          <span class="strip" role="img" aria-label={strip(physical)}>
            {physical.slice(0, 64).map((d) => (
              <Cell key={d.id} device={d} instances={n.devices.filter((i) => i.parent === d.id)} />
            ))}
          </span>
          <span class="node-model">{models.length ? `${count(c.devices)} × ${models.join(", ")}` : "no device known"}</span>
          <span class="node-counts">
            {c.held > 0 && <span>{count(c.held)} held</span>}
            {c.idle > 0 && <span>{count(c.idle)} idle-held</span>}
            {c.free > 0 && <span>{count(c.free)} free</span>}
            {c.lost > 0 && <span>{count(c.lost)} lost</span>}
            {c.unknown > 0 && <span>{count(c.unknown)} unknown</span>}
          </span>
          <span class="node-health">
            <span class="vh">Health: </span>
            <HealthTag health={n.health} />
          </span>
          <span class="tags">
            <NodeTags node={n} />
          </span>
          <span class="node-age">
            <Age age={n.data_age} stale={n.stale} staleAfter={known.data.freshness.stale_after} receivedAt={known.receivedAt} time={n.data_time} />
          </span>
        </summary>
        {open && (
          <>
            {charts && n.devices.length > 0 ? (
              <DeviceCharts where={{ cluster: n.cluster, node: n.node }} status={status} window={charts} />
            ) : (
              <p class="node-links">
                <a href={placeLink({ cluster: n.cluster, node: n.node })}>
                  Charts and health of <Name>{n.node}</Name>
                </a>
              </p>
            )}
            <DeviceTable node={n} receivedAt={known.receivedAt} staleAfter={known.data.freshness.stale_after} />
          </>
        )}
      </details>
    </li>
  );
}

export function NodeTags({ node: n }: { node: GpuNode }) {
  const silent = n.exporter === "up" ? n.devices.filter((d) => d.parent === null && (d.state === "held" || d.state === "idle") && d.values.utilization === null).length : 0;
  const well = n.health.reasons.length === 0 && !n.reasons.length && n.state === "ok" && !silent && n.schedulable !== false && !n.mig_reconfiguring;
  return (
    <>
      <ReasonTags reasons={n.reasons} />
      {n.state === "unknown" && <Tag tone="info" title="The store took nothing that would show it">not stored</Tag>}
      {silent > 0 && <Tag tone="info">{plural(silent, "device")} without data</Tag>}
      {n.schedulable === false && <Tag tone="info">cordoned</Tag>}
      {n.mig_reconfiguring && <Tag tone="info">MIG is being changed</Tag>}
      {well && (n.exporter === "unknown" ? <Tag tone="info" title="Which exporter is this node’s is not known, and one of them is down; or nothing tells of any">exporter not known</Tag> : <Tag tone="good">all well</Tag>)}
    </>
  );
}

const words: Record<Device["state"], string> = { held: "held", idle: "idle-held", free: "free", lost: "lost", split: "MIG", unknown: "owner unknown" };

const word = (d: Device): string => (d.state === "split" && d.vendor !== null && d.vendor !== "NVIDIA" ? "divided" : words[d.state]);

/** One device at a glance: its state by outline and sign, its utilization by height. */
function Cell({ device: d, instances }: { device: Device; instances: readonly Device[] }) {
  const u = d.values.utilization;
  const title = `${gpuName(d)}: ${word(d)}, ${text(u, "1")}${d.stale && u !== null ? ", stale" : ""}`;
  const silent = (d.state === "held" || d.state === "idle") && u === null;
  if (d.state === "split") {
    return (
      <span class="cell split" title={title}>
        {instances.slice(0, 7).map((i) => (
          <span key={i.id} class={`slice ${i.state}`} />
        ))}
      </span>
    );
  }
  return (
    <span class={`cell ${silent ? "silent" : d.state}${d.stale ? " old" : ""}`} title={title}>
      {u !== null && d.state !== "lost" && d.state !== "free" && <span class="cell-fill" style={{ height: `${Math.max(4, u * 100).toFixed(0)}%` }} />}
    </span>
  );
}

function strip(devices: readonly Device[]): string {
  if (!devices.length) return "No device known";
  return devices.map((d) => `${gpuName(d)} ${word(d)} ${text(d.values.utilization, "1")}`).join("; ");
}
