import type uPlot from "uplot";
import type { Drawable, Grid } from "../api/types";
import { lineStyle, token } from "./colours";
import { fitted, type Layer, layers, moments } from "./grid";

/** What a series of a stack is drawn as: one of eight colours, or a pattern. */
export type Look = "hue" | "others" | "unowned" | "unknown";

/** The middle of each step, and where the bars of each series end. */
export function stackColumns({ chart, range }: { chart: Drawable; range: Grid }): uPlot.AlignedData {
  const middles = moments(range).map((start) => start + range.step / 2);
  return [middles, ...layers(chart.series).map((l) => fitted(l.end, range.points))] as uPlot.AlignedData;
}

/** The bars of a series, each from where that of the series before it ends. */
function bars(layer: () => Layer | undefined, step: () => number): uPlot.Series.PathBuilder {
  return (u, _, from, to) => {
    const fill = new Path2D();
    const drawn = layer();
    const half = step() / 2;
    for (let i = from; drawn && i <= to; i++) {
      const base = drawn.base[i];
      const end = drawn.end[i];
      if (base == null || end == null || end <= base) continue;
      const middle = u.data[0][i]!;
      const left = u.valToPos(middle - half, "x", true);
      const right = u.valToPos(middle + half, "x", true);
      const top = u.valToPos(end, "y", true);
      const space = right - left > 4 * devicePixelRatio ? devicePixelRatio : 0;
      fill.rect(left + space / 2, top, right - left - space, u.valToPos(base, "y", true) - top);
    }
    return { fill, stroke: null, clip: null, flags: 0 };
  };
}

/** The series of a stack; `current` is what is drawn at any later moment too. */
export function stackSeries(current: () => { chart: Drawable; range: Grid; focus: string | null }): uPlot.Series[] {
  const { chart, focus } = current();
  return chart.series.map((s, i) => ({
    label: s.name,
    width: 0,
    alpha: focus !== null && focus !== s.name ? 0.18 : 1,
    fill: fillOf(chart.stacked!.looks[i] ?? "hue", i),
    paths: bars(() => layers(current().chart.series)[i], () => current().range.step),
    points: { show: false },
  }));
}

/** The series whose bar is at a height of a step; null where none is. */
export function seriesAt(chart: Drawable, index: number, height: number): number | null {
  const found = layers(chart.series).findIndex(({ base, end }) => base[index] != null && height >= base[index]! && height < end[index]!);
  return found < 0 ? null : found;
}

function fillOf(look: Look, index: number): () => string | CanvasPattern {
  if (look === "hue") return () => lineStyle(index).stroke;
  const size = Math.round(6 * devicePixelRatio);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const at = tile.getContext("2d")!;
  at.fillStyle = token(look === "others" ? "--data-soft" : "--track");
  at.fillRect(0, 0, size, size);
  at.strokeStyle = at.fillStyle = token("--muted");
  at.lineWidth = devicePixelRatio;
  if (look !== "unowned") {
    const [from, to] = look === "others" ? [size, 0] : [0, size];
    for (const shift of [-size, 0, size]) {
      at.moveTo(shift, from);
      at.lineTo(shift + size, to);
    }
    at.stroke();
  } else {
    at.arc(size / 2, size / 2, devicePixelRatio * 0.9, 0, 2 * Math.PI);
    at.fill();
  }
  const pattern = at.createPattern(tile, "repeat") ?? token("--muted");
  return () => pattern;
}
