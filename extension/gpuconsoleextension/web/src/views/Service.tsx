import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import type { Coverage, Pod, Service as ServiceData, ServiceAnswer, ServiceName, Status, WindowName } from "../api/types";
import { likelyCauses } from "../causes";
import { count, duration, plural, safe, warmup } from "../format";
import { grafanaLink } from "../grafana";
import { now } from "../clock";
import { type Known, usePoll } from "../poll";
import { costLink, eventsLink, fleetLink } from "../router";
import { ageNow, averagesOver, noAverages, partly, serviceState, staleNow, told } from "../state";
import { HealthTags } from "../parts/health";
import { Banner, Failure, Panel, Tag } from "../parts/notices";
import { ReasonList, ReasonTags } from "../parts/reasons";
import { pressing } from "../reasons";
import { Figure, Skeleton } from "../parts/Figure";
import { Age, Name, Partly, Value, unmeasured } from "../parts/values";
import { Stack } from "../parts/bars";
import { announce, useTitle } from "../parts/announce";
import { Charts } from "./Charts";
import { Inference } from "./Inference";
import { Pods, usePods } from "./Pods";

export function Service({ name, status, window, by }: { name: ServiceName; status: Status; window: WindowName; by: "service" | "pod" }) {
  const refresh = status.config.refresh * 1000;
  const poll = usePoll((signal) => api.service(name, signal), refresh, []);
  const pods = usePods(name, status);
  const known = poll.known.value;
  const state = known.data ? serviceState(known.data.service) : null;
  useTitle(`${safe(name.service)} · ${safe(name.namespace)}`);
  useEffect(() => {
    if (state) announce(`${safe(name.service)}: ${sentences[state]}`);
  }, [state]);
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={fleetLink()}>Fleet</a>
        <span aria-hidden="true">/</span>
        {name.cluster && (
          <>
            <a href={fleetLink(name.cluster)}>
              <Name>{name.cluster}</Name>
            </a>
            <span aria-hidden="true">/</span>
          </>
        )}
        <a href={fleetLink(name.namespace)}>
          <Name>{name.namespace}</Name>
        </a>
      </nav>
      <Head name={name} known={known} status={status} window={window} />
      {known.error?.status === 404 && !known.data ? (
        <Panel tone="info" title="Nothing is known of this service" state="not_found">
          <p>No telemetry and no allocation names it. It may have been deleted, or it has another name, namespace or cluster.</p>
          <p>
            <a href={fleetLink(name.service)}>Look for “{safe(name.service)}” in the fleet</a>
          </p>
        </Panel>
      ) : (
        <Failure known={known} refresh={poll.refresh} />
      )}
      {!known.data && !known.error && <Skeleton rows={5} />}
      {known.data && (
        <>
          <Notices known={known as Known<ServiceAnswer> & { data: ServiceAnswer }} pods={pods.poll.known.value.data?.pods ?? null} status={status} />
          <Cards service={known.data.service} stale={known.data.service.stale} />
          {known.data.service.inference && <Inference data={known.data.service.inference} />}
          <Charts name={name} status={status} window={window} by={by} service={known.data.service} />
          <Pods pods={pods} cluster={name.cluster} status={status} />
        </>
      )}
    </>
  );
}

const sentences = {
  ok: "reporting",
  warming: "warming up",
  partial: "partial, pods are missing",
  no_data: "no data from any pod",
  not_running: "no pod is running",
  unknown: "not known yet",
};

function Head({ name, known, status, window }: { name: ServiceName; known: Known<ServiceAnswer>; status: Status; window: WindowName }) {
  const link = grafanaLink(status.config.grafana, name, window);
  const service = known.data?.service;
  const reasons = service ? told(service) : [];
  return (
    <div class="head-line">
      <h1>
        <Name>{name.service}</Name>
      </h1>
      {service && (
        <span class="tags">
          {reasons.length === 0 ? <Tag tone="good">all well</Tag> : <ReasonTags reasons={reasons} />}
          <HealthTags counts={service.devices.health} />
        </span>
      )}
      <span class="spread" />
      {known.data && service && service.data_age !== null && (
        <span class="quiet">
          data{" "}
          <Age age={service.data_age} stale={service.stale} staleAfter={known.data.freshness.stale_after} receivedAt={known.receivedAt} time={service.data_time} suffix=" old" />
        </span>
      )}
      <a class="button" href={costLink({ by: "service", namespace: name.namespace, cluster: name.cluster ?? "" })} title="Of the services of its namespace">
        Cost
      </a>
      <a class="button" href={eventsLink({ name })}>
        Events
      </a>
      {link && (
        <a class="button" href={link} target="_blank" rel="noopener noreferrer">
          Open in Grafana<span aria-hidden="true"> ↗</span>
          <span class="vh"> (new tab)</span>
        </a>
      )}
    </div>
  );
}

