import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { FleetSummary, Service, Services, Status, WindowName } from "../api/types";
import { count, plural } from "../format";
import { type Known, usePoll } from "../poll";
import { chosenWindow, windowNames, windowOf } from "../preferences";
import { notWell, unwell } from "../health";
import { fleetLink, nodesLink, replace, serviceLink } from "../router";
import { busyUnowned, heldParts, told } from "../state";
import { begin, Sparkline, Stack } from "../parts/bars";
import { HealthTags } from "../parts/health";
import { Failure } from "../parts/notices";
import { Elsewhere, ReasonTags } from "../parts/reasons";
import { type Column, More, Row, Table } from "../parts/table";
import { Age, Memory, Name, Partly, Utilization, Value } from "../parts/values";
import { Search } from "../parts/Search";
import { Figure, Skeleton } from "../parts/Figure";
import { WindowSwitch } from "./Charts";
import { Nodes } from "./Nodes";
import { NoServices } from "./States";

const columns = (window: WindowName): readonly Column[] => [
  { name: "Service", head: true },
  { name: "Attention", class: "wide" },
  { name: "Utilization", title: `Mean over the service's pods, and over the last ${windowNames[window]}` },
  { name: "Memory", title: "Sum over the service's devices" },
  { name: "Power", title: "Sum over the service's devices", number: true },
  { name: "Devices", title: "Held by the service: busy, idle for long, and the rest" },
  { name: "Pods", title: "Pods in the mean, of those settled" },
  { name: "Data age", number: true },
];

