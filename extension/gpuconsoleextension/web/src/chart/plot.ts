import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Drawable, Grid } from "../api/types";
import { day, minutes, clock, text, utcDay } from "../format";
import { lineStyle, token } from "./colours";
import { fitted, gaps, isolated, moments, quarters, top } from "./grid";
import { seriesAt, stackColumns, stackSeries } from "./stack";

export interface Drawn {
  chart: Drawable;
  range: Grid;
  /** Name of the series that stands out; null for none. */
  focus: string | null;
}

/** The data in uPlot's form: moments, then one list a series, then the limit. */
export function columns({ chart, range }: Drawn): uPlot.AlignedData {
  if (chart.stacked) return stackColumns({ chart, range });
  const x = moments(range);
  const lists: (number | null)[][] = chart.series.map((s) => fitted(s.values, x.length));
  if (chart.limit) lists.push(fitted(chart.limit, x.length));
  return [x, ...lists] as uPlot.AlignedData;
}

/** Labels of the time axis: the day where it changes, seconds where they matter. */
function timeLabels(_: uPlot, splits: number[], __: number, ___: number, increment: number): string[] {
  return splits.map((s) => {
    const at = new Date(s * 1000);
    if (at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0) return day(at);
    return increment < 60 ? clock(at) : minutes(at);
  });
}

/** The same of days in UTC: their starts are no midnights here. */
const dayLabels = (_: uPlot, splits: number[]): string[] => splits.map((s) => utcDay(new Date(s * 1000)));

/** Where days in UTC begin, so many of them that their labels have room. */
function daySplits({ start, points, step }: Grid, width: number, space: number): number[] {
  const each = Math.max(1, Math.ceil(points / Math.max(1, Math.floor(width / space))));
  return moments({ start, step, points }).filter((_, i) => i % each === 0);
}

/** A label of the vertical axis: round numbers without the zeros behind the point. */
function mark(value: number, unit: Drawable["unit"]): string {
  return value === 0 ? "0" : text(value, unit).replace(/\.(\d*?)0+(?=\D*$)/, (_, rest: string) => (rest ? `.${rest}` : ""));
}

/**
 * Options of a chart. `current` is what is drawn at any later moment too, so that new
 * values need no new plot; `read` tells the index under the cursor and the nearest series.
 */
export function options(
  current: () => Drawn,
  size: { width: number; height: number },
  sync: string,
  read: (index: number | null, series: number | null) => void,
): uPlot.Options {
  const drawn = current();
  const { chart } = drawn;
  const many = chart.series.length > 1;
  const ink = token("--muted");
  const rule = token("--rule");
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const font = `${Math.round(11 * rem)}px ${token("--sans")}`;
  const max = () => top(current().chart);
  const span = (): [number, number] => [Date.parse(current().range.start) / 1000, Date.parse(current().range.end) / 1000];

  const stacked = !!chart.stacked;
  const days = stacked && drawn.range.step >= 86_400;
  const lines = (): uPlot.Series[] => chart.series.map((s, i) => {
    const style = many ? lineStyle(i) : { stroke: token("--data"), dash: [] };
    const dim = drawn.focus !== null && drawn.focus !== s.name;
    return {
      label: s.name,
      stroke: style.stroke,
      dash: style.dash,
      width: many ? (drawn.focus === s.name ? 2.25 : 1.5) : 1.75,
      alpha: dim ? 0.18 : 1,
      fill: many ? undefined : token("--data-area"),
      spanGaps: false,
      points: { show: true, size: 4, width: 0, fill: style.stroke, filter: (u, index) => isolated(u.data[index] as (number | null)[]) },
    };
  });
  const series = stacked ? stackSeries(current) : lines();
  if (chart.limit) series.push({ label: "limit", stroke: ink, width: 1, dash: [3, 3], spanGaps: false, points: { show: false } });

  return {
    ...size,
    series: [{}, ...series],
    padding: [8 * rem, 18 * rem, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: sync, setSeries: false },
      y: false,
      drag: { x: false, y: false, setScale: false },
      focus: { prox: many && !stacked ? 1e6 : -1 },
      points: { show: !stacked && undefined,  size: 7, width: 1.5, fill: token("--surface"), stroke: (u, i) => (u.series[i]?.stroke as () => string)?.call(u) ?? ink },
    },
    focus: { alpha: 1 },
    scales: { x: { time: true, range: span }, y: { range: () => [0, max()] } },
    axes: [
      { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { show: false }, size: 26 * rem, gap: 6, space: 64 * rem, values: days ? dayLabels : timeLabels, ...(days && { splits: (u: uPlot) => daySplits(current().range, u.bbox.width / devicePixelRatio, 64 * rem) }) },
      {
        stroke: ink,
        font,
        grid: { stroke: rule, width: 1 },
        ticks: { show: false },
        size: 62 * rem,
        gap: 6,
        splits: () => quarters(max()),
        values: (_, splits) => splits.map((v) => mark(v, chart.unit)),
      },
    ],
    hooks: {
      drawClear: [(u) => shade(u, current().chart)],
      setCursor: [(u) => read(u.cursor.idx ?? null, stacked && u.cursor.idx != null ? seriesAt(current().chart, u.cursor.idx, u.posToVal(u.cursor.top ?? -1, "y")) : null)],
      setSeries: [(u, index) => many && !stacked && read(u.cursor.idx ?? null, index === null ? null : index - 1)],
    },
  };
}

/** Marks the time for which no series has a value, so that a gap is seen to be one. */
function shade(u: uPlot, chart: Drawable): void {
  const x = u.data[0];
  if (!x || x.length === 0) return;
  const lists = chart.series.map((s) => fitted(s.values, x.length));
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const [from, to] of gaps(lists, x.length)) {
    // From the last value before the gap to the first one after it.
    const half = chart.stacked ? (x.length > 1 ? (x[1]! - x[0]!) / 2 : Infinity) : 0;
    const left = half ? Math.max(bbox.left, u.valToPos(x[from]! - half, "x", true)) : u.valToPos(x[Math.max(0, from - 1)]!, "x", true);
    const right = half ? Math.min(bbox.left + bbox.width, u.valToPos(x[to]! + half, "x", true)) : to === x.length - 1 ? bbox.left + bbox.width : u.valToPos(x[to + 1]!, "x", true);
    ctx.fillStyle = token("--gap");
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.strokeStyle = token("--gap-line");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.save();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (let at = left - bbox.height; at < right; at += 7 * devicePixelRatio) {
      ctx.moveTo(at, bbox.top + bbox.height);
      ctx.lineTo(at + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
  ctx.restore();
}