/** What the reader should know before believing the numbers. */
function Notices({ known, pods, status }: { known: Known<ServiceAnswer> & { data: ServiceAnswer }; pods: readonly Pod[] | null; status: Status }) {
  const { service, missing_pods: missing, freshness } = known.data;
  const state = serviceState(service);
  const age = ageNow(service.data_age, known.receivedAt, now.value);
  const stale = staleNow(service.stale, age, freshness.stale_after);
  const more = (service.pods.missing ?? missing.length) - missing.length;
  const settled = service.pods.settled ?? 0;
  const silent = service.pods.missing ?? missing.length;
  const likely = pods && (state === "partial" || state === "no_data") ? likelyCauses(service, pods) : null;
  const causes = likely && <Causes service={service} {...likely} />;
  const names = missing.length > 0 && (
    <ul class="names" aria-label="Missing pods">
      {missing.map((pod) => (
        <li key={pod}>
          <Name>{pod}</Name>
        </li>
      ))}
      {more > 0 && <li class="quiet">and {count(more)} more</li>}
    </ul>
  );
  const faults = service.reasons.filter((r) => r.subject.device !== null || r.subject.node !== null).filter((r) => !likely?.reasons.includes(r));
  return (
    <>
      {faults.length > 0 && (
        <Banner tone={faults.some((r) => r.severity === "error") ? "bad" : pressing(faults) ? "warn" : "info"} title={pressing(faults) ? "Its devices need attention" : "About its devices"} name="faults">
          <ReasonList reasons={faults.slice(0, 8)} total={faults.length} here={{ service: true }} />
        </Banner>
      )}
      {stale && age !== null && (
        <Banner tone="bad" title={`Stale: this data is ${duration(age)} old`} name="stale">
          <p>It was so {service.data_time ? `at ${new Date(service.data_time).toLocaleString("en-GB")}` : "then"}, and need not be so any more. Nothing newer has arrived.</p>
        </Banner>
      )}
      {state === "no_data" && (
        <Banner tone="bad" title="No data from any pod" name="no_data">
          <p>
            {noAverages(settled)} That is no data, not zero.
          </p>
          {names}
          {causes}
        </Banner>
      )}
      {state === "partial" && (
        <Banner tone="warn" title={`Partial: ${count(silent)} of ${plural(settled, "settled pod")} ${silent === 1 ? "reports" : "report"} nothing`} name="partial">
          <p>{averagesOver(settled - silent)}</p>
          {names}
          {causes}
        </Banner>
      )}
      {state === "warming" && (
        <Banner tone="info" title="Warming up" name="warming">
          <p>Metrics should appear within {warmup(status.config)}. They appear here by themselves.</p>
        </Banner>
      )}
      {state === "not_running" && (
        <Banner tone="info" title="No pod is running" name="not_running">
          <p>
            {plural(service.pods.not_running ?? 0, "pod")} pending, starting, failing or completed
            {service.pods.pending ? `; no node has accepted ${count(service.pods.pending)} of them` : ""}.
          </p>
        </Banner>
      )}
      {state === "unknown" && (
        <Banner tone="info" title="Not known yet" name="unknown">
          <p>The summary has just started. It says nothing about missing pods until it has seen a full interval.</p>
        </Banner>
      )}
    </>
  );
}

