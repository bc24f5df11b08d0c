import { useEffect, useRef, useState } from "preact/hooks";
import { api, ApiError } from "../api/client";
import type { Delivery, Events as EventsData, GpuEvent, ServiceName, Status } from "../api/types";
import { count, gap, latency, plural, safe } from "../format";
import { type Known, usePoll } from "../poll";
import { eventsLink, nodesLink, replace, serviceLink } from "../router";
import { Search } from "../parts/Search";
import { Failure, Tag, type Tone } from "../parts/notices";
import { Skeleton } from "../parts/Figure";
import { More } from "../parts/table";
import { Name, Time } from "../parts/values";

const severities: readonly [string, string][] = [
  ["", "All"],
  ["warn", "Warnings and errors"],
  ["error", "Errors"],
];

export function Events({ severity, q, active, name, event, status }: { severity: string; q: string; active: boolean; name: ServiceName | null; event: string; status: Status }) {
  const page = Math.min(50, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const wanted = severity === "warn" || severity === "error" || severity === "info" ? severity : "";
  const poll = usePoll(
    async (signal) => {
      const filter = { min_severity: wanted, q, active, ...(name ?? {}) };
      const first = await api.events({ ...filter, limit: Math.min(page, limit) }, signal);
      const events = [...first.events];
      let next = first.next;
      while (next && events.length < limit) {
        const more = await api.events({ ...filter, limit: page, cursor: next }, signal);
        events.push(...more.events);
        next = more.next;
      }
      return { ...first, events };
    },
    status.config.refresh * 1000,
    [wanted, q, active, name?.cluster, name?.namespace, name?.service, limit],
  );
  const filtered = wanted || q || active || name;
  const known = poll.known.value;
  return (
    <>
      <div class="toolbar">
        <h1>Events and deliveries</h1>
        <span class="switch" role="group" aria-label="Severity">
          {severities.map(([value, word]) => (
            <button key={value} type="button" aria-pressed={wanted === value} onClick={() => replace(eventsLink({ min_severity: value, q, active, name }))}>
              {word}
            </button>
          ))}
        </span>
        <span class="switch">
          <button type="button" aria-pressed={active} onClick={() => replace(eventsLink({ min_severity: wanted, q, active: !active, name }))}>
            Active now
          </button>
        </span>
        <Search label="Find a text, pod, node or GPU" value={q} change={(text) => replace(eventsLink({ min_severity: wanted, q: text, active, name }))} />
        {known.data && (
          <p class="quiet" role="status">
            {plural(known.data.total, "event")}, newest first; {plural(known.data.raised, "condition")}{filtered ? " of them" : ""} raised now
            {known.data.notices > 0 && `, ${plural(known.data.notices, "notice")}`}
          </p>
        )}
      </div>
      {name && (
        <p class="filter">
          Only events about{" "}
          <a href={serviceLink(name)}>
            <Name>{name.service}</Name>
          </a>{" "}
          in <Name>{name.namespace}</Name>. <a href={eventsLink({ min_severity: severity })}>Show all</a>
        </p>
      )}
      <Failure known={known} refresh={poll.refresh} />
      {!known.data && !known.error && <Skeleton rows={6} />}
      {known.data && known.data.events.length === 0 && (
        <p class="empty">{filtered ? "No such event in the log." : "No event has happened yet. The gpu_events connector raises them, and the webhook exporter sends them to webhooks."}</p>
      )}
      {known.data && known.data.events.length > 0 && <List known={known as Known<EventsData> & { data: EventsData }} marked={event} changed={poll.refresh} />}
      {known.data && <More shown={known.data.events.length} total={known.data.total} word="events" limit={page} grow={() => setLimit(limit + page)} />}
    </>
  );
}

function List({ known, marked, changed }: { known: Known<EventsData> & { data: EventsData }; marked: string; changed: () => void }) {
  return (
    <ol class="events">
      {known.data.events.map((e) => (
        <Item key={e.id} event={e} marked={e.id === marked} changed={changed} />
      ))}
    </ol>
  );
}

function tone(e: GpuEvent): Tone {
  if (e.state === "cleared") return "good";
  switch (e.severity) {
    case "fatal":
    case "error":
      return "bad";
    case "warn":
      return "warn";
    case null:
      return "calm";
    default:
      return "info";
  }
}

function Item({ event: e, marked, changed }: { event: GpuEvent; marked: boolean; changed: () => void }) {
  const self = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (marked) self.current?.scrollIntoView({ block: "center" });
  }, [marked]);
  return (
    <li class={marked ? "event marked" : "event"} data-event={e.id} ref={self}>
      <div class="event-time">
        <Time at={e.time} />
      </div>
      <div class="event-tag">
        <Tag tone={tone(e)}>{e.state === "cleared" ? "cleared" : e.severity === null ? "no record" : e.state === "raised" ? e.severity : (e.severity ?? "")}</Tag>
      </div>
      <div class="event-text">
        <p class="event-body">{e.body === null ? "The log has the deliveries of this event alone." : safe(e.body)}</p>
        <div class="event-meta">
          <code>{safe(e.name)}</code>
          <Subject event={e} />
          <Attributes event={e} />
          <Acknowledge event={e} changed={changed} />
        </div>
      </div>
      <div class="event-deliveries">
        <Deliveries deliveries={e.deliveries} />
      </div>
    </li>
  );
}

