import { useMemo, useState } from "preact/hooks";
import { api, type CostQuery } from "../api/client";
import type { Status } from "../api/types";
import { type Grouping, type Measure, stack, type StepName } from "../cost";
import { usePoll } from "../poll";
import type { CostRoute } from "../router";
import { ChartTable, ChartView, newCursor } from "../chart/ChartView";
import { Failure } from "../parts/notices";
import { Legend, Switch } from "./Charts";

/** So many groups have a colour; the rest are one. */
const top = 8;
const page = 1000;

/** Cost or hours over time: a bar a step, of the greatest groups, the others, and what has no owner. */
export function CostChart(p: {
  at: CostRoute;
  by: Grouping;
  step: StepName;
  steps: readonly StepName[];
  what: Measure;
  /** Whether there is money at all. */
  money: boolean;
  query: () => CostQuery;
  about: readonly unknown[];
  status: Status;
  change: (over: Partial<CostRoute>) => void;
}) {
  const poll = usePoll(
    async (signal) => {
      const answer = await api.cost({ ...p.query(), step: p.step, top, limit: page }, signal);
      while (answer.next) {
        const more = await api.cost({ ...p.query(), step: p.step, top, limit: page, cursor: answer.next }, signal);
        answer.lines.push(...more.lines);
        answer.next = more.next;
      }
      return answer;
    },
    Math.max(60_000, p.status.config.refresh * 1000),
    p.about,
  );
  const cursor = useMemo(() => newCursor("cost"), []);
  const [table, setTable] = useState(false);
  const known = poll.known.value;
  const drawn = useMemo(() => known.data && stack(known.data, known.data.by as Grouping, p.what, (known.data.step ?? p.step) as StepName), [known.data, p.what]);
  const title = p.what === "cost" ? "Cost" : "GPU hours";
  return (
    <section class="charts" aria-label="Over time">
      <div class="toolbar">
        <h2>Over time</h2>
        {p.money && (
          <Switch
            label="What is drawn"
            options={[
              ["cost", "Cost"],
              ["hours", "GPU hours"],
            ]}
            value={p.what}
            change={(to) => p.change({ what: to })}
          />
        )}
        {p.steps.length > 1 && <Switch label="Step" options={p.steps.map((s) => [s, s === "hour" ? "By hour" : "By day"] as const)} value={p.step} change={(to) => p.change({ step: to })} />}
        <span class="spread" />
        <button type="button" class="button" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? "Show the chart" : "Show as a table"}
        </button>
      </div>
      <Failure known={known} refresh={poll.refresh} />
      {drawn && (
        <div class={known.outdated ? "cost-chart outdated" : "cost-chart"}>
          {table ? (
            <ChartTable title={title} chart={drawn.chart} range={drawn.grid} />
          ) : (
            <ChartView title={title} chart={drawn.chart} range={drawn.grid} cursor={cursor} outdated={known.outdated} line="group" />
          )}
        </div>
      )}
      {drawn && !table && <Legend series={drawn.chart.series} cursor={cursor} looks={drawn.chart.stacked!.looks} />}
      {!known.data && !known.error && <div class="chart waiting" role="status" aria-label="Loading" />}
    </section>
  );
}
