import { useRef, useState } from "preact/hooks";
import { api, type ApiError, type CostQuery } from "../api/client";
import type { CostAnswer, CostLine, Status } from "../api/types";
import { chosen, groupingNames, groupings, measures, ofBoards, period, rangeNames, ranges, stepsOf } from "../cost";
import { count, period as spanOf, plural, safe, text } from "../format";
import { type Known, usePoll } from "../poll";
import { type CostRoute, costLink, replace } from "../router";
import { announce } from "../parts/announce";
import { Figure, Skeleton } from "../parts/Figure";
import { Banner, explain, Failure, Panel } from "../parts/notices";
import { Name, Time } from "../parts/values";
import { Budgets } from "./Budgets";
import { Switch } from "./Charts";
import { CostChart } from "./CostChart";
import { CostTable, energyOf } from "./CostTable";
import { Command, Step } from "./States";

/** Milliseconds between two requests: usage is counted about once a minute. */
const interval = 30_000;

/** Who held how much of the GPUs, what it cost, and what nothing held. */
export function Cost({ at, status }: { at: CostRoute; status: Status }) {
  const by = chosen(at.by, groupings);
  const range = chosen(at.range, ranges);
  const step = chosen(at.step, stepsOf(range));
  const owners = !!(at.tenant || at.namespace || at.slurm_cluster); // then what has no owner is left out
  const shared = at.shared && !owners;
  const page = Math.min(100, status.config.limits.max_services_per_request);
  const [limit, setLimit] = useState(page);
  const query = (): CostQuery => ({ by, ...period(range, Date.now()), tenant: at.tenant, namespace: at.namespace, slurm_cluster: at.slurm_cluster, cluster: at.cluster, share_unheld: shared ? "proportional" : undefined });
  const poll = usePoll(
    async (signal) => {
      const answer = await api.cost({ ...query(), limit: Math.min(page, limit) }, signal);
      while (answer.next && answer.lines.length < limit) {
        const more = await api.cost({ ...query(), limit: page, cursor: answer.next }, signal);
        answer.lines.push(...more.lines);
        answer.next = more.next;
      }
      return answer;
    },
    Math.max(interval, status.config.refresh * 1000),
    [by, range, at.tenant, at.namespace, at.slurm_cluster, at.cluster, shared, limit],
  );
  const known = poll.known.value;
  const go = (over: Partial<CostRoute>) => replace(costLink({ ...at, by, range, ...over }));
  const { data } = known;
  return (
    <>
      <div class="toolbar">
        <h1>Cost</h1>
        <Switch label="Group by" options={groupings.map((g) => [g, groupingNames[g]] as const)} value={by} change={(to) => go({ by: to })} />
        <Switch label="Range" options={ranges.map((r) => [r, rangeNames[r]] as const)} value={range} change={(to) => go({ range: to, step: "" })} />
        {!owners && (
          <span class="switch">
            <button type="button" aria-pressed={shared} title="Adds the cost of what nothing held to that of the owners, in proportion to the time that they held" onClick={() => go({ shared: !shared })}>
              Spread what is not held
            </button>
          </span>
        )}
        <span class="spread" />
        {data && <CsvButton query={query} name={`gpu-cost-${by}-${range}.csv`} />}
      </div>
      <Filters at={at} change={go} />
      <Failure known={known} refresh={poll.refresh} />
      {!data && !known.error && <Skeleton rows={6} />}
      {data && nothing(data) && <NoUsage reason={data.reason} filtered={!!(at.tenant || at.namespace || at.slurm_cluster || at.cluster)} />}
      {data && !nothing(data) && (
        <>
          <Notices data={data} />
          <Summary data={data} owners={owners} outdated={known.outdated} />
          <Budgets budgets={data.budgets} currency={data.currency} />
          <CostChart
            at={at}
            by={by}
            step={step}
            steps={stepsOf(range)}
            what={data.currency ? chosen(at.what, measures) : "hours"}
            money={!!data.currency}
            query={query}
            about={[by, range, step, at.tenant, at.namespace, at.slurm_cluster, at.cluster, shared]}
            status={status}
            change={go}
          />
          <CostTable data={data} by={by} owners={owners} at={at} outdated={known.outdated} grow={() => setLimit(limit + page)} />
          <Footnotes known={known as Known<CostAnswer> & { data: CostAnswer }} all={!owners && !ofBoards(by)} />
        </>
      )}
    </>
  );
}

const nothing = (data: CostAnswer): boolean => data.total.time === 0;