/** A notice is never cleared: who has seen it takes it from what needs attention. */
function Acknowledge({ event: e, changed }: { event: GpuEvent; changed: () => void }) {
  const [state, setState] = useState<"" | "asked" | string>("");
  if (e.acknowledged_at) {
    return (
      <span class="quiet">
        acknowledged <Time at={e.acknowledged_at} />
      </span>
    );
  }
  if (!e.notice || !e.active) return null;
  const acknowledge = async () => {
    setState("asked");
    try {
      await api.acknowledge(e.id, AbortSignal.timeout(45_000));
      changed();
    } catch (error) {
      setState(error instanceof ApiError ? `${error.message} ${error.detail}` : String(error));
    }
  };
  return (
    <>
      <button type="button" class="link" disabled={state === "asked"} onClick={acknowledge}>
        Acknowledge
      </button>
      {state && state !== "asked" && <span role="alert">{safe(state)}</span>}
    </>
  );
}

function Subject({ event: { subject: s } }: { event: GpuEvent }) {
  if (s.service && s.namespace) {
    return (
      <a href={serviceLink({ cluster: s.cluster, slurm_cluster: s.slurm_cluster, namespace: s.namespace, service: s.service })}>
        <Name>{s.service}</Name>
      </a>
    );
  }
  if (s.node) {
    return (
      <a href={nodesLink({ q: s.node, node: s.node })}>
        <Name>{s.node}</Name>
      </a>
    );
  }
  const rest = s.pod ?? s.device;
  return rest ? <Name>{rest}</Name> : null;
}

function Attributes({ event: e }: { event: GpuEvent }) {
  const entries = Object.entries(e.attributes);
  return (
    <details class="attributes">
      <summary>Details</summary>
      <dl>
        <div>
          <dt>gpu.event.id</dt>
          <dd>{safe(e.id)}</dd>
        </div>
        <div>
          <dt>gpu.event.key</dt>
          <dd>{safe(e.key)}</dd>
        </div>
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>{safe(name)}</dt>
            <dd>{safe(Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value))}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** What became of the deliveries: by receiver, its last attempt decides. */
function Deliveries({ deliveries }: { deliveries: readonly Delivery[] }) {
  if (!deliveries.length) return <span class="quiet">no receiver</span>;
  const receivers = new Map<string, Delivery[]>();
  for (const d of deliveries) {
    const key = d.trigger === "event" ? d.receiver : `${d.receiver}\n${d.trigger}`;
    receivers.set(key, [...(receivers.get(key) ?? []), d]);
  }
  return (
    <ul class="deliveries">
      {[...receivers].map(([key, attempts]) => (
        <li key={key}>
          <Receiver attempts={attempts} />
        </li>
      ))}
    </ul>
  );
}

function outcome(d: Delivery): { tone: Tone; word: string } {
  if (d.outcome === "succeeded") return { tone: "good", word: "delivered" };
  if (d.next_attempt) return { tone: "warn", word: "will be tried again" };
  if (d.outcome === "blocked") return { tone: "bad", word: "blocked" };
  if (d.outcome === "dropped") return { tone: "bad", word: "dropped" };
  return { tone: "bad", word: "given up" };
}

function Receiver({ attempts }: { attempts: readonly Delivery[] }) {
  const last = attempts[attempts.length - 1]!;
  const { tone, word } = outcome(last);
  return (
    <details>
      <summary>
        <Tag tone={tone}>
          <Name>{last.receiver}</Name> {word}
        </Tag>
        {last.trigger !== "event" && <span class="quiet"> {last.trigger}</span>}
        {attempts.length > 1 && <span class="quiet"> {count(attempts.length)} attempts</span>}
      </summary>
      <ul class="attempts">
        {attempts.map((d) => (
          <li key={d.id}>
            <Time at={d.time} /> <span class="quiet">to</span> {safe(d.url_host)} <span class="quiet">({safe(d.format)})</span>: {what(d)}
            {d.next_attempt && (
              <span class="quiet">
                , next <Time at={d.next_attempt} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** An attempt in words: "503 http_5xx, attempt 1 of 3, 84 ms". */
function what(d: Delivery): string {
  const parts = [[d.status !== null ? String(d.status) : "", d.error_type ? safe(d.error_type) : ""].filter(Boolean).join(" ") || d.outcome];
  if (d.attempt > 0) parts.push(`attempt ${d.attempt}${gap}of${gap}${d.max_attempts}`, latency(d.duration));
  else parts.push("no attempt");
  return parts.join(", ");
}
