import { useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { api } from "../api/client";
import type { Chart, DeviceRange, Grid, Series, Service, ServiceName, Status, Where, WindowName } from "../api/types";
import { gap, gpuName, moment, plural, safe, spoken } from "../format";
import { inferenceCharts } from "../inference";
import { type Poll, usePoll } from "../poll";
import { chosenWindow, windowNames } from "../preferences";
import { replace, serviceLink } from "../router";
import { Failure } from "../parts/notices";
import { notMeasured } from "../parts/values";
import { ChartTable, ChartView, type Cursor, newCursor } from "../chart/ChartView";
import type { Latest } from "../chart/grid";
import { swatch } from "../chart/colours";
import type { Look } from "../chart/stack";

type Titles = readonly (readonly [string, string])[];

const titles: Titles = [
  ["utilization", "Utilization"],
  ["memory", "Memory used"],
  ["tensor", "Tensor activity"],
  ["power", "Power"],
];

/** What a service's cards show is what its charts call the latest: one moment, and the same pods. */
export const latestOf = (s: Service): Record<string, Latest> => {
  const of = (value: number | null) => ({ value, pods: s.pods.in_mean, stale: s.stale });
  const gpus = { utilization: of(s.values.utilization), memory: of(s.values.memory_used), tensor: of(s.values.tensor), power: of(s.values.power) };
  const i = s.inference;
  if (!i) return gpus;
  const own = (value: number | null) => ({ value, pods: null, stale: false });
  return {
    ...gpus,
    time_to_first_token: own(i.time_to_first_token),
    time_per_output_token: own(i.time_per_output_token),
    inter_token_latency: own(i.inter_token_latency),
    output_tokens: own(i.output_tokens),
  };
};

const deviceTitles: Titles = [
  ["utilization", "Utilization"],
  ["memory", "Memory used"],
  ["power", "Power"],
  ["temperature", "Temperature"],
  ["clock", "SM clock"],
  ["throttle", "Throttled"],
];

/** The charts of a service, a line for it or one a pod. */
export function Charts({ name, status, window, by, service }: { name: ServiceName; status: Status; window: WindowName; by: "service" | "pod"; service: Service }) {
  const poll = useRange((signal) => api.range(name, window, by, signal), status, [window, by]);
  const range = poll.known.value.data;
  const drawn = range && inferenceCharts(range.charts);
  return (
    <Panel
      id={`${name.cluster}/${name.namespace}/${name.service}`}
      poll={poll}
      titles={drawn ? [...titles, ...drawn.titles] : titles}
      charts={drawn?.charts}
      latest={by === "service" ? latestOf(service) : undefined}
      unmeasured={service.not_measured}
      line="pod"
      status={status}
      window={window}
      change={(w) => replace(serviceLink(name, { window: w, by }))}
      left={range?.truncated ? `The ${range.charts.utilization.series.length} busiest pods; ${plural(range.truncated, "further pod")} left out.` : ""}
    >
      <Switch
        label="Lines"
        options={[
          ["service", "Service"],
          ["pod", "Pods"],
        ]}
        value={by}
        change={(to) => replace(serviceLink(name, { window, by: to }))}
      />
    </Panel>
  );
}

/** The charts of a node's devices, or of one device and its instances. */
export function DeviceCharts({ where, status, window, change }: { where: Where; status: Status; window: WindowName; change?: (to: WindowName) => void }) {
  const poll = useRange((signal) => api.deviceRange(where, window, signal), status, [window]);
  const range = poll.known.value.data;
  const charts = useMemo(() => (range ? named(range) : undefined), [range]);
  return (
    <Panel
      id={JSON.stringify(where)}
      poll={poll}
      titles={deviceTitles}
      charts={charts}
      line="device"
      status={status}
      window={window}
      change={change}
      left={range?.truncated ? `The first ${range.devices.length} devices; ${plural(range.truncated, "further device")} left out.` : ""}
    />
  );
}

/** Charts whose lines have the names that the page has for devices. */
export function named(range: DeviceRange): Record<string, Chart> {
  const short = range.devices.map(deviceName);
  const once = (name: string) => short.indexOf(name) === short.lastIndexOf(name);
  const names = new Map(range.devices.map((d, i) => [d.id, once(short[i]!) ? short[i]! : `${short[i]} (${safe(d.id)})`]));
  const own = (chart: Chart): Chart => ({ ...chart, series: chart.series.map((s) => ({ ...s, name: names.get(s.name) ?? s.name })) });
  return Object.fromEntries(Object.entries(range.charts).map(([key, chart]) => [key, own(chart)]));
}

/** "GPU 3", "GPU 3 MIG 1g.10gb 7", "GPU 3 part 5". */
export function deviceName(d: DeviceRange["devices"][number]): string {
  const gpu = gpuName(d);
  if (d.parent !== null && d.partition !== null) return `${gpu} part${gap}${safe(d.partition)}`;
  return d.parent === null ? gpu : [gpu, d.mig_profile ? `MIG${gap}${safe(d.mig_profile)}` : "share", d.mig_instance ? safe(d.mig_instance) : ""].filter(Boolean).join(" ");
}

/** Asks for charts as often as they can have new values. */
function useRange<T extends Grid>(load: (signal: AbortSignal) => Promise<T>, status: Status, about: readonly unknown[]): Poll<T> {
  const [interval, setInterval] = useState(status.config.refresh);
  return usePoll(
    async (signal) => {
      const range = await load(signal);
      setInterval(Math.max(status.config.refresh, Math.min(range.step, 60)));
      return range;
    },
    interval * 1000,
    about,
  );
}

function Panel<T extends Grid>(p: {
  id: string;
  poll: Poll<T>;
  titles: Titles;
  charts: { [key: string]: Chart } | undefined;
  latest?: Record<string, Latest> | undefined;
  /** Charts that have no value because no vendor of the devices measures it. */
  unmeasured?: readonly string[];
  /** What a line is of. */
  line: string;
  status: Status;
  window: WindowName;
  change?: ((to: WindowName) => void) | undefined;
  /** What was left out. */
  left: string;
  children?: ComponentChildren;
}) {
  const cursor = useMemo(() => newCursor(p.id), []);
  const [tables, setTables] = useState(false);
  const known = p.poll.known.value;
  const { data: range } = known;
  const { charts } = p;
  const grid = p.titles.length % 3 ? "chart-grid" : "chart-grid thirds";
  return (
    <section class="charts" aria-label="Charts">
      <div class="toolbar">
        <h2>Over time</h2>
        <WindowSwitch status={p.status} window={p.window} change={p.change} />
        {p.children}
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
      <Failure known={known} refresh={p.poll.refresh} />
      {p.left && <p class="quiet">{p.left}</p>}
      {range && charts && (
        <div class={`${grid}${known.outdated ? " outdated" : ""}`}>
          {p.titles.map(([key, title]) =>
            p.unmeasured?.includes(key) && charts[key]!.series.every((s) => s.values.every((v) => v === null)) ? (
              <section key={key} class="chart" aria-label={title} data-unmeasured>
                <header>
                  <h3>{title}</h3>
                </header>
                <p class="empty">{notMeasured}</p>
              </section>
            ) : tables ? (
              <ChartTable key={key} title={title} chart={charts[key]!} range={range} />
            ) : (
              <ChartView key={key} title={title} chart={charts[key]!} range={range} cursor={cursor} outdated={known.outdated} latest={p.latest?.[key]} line={p.line} />
            ),
          )}
        </div>
      )}
      {charts && !tables && <Legend series={charts.utilization!.series} cursor={cursor} />}
      {!range && !known.error && (
        <div class={grid} role="status" aria-label="Loading">
          {p.titles.map(([key]) => (
            <div key={key} class="chart waiting" />
          ))}
        </div>
      )}
    </section>
  );
}

/** The display window, which all charts and sparklines share until an address names another. */
export function WindowSwitch({ status, window, change }: { status: Status; window: WindowName; change?: ((to: WindowName) => void) | undefined }) {
  return (
    <Switch
      label="Display window"
      options={status.config.windows.map((w) => [w, windowNames[w] ?? w] as const)}
      value={window}
      change={(to) => {
        chosenWindow.value = to;
        change?.(to);
      }}
    />
  );
}

/** One of a few choices, each one press away. */
export function Switch<T extends string>(p: { label: string; options: readonly (readonly [T, string])[]; value: T; change: (to: T) => void }) {
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

/** The lines' names; pressing one makes it stand out in all charts. */
export function Legend({ series, cursor, looks }: { series: readonly Series[]; cursor: Cursor; looks?: readonly Look[] | undefined }) {
  if (series.length < 2) return null;
  return (
    <ul class="legend" aria-label="Lines">
      {series.map((s, i) => {
        const { hue, dash } = swatch(i);
        const on = cursor.focus.value === s.name;
        return (
          <li key={s.name}>
            <button type="button" aria-pressed={on} onClick={() => (cursor.focus.value = on ? null : s.name)}>
              {looks && looks[i] !== "hue" ? (
                <span class={`swatch stack-${looks[i]}`} aria-hidden="true" />
              ) : (
                <svg width={looks ? 12 : 22} height={looks ? 12 : 8} aria-hidden="true" focusable="false">
                  {looks ? <path d="M0 6H12" class={hue} stroke-width="12" /> : <path d="M1 4H21" class={hue} stroke-width="2" stroke-dasharray={dash || undefined} />}
                </svg>
              )}
              <bdi>{safe(s.name)}</bdi>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