/** What the answer is limited to, and the way back. */
function Filters({ at, change }: { at: CostRoute; change: (over: Partial<CostRoute>) => void }) {
  const set = (["tenant", "namespace", "slurm_cluster", "cluster"] as const).filter((key) => at[key]);
  if (!set.length) return null;
  return (
    <ul class="filters" aria-label="Filters">
      {set.map((key) => (
        <li key={key}>
          <button type="button" class="button" onClick={() => change({ [key]: "" })}>
            {key.replace("_", " ")}:&nbsp;<Name>{at[key]}</Name>
            <span aria-hidden="true">&nbsp;×</span>
            <span class="vh">, remove this filter</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The whole report as a file. */
function CsvButton({ query, name }: { query: () => CostQuery; name: string }) {
  const [failed, setFailed] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const link = useRef<HTMLAnchorElement>(null);
  const load = async () => {
    setBusy(true);
    setFailed(null);
    try {
      const address = URL.createObjectURL(await api.costFile(query(), "csv", new AbortController().signal));
      link.current!.href = address;
      link.current!.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      announce("The file is complete");
    } catch (error) {
      setFailed(error as ApiError);
    }
    setBusy(false);
  };
  return (
    <>
      {failed && (
        <p class="quiet" role="alert">
          No file: {explain(failed).title}. {failed.message}
        </p>
      )}
      <button type="button" class="button" disabled={busy} onClick={() => void load()}>
        Download CSV
      </button>
      <a ref={link} download={name} hidden aria-hidden="true" tabIndex={-1} />
    </>
  );
}

/** What the reader should know before believing the numbers. */
function Notices({ data }: { data: CostAnswer }) {
  const open = data.open_hours[0];
  const unknown = data.states.find((s) => s.state === "unknown");
  return (
    <>
      {!data.currency && <NoPrices />}
      {data.currency && data.unpriced.length > 0 && (
        <Banner tone="warn" title={`${text(data.total.unpriced / 3600, "h")} of GPU time ${data.total.unpriced === 3600 ? "has" : "have"} no price`} name="unpriced">
          <ul class="names">
            {data.unpriced.slice(0, 6).map((u) => (
              <li key={JSON.stringify(u)}>
                <Name>{[u.model || "unknown model", u.host_type, u.region, u.capacity_type.replaceAll("_", " ")].filter(Boolean).join(", ")}</Name> <span class="quiet">{text(u.time / 3600, "h")}</span>
              </li>
            ))}
            {data.unpriced.length > 6 && <li class="quiet">and {count(data.unpriced.length - 6)} more</li>}
          </ul>
          <p>No rule of gpu_cost’s prices matches them. Their time and energy are counted; money is shown where all of it is known, and else that of the part with a price.</p>
          {data.other_currencies.length > 0 && <p>Prices in {data.other_currencies.map(safe).join(", ")} count as none: nothing is converted.</p>}
        </Banner>
      )}
      {data.unknown_hours.length > 0 && (
        <Banner tone="warn" title={`In ${plural(data.unknown_hours.length, "hour")} more than 1 % of GPU time is unknown`} name="unknown">
          <p>
            {unknown && `${text(unknown.time / 3600, "h")} in all: `}data was missing, and the owners before and after the gap were not the same. Nothing of it is charged to an owner.
            {" "}
            {data.unknown_hours.slice(0, 4).map((h) => spanOf(new Date(h), 3600)).join(", ")}
            {data.unknown_hours.length > 4 && ` and ${count(data.unknown_hours.length - 4)} more`}.
          </p>
        </Banner>
      )}
      {data.part_days.length > 0 && data.from && data.to && (
        <p class="quiet" data-part-days={data.part_days.length}>
          Hours of the first or the last day are not kept any more: the report is from <Time at={data.from} /> to <Time at={data.to} />.
        </p>
      )}
      {open && (
        <p class="quiet" data-open={data.open_hours.length}>
          {data.open_hours.length === 1 ? "The hour" : `${plural(data.open_hours.length, "hour")}, the first of them`} from <Time at={open} /> {data.open_hours.length === 1 ? "is" : "are"} still open: {data.open_hours.length === 1 ? "its" : "their"} amounts grow.
        </p>
      )}
    </>
  );
}

const notHeld = ["free", "stranded", "unavailable"];

function Summary({ data, owners, outdated }: { data: CostAnswer; owners: boolean; outdated: boolean }) {
  const { total, currency, states } = data;
  const held = states.find((s) => s.state === "held");
  const none = states.filter((s) => notHeld.includes(s.state ?? ""));
  const unknown = states.find((s) => s.state === "unknown");
  const energy = energyOf(total);
  const [whole, of] = owners ? ["What the filters match", "of what the filters match"] : ["The whole fleet", "of the fleet"];
  const hours = (lines: readonly CostLine[]) => lines.reduce((sum, l) => sum + l.time, 0) / 3600;
  const noneCost = none.reduce<number | null>((sum, l) => (sum === null || l.cost === null ? null : sum + l.cost), 0);
  // In money where there is any, else in hours.
  const figure = (name: string, cost: number | null, time: number | null, note: string) =>
    currency ? (
      <Figure name={name} value={cost} unit={`money:${currency}`} title={cost === null ? "a part of it has no price" : undefined} note={time === null ? note : <>{text(time, "h")}: {note}</>} />
    ) : (
      <Figure name={name} value={time} unit="h" title={time === null ? "no utilization was measured" : undefined} note={note} />
    );
  return (
    <section class={outdated ? "cards cost outdated" : "cards cost"} aria-label={whole}>
      <dl>
        {currency && (
          <Figure
            name="Cost"
            value={total.cost}
            unit={`money:${currency}`}
            title={total.cost === null ? "a part of it has no price" : undefined}
            note={total.cost === null && total.priced_cost !== null ? `${text(total.priced_cost, `money:${currency}`)} of what has a price` : of}
          />
        )}
        <Figure name="GPU hours" value={total.time / 3600} unit="h" note={unknown?.time ? `of these ${text(unknown.time / 3600, "h")} unknown` : of} />
        {!owners && figure("Held", held?.cost ?? null, hours(held ? [held] : []), "by owners")}
        {figure("Idle", held?.idle_cost ?? null, held?.idle == null ? null : held.idle / 3600, "held, and hardly used for long")}
        {!owners && figure("Not held", noneCost, hours(none), "free, stranded, unavailable")}
        <Figure name="Energy" value={energy} unit="J" title={energy === null ? "no energy was reported" : undefined} note={energy === null ? undefined : `${(energy / 3.6e6).toLocaleString("en-US", { maximumSignificantDigits: 3 })} kWh, of GPU boards alone`} />
        <Figure name="Carbon" value={total.carbon} unit="g" title={total.carbon === null ? "the carbon intensity of a part is not known" : undefined} note={data.intensities.length ? `CO₂e, ${data.intensities.map(safe).join(" and ")} intensity` : undefined} />
      </dl>
    </section>
  );
}

const example = `connectors:
  gpu_cost:
    currency: USD
    prices:
      - {match: {hw.model: "*H100*"}, gpu_hour: "2.95", valid_from: "2026-01-01", source: contract}`;

function NoPrices() {
  return (
    <Banner tone="info" title="Nothing has a price: these are hours, and no money" name="no_prices">
      <p>Give the gpu_cost connector a price list; a price counts from when it is configured.</p>
      <Step name="A rule of prices">
        <Command>{example}</Command>
        <p>config/cost.yaml has an example with instances, spot prices, tenants and budgets.</p>
      </Step>
    </Banner>
  );
}

/** There are no rows: why, and what would help. */
function NoUsage({ reason, filtered }: { reason: string | null; filtered: boolean }) {
  if (reason === "not_kept") {
    return (
      <Panel tone="info" title="Usage is not kept here" state="not_kept">
        <p>The store of this console keeps no log of usage. Counters of time and cost are in the metric store: gpu_usage_cost_total and gpu_capacity_time_seconds_total.</p>
      </Panel>
    );
  }
  if (reason === "no_usage") {
    return (
      <Panel tone="info" title="No usage has arrived yet" state="no_usage">
        <p>The gpu_cost connector writes what was used about once a minute, from the first two reports of a device’s owner on. It appears here by itself.</p>
        <Step name="It does not appear">
          <p>Then gpu_cost is not in the pipelines of this collector. It reads metrics, and writes usage to the store:</p>
          <Command>{`connectors:
  gpu_cost: {storage: file_storage/state}
service:
  pipelines:
    metrics: {exporters: [best_effort/prometheus, gpu_events, gpu_cost]}
    metrics/usage: {receivers: [gpu_cost], exporters: [best_effort/prometheus]}
    logs/usage: {receivers: [gpu_cost], exporters: [gpu_store]}`}</Command>
        </Step>
      </Panel>
    );
  }
  return <p class="empty">{filtered ? "There is no usage in this range that these filters match." : "There is no usage in this range."}</p>;
}

/** What the numbers are, in a sentence or two. */
function Footnotes({ known, all }: { known: Known<CostAnswer> & { data: CostAnswer }; all: boolean }) {
  const { from, to, oldest } = known.data;
  return (
    <p class="quiet">
      {from && <>From <Time at={from} /> </>}
      {to && <>to <Time at={to} />. </>}
      {oldest && <>Usage is known from <Time at={oldest} /> on. </>}
      Hours and days are those of UTC. {all && "The last rows are what nothing held, and the fleet: the sum of all. "}A GPU hour is one of a whole GPU: half of one for two hours is one too. “—” is no value, and its title has the reason; 0 is zero.
    </p>
  );
}
