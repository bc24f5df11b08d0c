import type { Reason } from "../api/types";
import { count, gap, safe } from "../format";
import { elsewhere, grouped, toneOf } from "../reasons";
import { eventsLink, placeLink, serviceLink } from "../router";
import { Banner, Tag } from "./notices";
import { Name } from "./values";

const most = 6;

/** A tag for each reason, the worst first; its title has the sentence. */
export function ReasonTags({ reasons }: { reasons: readonly Reason[] }) {
  const all = grouped(reasons);
  return (
    <>
      {all.slice(0, most).map(({ reason, times, texts }) => (
        <Tag key={reason.label} tone={toneOf(reason.severity)} title={texts.slice(0, most).map(safe).join("\n")}>
          {safe(reason.label)}
          {times > 1 && `${gap}×${gap}${count(times)}`}
        </Tag>
      ))}
      {all.length > most && <span class="quiet">and {count(all.length - most)} more</span>}
    </>
  );
}

/** Reasons as sentences, each with where it leads. */
export function ReasonList({ reasons, total = reasons.length, here = {} }: { reasons: readonly Reason[]; total?: number; here?: { service?: boolean; node?: boolean } }) {
  return (
    <ul class="reasons">
      {reasons.map((r) => (
        <li key={`${r.label}\n${r.text}`} data-reason={r.kind}>
          <Tag tone={toneOf(r.severity)}>{safe(r.label)}</Tag>
          <span>{safe(r.text)}</span>
          <Links reason={r} here={here} />
        </li>
      ))}
      {total > reasons.length && <li class="quiet">and {count(total - reasons.length)} more</li>}
    </ul>
  );
}

function Links({ reason: { subject: s, event_id: event, endpoint }, here }: { reason: Reason; here: { service?: boolean; node?: boolean } }) {
  return (
    <span class="links">
      {s.service && s.namespace && !here.service && (
        <a href={serviceLink({ cluster: s.cluster, slurm_cluster: s.slurm_cluster, namespace: s.namespace, service: s.service })}>
          <Name>{s.service}</Name>
        </a>
      )}
      {s.node && !here.node && (
        <a href={placeLink({ cluster: s.cluster, node: s.node })}>
          <Name>{s.node}</Name>
        </a>
      )}
      {s.device && <a href={placeLink({ cluster: s.cluster, device: s.device })}>device</a>}
      {(event || endpoint) && <a href={eventsLink({ event })}>{endpoint ? "deliveries" : "event"}</a>}
    </span>
  );
}

/** Webhook endpoints that do not get their deliveries: nobody is paged by them. */
export function Endpoints({ endpoints }: { endpoints: readonly Reason[] }) {
  if (!endpoints.length) return null;
  const title = endpoints.some((r) => r.endpoint === null) ? "The audit log of webhooks was set aside" : endpoints.length === 1 ? "A webhook endpoint does not get its deliveries" : `${count(endpoints.length)} webhook endpoints do not get their deliveries`;
  return (
    <Banner tone={endpoints.some((r) => r.severity === "error") ? "bad" : "warn"} title={title} name="endpoints">
      <ReasonList reasons={endpoints.slice(0, 10)} total={endpoints.length} />
    </Banner>
  );
}

export function Elsewhere({ reasons }: { reasons: readonly Reason[] }) {
  const found = elsewhere(reasons);
  if (!found.length) return null;
  return (
    <Banner tone={found.some((r) => r.severity === "error") ? "bad" : "warn"} title="Nodes and devices need attention" name="elsewhere">
      <ReasonList reasons={found.slice(0, 8)} total={found.length} />
    </Banner>
  );
}