export function Fleet({ q, status }: { q: string; status: Status }) {
  const page = Math.min(100, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const window = windowOf(null, status);
  const poll = usePoll((signal) => pages(q, limit, page, window, signal), status.config.refresh * 1000, [q, limit, window]);
  const known = poll.known.value;
  return (
    <>
      <h1 class="vh">Fleet</h1>
      <Failure known={known} refresh={poll.refresh} />
      {!known.data && !known.error && <Skeleton rows={6} />}
      {known.data && (
        <>
          <Elsewhere reasons={known.data.summary.reasons} />
          <Summary summary={known.data.summary} status={status} />
          {known.data.total === 0 && !q ? (
            <>
              {status.state === "no_services" && status.telemetry.kubernetes && <NoServices status={status} />}
              <Nodes q="" node="" status={status} alone={false} />
              {status.state === "no_services" && !status.telemetry.kubernetes && <NoServices status={status} />}
            </>
          ) : (
            <>
              <div class="toolbar">
                <h2>Services</h2>
                <Search label="Filter services" value={q} change={(text) => replace(fleetLink(text))} />
                <p class="quiet" role="status">
                  {q ? `${plural(known.data.total, "match").replace(/matchs$/, "matches")}` : `${plural(known.data.total, "service")}, what needs attention first`}
                </p>
                <span class="spread" />
                <WindowSwitch status={status} window={window} />
              </div>
              {known.data.services.length > 0 ? (
                <Rows known={known as Known<Services> & { data: Services }} window={window} />
              ) : (
                <p class="empty">No service has this text in its name, namespace or cluster.</p>
              )}
              <More shown={known.data.services.length} total={known.data.total} word="services" limit={page} grow={() => setLimit(limit + page)} />
            </>
          )}
        </>
      )}
    </>
  );
}

/** As many pages as are shown, put together: a list that grew is refreshed whole. */
async function pages(q: string, wanted: number, size: number, window: WindowName, signal: AbortSignal): Promise<Services> {
  const first = await api.services({ q, limit: Math.min(size, wanted), trend: true, window }, signal);
  const services = [...first.services];
  let next = first.next;
  while (next && services.length < wanted) {
    const more = await api.services({ q, limit: size, cursor: next, trend: true, window }, signal);
    services.push(...more.services);
    next = more.next;
  }
  return { ...first, services };
}

function Summary({ summary: s, status }: { summary: FleetSummary; status: Status }) {
  const { busy, rest } = heldParts(s.devices_held, s.devices_busy, s.devices_idle);
  const unowned = busyUnowned(s.devices_busy, busy, s.devices_unknown);
  return (
    <section class="summary" aria-label="The whole fleet">
      <div class="summary-main">
        <dl><Figure name="GPUs" value={s.devices} unit="count" /></dl>
        <Stack
          legend
          label="GPUs"
          total={s.devices}
          parts={[
            { name: "busy", value: busy === null ? null : busy + unowned, kind: "busy" },
            { name: "held, not busy", value: rest, kind: "rest" },
            { name: "idle-held", value: s.devices_idle, kind: "idle" },
            { name: "free", value: s.devices_free, kind: "free" },
            { name: "lost", value: s.devices_lost || null, kind: "missing" },
            { name: unowned ? "not busy, owner unknown" : "owner unknown", value: (s.devices_unknown ?? 0) - unowned || null, kind: "unknown" },
          ]}
        />
      </div>
      <dl class="figures">
        <Unhealthy counts={s.health} />
        <Figure name="Utilization" note={<>mean over GPUs <Partly of={s.coverage.utilization} /></>} value={s.utilization} unit="1" />
        <Figure name="Memory used" note={s.memory_total !== null ? <>of <Value value={s.memory_total} unit="By" /> <Partly of={s.coverage.memory_used} /></> : undefined} value={s.memory_used} unit="By" />
        <Figure name="Power" note={<Partly of={s.coverage.power} />} value={s.power} unit="W" />
        <Figure
          name="Need attention"
          note={s.services !== null ? `of ${plural(s.services, "service")}` : undefined}
          value={s.attention}
          unit="count"
          tone={s.attention ? "warn" : undefined}
        />
        <Figure name="Pods pending" note="wait for a node" value={s.pods_pending} unit="count" tone={s.pods_pending ? "warn" : undefined} />
        <Figure name="Events raised" note={<a href="#/events">what and when{status.telemetry.notices ? `, ${plural(status.telemetry.notices, "notice")}` : ""}</a>} value={status.telemetry.raised_events} unit="count" />
      </dl>
    </section>
  );
}

/** Boards that are not well. What is not known is no zero, and says so. */
function Unhealthy({ counts }: { counts: FleetSummary["health"] }) {
  if (!counts) return <Figure name="Unhealthy GPUs" value={null} unit="count" title="Nothing reports the health of GPUs" note="health not reported" />;
  const parts = [
    [counts.failed, "failed"],
    [counts.predicted_failure, "predicted to fail"],
    [counts.degraded, "degraded"],
    [counts.unknown, "unknown"],
    [counts.ok, "ok"],
  ] as const;
  const words = parts.filter(([n]) => n > 0).map(([n, word]) => `${count(n)} ${word}`);
  const tone = counts.failed ? "bad" : notWell(counts) ? "warn" : undefined;
  return <Figure name="Unhealthy GPUs" value={notWell(counts)} unit="count" note={<a href={nodesLink({ attention: true })}>{words.join(", ") || "no GPU"}</a>} {...(tone && { tone })} />;
}

function Rows({ known, window }: { known: Known<Services> & { data: Services }; window: WindowName }) {
  const { services, freshness } = known.data;
  const all = columns(window);
  // Unless a window was chosen, a young store's lines begin where its data does.
  const from = chosenWindow.value === "auto" ? begin(services.map((s) => s.trend ?? [])) : 0;
  return (
    <Table caption="Services, those that need attention first" columns={all} class="fleet">
      {services.map((s) => (
        <Row
          key={`${s.cluster ?? ""}\n${s.slurm_cluster ?? ""}\n${s.namespace}\n${s.service}`}
          columns={all}
          class={s.stale ? "linked is-stale" : "linked"}
          data={s.service}
          cells={[
            <>
              <a class="row-link" href={serviceLink(s)}>
                <Name>{s.service}</Name>
              </a>
              <span class="under">
                <Name>{s.namespace}</Name>
                {(s.slurm_cluster ?? s.cluster) && (
                  <>
                    <span aria-hidden="true"> · </span>
                    <Name>{(s.slurm_cluster ?? s.cluster)!}</Name>
                  </>
                )}
              </span>
            </>,
            <Reasons service={s} />,
            <span class="with-spark">
              <Utilization ratio={s.values.utilization} min={s.utilization_min} max={s.utilization_max} of={s.coverage.utilization} />
              <Sparkline values={s.trend && s.trend.slice(from)} />
            </span>,
            <Memory used={s.totals.memory_used} total={s.totals.memory_total} of={s.coverage.memory_used} />,
            <>
              <Value value={s.totals.power} unit="W" />
              <Partly of={s.coverage.power} />
            </>,
            <DevicesOf service={s} />,
            <PodsOf service={s} />,
            <Age age={s.data_age} stale={s.stale} staleAfter={freshness.stale_after} receivedAt={known.receivedAt} time={s.data_time} />,
          ]}
        />
      ))}
    </Table>
  );
}

function Reasons({ service }: { service: Service }) {
  const reasons = told(service);
  if (!reasons.length) return <span class="fine">all well</span>;
  return (
    <span class="tags">
      <ReasonTags reasons={reasons} />
    </span>
  );
}

function DevicesOf({ service: { devices: d } }: { service: Service }) {
  if (d.held === null) return <Value value={null} unit="count" />;
  const { busy, rest } = heldParts(d.held - (d.missing ?? 0), d.busy, d.idle ?? 0);
  const health = unwell(d.health);
  const words = [d.busy !== null && `${count(d.busy)} busy`, d.idle ? `${count(d.idle)} idle` : "", d.missing ? `${count(d.missing)} silent` : "", d.frozen ? `${count(d.frozen)} frozen` : ""].filter(Boolean);
  return (
    <span class="with-stack">
      <span class="stack-words">
        <span class="value" data-value={d.held}>
          {count(d.held)} held
        </span>
        {words.length > 0 && <span class="of"> · {words.join(" · ")}</span>}
      </span>
      {health.some((h) => h.tone !== "info") && (
        <span class="tags">
          <HealthTags counts={d.health} />
        </span>
      )}
      <Stack
        label="Devices"
        total={d.held}
        parts={[
          { name: "busy", value: busy, kind: "busy" },
          { name: busy === null ? "held" : "held, not busy", value: busy === null ? d.held - (d.idle ?? 0) - (d.missing ?? 0) : rest, kind: "rest" },
          { name: "idle for long", value: d.idle, kind: "idle" },
          { name: "silent", value: d.missing, kind: "missing" },
        ]}
      />
    </span>
  );
}

function PodsOf({ service: { pods: p } }: { service: Service }) {
  if (p.total === null) return <Value value={null} unit="count" />;
  const words = [p.warming ? `${count(p.warming)} warming` : "", p.not_running ? `${count(p.not_running)} not running` : ""].filter(Boolean);
  return (
    <span class="with-stack">
      <span class="stack-words">
        <span class="value">
          {p.in_mean === null ? "—" : count(p.in_mean)} of {p.settled === null ? "—" : count(p.settled)}
        </span>
        {words.length > 0 && <span class="of"> · {words.join(" · ")}</span>}
      </span>
      <Stack
        label="Pods"
        total={p.total}
        parts={[
          { name: "reporting", value: p.reporting, kind: "reporting" },
          { name: "degraded", value: p.degraded, kind: "degraded" },
          { name: "missing", value: p.missing, kind: "missing" },
          { name: "warming", value: p.warming, kind: "warming" },
          { name: "not running", value: p.not_running, kind: "off" },
        ]}
      />
    </span>
  );
}