/** What else is known of the nodes and devices of the pods that report nothing, and what to look at if that is nothing. */
function Causes({ service, reasons, hints }: { service: ServiceData } & ReturnType<typeof likelyCauses>) {
  const all = reasons.length + hints.length;
  return (
    <>
      {all > 0 ? (
        <div class="causes">
          <p>Likely {all === 1 ? "cause" : "causes"}:</p>
          <ReasonList reasons={reasons.slice(0, 8)} total={reasons.length} here={{ service: true }} />
          {hints.length > 0 && (
            <ul class="reasons">
              {hints.map(({ text, link }) => (
                <li key={text}>
                  {text} {link && <a href={link}>See the node</a>}
                </li>
              ))}
            </ul>
          )}
        </div>
      ) : (
        <p>No cause is known: the exporters, nodes and devices of these pods show nothing. The container may have crashed or let its GPU go.</p>
      )}
      <details class="step">
        <summary>Dashboard filter mismatch?</summary>
        <p>
          This page is of the service “{safe(service.service)}” in the namespace “{safe(service.namespace)}”{service.cluster ? <> of the cluster “{safe(service.cluster)}”</> : ", of telemetry that names no cluster"}. Pods
          whose labels changed are counted under their new service: <a href={fleetLink(service.namespace)}>all services of the namespace</a>. A dashboard in Grafana shows the same only with the same values.
        </p>
      </details>
    </>
  );
}

function Cards({ service: s, stale }: { service: ServiceData; stale: boolean }) {
  const v = s.values;
  const range =
    s.utilization_min !== null && s.utilization_max !== null ? (
      <>
        pods <Value value={s.utilization_min} unit="1" /> to <Value value={s.utilization_max} unit="1" />
      </>
    ) : undefined;
  const c = s.coverage;
  const sum = (value: number | null, unit: "By" | "W", of: Coverage) => (value !== null ? <><Value value={value} unit={unit} /> in all <Partly of={of} /></> : undefined);
  return (
    <section aria-label="Summary" class={stale ? "cards is-stale" : "cards"}>
      <p class="cards-note quiet">
        Mean over {s.pods.in_mean === null ? "the pods that report" : plural(s.pods.in_mean, "pod")}; each field over the pods that have it.
        <span class="cards-pods">
          <Stack
            legend
            label="Pods"
            total={s.pods.total}
            parts={[
              { name: "reporting", value: s.pods.reporting, kind: "reporting" },
              { name: "degraded", value: s.pods.degraded || null, kind: "degraded" },
              { name: "missing", value: s.pods.missing || null, kind: "missing" },
              { name: "warming", value: s.pods.warming || null, kind: "warming" },
              { name: "not running", value: s.pods.not_running || null, kind: "off" },
            ]}
          />
        </span>
      </p>
      <dl>
        <Figure name="Utilization" value={v.utilization} unit="1" full={v.utilization} note={<>{range} <Partly of={c.utilization} /></>} />
        <Figure name="Memory used" value={v.memory_used} unit="By" full={v.memory_used !== null && v.memory_total && !partly(c.memory_used) ? v.memory_used / v.memory_total : undefined} note={sum(s.totals.memory_used, "By", c.memory_used)} />
        <Figure name="Memory total" value={v.memory_total} unit="By" note={sum(s.totals.memory_total, "By", c.memory_total)} />
        <Figure name="Tensor" value={v.tensor} unit="1" full={v.tensor} note={<Partly of={c.tensor} />} unmeasured={unmeasured(s, "tensor")} />
        <Figure name="SM" value={v.sm} unit="1" full={v.sm} note={<Partly of={c.sm} />} unmeasured={unmeasured(s, "sm")} />
        <Figure name="DRAM" value={v.dram} unit="1" full={v.dram} note={<Partly of={c.dram} />} unmeasured={unmeasured(s, "dram")} />
        <Figure name="FP16" value={v.fp16} unit="1" full={v.fp16} note={<Partly of={c.fp16} />} unmeasured={unmeasured(s, "fp16")} />
        <Figure name="FP32" value={v.fp32} unit="1" full={v.fp32} note={<Partly of={c.fp32} />} unmeasured={unmeasured(s, "fp32")} />
        <Figure name="Power" value={v.power} unit="W" note={sum(s.totals.power, "W", c.power)} />
      </dl>
    </section>
  );
}

