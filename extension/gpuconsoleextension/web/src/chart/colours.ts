/** Lines of a chart by pod: eight hues that differ in lightness too, then the same with dashes. */
const hues = 8;
const dashes: number[][] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export interface LineStyle {
  stroke: string;
  dash: number[];
}

/** Value of a design token as it stands in the present theme. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function lineStyle(index: number): LineStyle {
  return { stroke: token(`--line-${(index % hues) + 1}`), dash: dashes[Math.floor(index / hues) % dashes.length]! };
}

/** The class and dash of a line's swatch in the legend. */
export const swatch = (index: number): { hue: string; dash: string } => ({
  hue: `line-${(index % hues) + 1}`,
  dash: dashes[Math.floor(index / hues) % dashes.length]!.join(" "),
});
