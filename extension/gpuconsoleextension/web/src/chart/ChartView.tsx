import { signal, type Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Drawable, Grid } from "../api/types";
import { moment, period, safe, text } from "../format";
import { theme } from "../preferences";
import { columns, options } from "./plot";
import { fitted, gaps, type Latest, moments, reading } from "./grid";

/** What all charts of a page have in common: where the cursor is, and the line that stands out. */
export interface Cursor {
  key: string;
  index: Signal<number | null>;
  focus: Signal<string | null>;
}

export const newCursor = (key: string): Cursor => ({ key, index: signal(null), focus: signal(null) });

/** `line` is what a line is of: a pod, a device. */
export function ChartView({ title, chart, range, cursor, outdated, latest, line }: { title: string; chart: Drawable; range: Grid; cursor: Cursor; outdated: boolean; latest?: Latest | undefined; line: string }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [width, setWidth] = useState(0);
  const height = Math.round(Math.min(400, Math.max(168, width * 0.34)));
  const focus = cursor.focus.value;
  const [nearest] = useState(() => signal<string | null>(null));

  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // The plot is made anew when its looks change; new values alone are only set, which does not flicker.
  const drawn = useRef({ chart, range, focus });
  drawn.current = { chart, range, focus };
  const looks = [theme.value, chart.unit, !!chart.limit, !!chart.stacked, range.window, range.step, focus, ...chart.series.map((s) => s.name)].join("\n");
  useEffect(() => {
    if (!width) return;
    const read = (index: number | null, series: number | null) => {
      cursor.index.value = index;
      nearest.value = index === null ? null : series === null ? nearest.value : (drawn.current.chart.series[series]?.name ?? null);
    };
    plot.current = new uPlot(options(() => drawn.current, { width, height }, cursor.key, read), columns(drawn.current), box.current!);
    return () => {
      plot.current?.destroy();
      plot.current = null;
    };
  }, [looks, width, height]);
  useEffect(() => plot.current?.setData(columns(drawn.current)), [chart, range]);

  const index = cursor.index.value;
  const at = index ?? range.points - 1;
  const when = at >= 0 ? new Date(Date.parse(range.start) + at * range.step * 1000) : null;
  const value = reading(chart, index, focus ?? nearest.value, latest, line);
  const silent = gaps(chart.series.map((s) => fitted(s.values, range.points)), range.points).reduce((sum, [a, b]) => sum + b - a + 1, 0);
  const name = when ? (chart.stacked ? stepName(chart, range, at) : moment(when, new Date(range.end))) : "";
  const sentence = when ? `${name}: ${value}` : "no data";

  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") plot.current?.setCursor({ left: -10, top: -10 });
    if (step === undefined || !plot.current) return;
    event.preventDefault();
    const to = Math.min(range.points - 1, Math.max(0, at + step));
    const left = plot.current.valToPos(plot.current.data[0][to]!, "x");
    plot.current.setCursor({ left, top: 10 });
  };

  return (
    <section class="chart" aria-label={title} aria-busy={outdated}>
      <header>
        <h3>{title}</h3>
        <p class={index === null ? "reading" : "reading at-cursor"} data-reading>
          {when && <span class="reading-time">{index === null && !chart.stacked ? "latest" : name}</span>}{" "}
          <span class="reading-value">{value}</span>
        </p>
      </header>
      <div
        class="plot"
        ref={box}
        role="slider"
        tabIndex={0}
        aria-label={`${title}: moment`}
        aria-valuemin={0}
        aria-valuemax={range.points - 1}
        aria-valuenow={Math.max(0, at)}
        aria-valuetext={sentence}
        onKeyDown={move}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
        data-gaps={silent}
        style={{ minHeight: `${height}px` }}
      />
    </section>
  );
}

/** An hour or a day of a stack, and what to know of it. */
const stepName = ({ stacked }: Drawable, range: Grid, i: number): string => {
  const mark = stacked?.marks[i];
  return period(new Date(moments(range)[i]! * 1000), range.step) + (mark ? ` (${mark})` : "");
};

/** The chart's values in a table, the newest first. */
export function ChartTable({ title, chart, range }: { title: string; chart: Drawable; range: Grid }) {
  const times = moments(range);
  const end = new Date(range.end);
  const pods = chart.series.length === 1 ? chart.series[0]!.pods : null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table class="values">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {chart.series.map((s) => (
              <th scope="col" key={s.name} class="number">
                <bdi>{safe(s.name)}</bdi>
              </th>
            ))}
            {pods && (
              <th scope="col" class="number">
                Pods in the mean
              </th>
            )}
            {chart.stacked && (
              <th scope="col" class="number">
                All
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {times
            .map((time, i) => (
              <tr key={time}>
                <th scope="row">{chart.stacked ? stepName(chart, range, i) : moment(new Date(time * 1000), end)}</th>
                {chart.series.map((s) => (
                  <td key={s.name} class={s.values[i] == null ? "number none" : "number"}>
                    {chart.stacked && s.values[i] == null ? chart.stacked.absent : text(s.values[i], chart.unit)}
                  </td>
                ))}
                {pods && <td class="number">{pods[i] ?? "not known"}</td>}
                {chart.stacked && <td class="number">{reading(chart, i, null)}</td>}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </div>
  );
}
