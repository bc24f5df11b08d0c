import { useMemo, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Range, Service, ServiceName, Status, WindowName } from "../api/types";
import { moment, plural, safe, spoken } from "../format";
import { usePoll } from "../poll";
import { chosenWindow, windowNames } from "../preferences";
import { replace, serviceLink } from "../router";
import { Failure } from "../parts/notices";
import { ChartTable, ChartView, type Cursor, newCursor } from "../chart/ChartView";
import type { Latest } from "../chart/grid";
import { swatch } from "../chart/colours";

const titles = [
  ["utilization", "Utilization"],
  ["memory", "Memory used"],
  ["tensor", "Tensor activity"],
  ["power", "Power"],
] as const;

/** What a service's cards show is what its charts call the latest: one moment, and the same pods. */
export const latestOf = (s: Service): Record<(typeof titles)[number][0], Latest> => {
  const of = (value: number | null) => ({ value, pods: s.pods.in_mean, stale: s.stale });
  return { utilization: of(s.values.utilization), memory: of(s.values.memory_used), tensor: of(s.values.tensor), power: of(s.values.power) };
};

export function Charts({ name, status, window, by, service }: { name: ServiceName; status: Status; window: WindowName; by: "service" | "pod"; service: Service }) {
  const [interval, setInterval] = useState(status.config.refresh);
  const poll = usePoll(
    async (signal) => {
      const range = await api.range(name, window, by, signal);
      setInterval(Math.max(status.config.refresh, Math.min(range.step, 60)));
      return range;
    },
    interval * 1000,
    [window, by],
  );
  const cursor = useMemo(() => newCursor(`${name.cluster}/${name.namespace}/${name.service}`), []);
  const [tables, setTables] = useState(false);
  const known = poll.known.value;
  const range = known.data;
  const windows = status.config.windows;
  return (
    <section class="charts" aria-label="Charts">
      <div class="toolbar">
        <h2>Over time</h2>
        <Switch
          label="Display window"
          options={windows.map((w) => [w, windowNames[w] ?? w] as const)}
          value={window}
          change={(w) => {
            chosenWindow.value = w;
            replace(serviceLink(name, { window: w, by }));
          }}
        />
        <Switch
          label="Lines"
          options={[
            ["service", "Service"],
            ["pod", "Pods"],
          ]}
          value={by}
          change={(to) => replace(serviceLink(name, { window, by: to }))}
        />
        <span class="spread" />
        {range && (
          <p class="quiet" aria-live="off">
            {moment(new Date(range.start), new Date(range.end))} to {moment(new Date(range.end), new Date(range.end))}, every {spoken(range.step)}
          </p>
        )}
        <button type="button" class="button" aria-pressed={tables} onClick={() => setTables(!tables)}>
          {tables ? "Show charts" : "Show as tables"}
        </button>
      </div>
      <Failure known={known} refresh={poll.refresh} />
      {range && range.truncated > 0 && <p class="quiet">The {range.charts.utilization.series.length} busiest pods; {plural(range.truncated, "further pod")} left out.</p>}
      {range && (
        <div class={known.outdated ? "chart-grid outdated" : "chart-grid"}>
          {titles.map(([key, title]) =>
            tables ? (
              <ChartTable key={key} title={title} chart={range.charts[key]} range={range} />
            ) : (
              <ChartView key={key} title={title} chart={range.charts[key]} range={range} cursor={cursor} outdated={known.outdated} latest={by === "service" ? latestOf(service)[key] : undefined} />
            ),
          )}
        </div>
      )}
      {range && !tables && range.by === "pod" && <Legend range={range} cursor={cursor} />}
      {!range && !known.error && (
        <div class="chart-grid" role="status" aria-label="Loading">
          {titles.map(([key]) => (
            <div key={key} class="chart waiting" />
          ))}
        </div>
      )}
    </section>
  );
}

/** One of a few choices, each one press away. */
function Switch<T extends string>(p: { label: string; options: readonly (readonly [T, string])[]; value: T; change: (to: T) => void }) {
  return (
    <span class="switch" role="group" aria-label={p.label}>
      {p.options.map(([value, name]) => (
        <button key={value} type="button" aria-pressed={value === p.value} onClick={() => p.change(value)}>
          {name}
        </button>
      ))}
    </span>
  );
}

/** The lines' names; pressing one makes it stand out in all four charts. */
function Legend({ range, cursor }: { range: Range; cursor: Cursor }) {
  const series = range.charts.utilization.series;
  if (series.length < 2) return null;
  return (
    <ul class="legend" aria-label="Lines">
      {series.map((s, i) => {
        const { hue, dash } = swatch(i);
        const on = cursor.focus.value === s.name;
        return (
          <li key={s.name}>
            <button type="button" aria-pressed={on} onClick={() => (cursor.focus.value = on ? null : s.name)}>
              <svg width="22" height="8" aria-hidden="true" focusable="false">
                <path d="M1 4H21" class={hue} stroke-width="2" stroke-dasharray={dash || undefined} />
              </svg>
              <bdi>{safe(s.name)}</bdi>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
