/** How values are written. null is no data and never a number; units are always there. */

/** No-break thin space, between a number and its unit. */
export const gap = "\u202f";

export interface Written {
  number: string;
  unit: string;
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A number of things: 4,096. */
export const count = (value: number): string => grouped.format(value);

/** A ratio as percent: one decimal below ten, none above. What is not zero is not written as zero. */
export function percent(ratio: number): Written {
  const value = ratio * 100;
  let number: string;
  if (value === 0) number = "0";
  else if (value < 0.05) number = "<0.1";
  else if (value < 9.95) number = value.toFixed(1);
  else number = value.toFixed(0);
  return { number, unit: "%" };
}

function scaled(value: number, base: number, units: readonly string[]): Written {
  let step = 0;
  let rest = value;
  // 999.5 would be written as 1000 with three digits: it belongs to the next unit.
  while (step < units.length - 1 && rest >= (base === 1024 ? 1023.5 : 999.5)) {
    rest /= base;
    step++;
  }
  return { number: digits(rest, step === 0), unit: units[step]! };
}

/** Three significant digits, without an exponent. */
function digits(value: number, whole: boolean): string {
  if (whole) return value.toFixed(0);
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

export const bytes = (value: number): Written => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);

export const watts = (value: number): Written => scaled(value, 1000, ["W", "kW", "MW", "GW"]);

export const celsius = (value: number): Written => ({ number: value.toFixed(0), unit: "°C" });

export const hertz = (value: number): Written => scaled(value, 1000, ["Hz", "kHz", "MHz", "GHz"]);

/** Seconds, in milliseconds below one. */
export const seconds = (value: number): Written => (value < 0.9995 ? { number: small(value * 1000), unit: "ms" } : { number: small(value), unit: "s" });

/** Three significant digits of what has no larger unit; all digits before the point. */
function small(value: number): string {
  return value >= 99.95 ? count(value) : String(Number(value.toPrecision(3)));
}

/** An amount of money with its currency, as exactly as a bill has it; what is not zero is not written as zero. */
export function money(value: number, currency: string): Written {
  const least = Math.abs(value);
  const digits = least > 0 && least < 0.995 ? Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(least)))) : 2;
  const number = least > 0 && least < 5e-7 ? "<0.000001" : value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits });
  return { number, unit: currency };
}

/** Hours of a GPU. */
export const gpuHours = (value: number): Written => ({ number: notZero(value), unit: "h" });

export const joules = (value: number): Written => (value < 999.5 ? { number: notZero(value), unit: "J" } : scaled(value, 1000, ["J", "kJ", "MJ", "GJ", "TJ"]));

export const grams = (value: number): Written => (value < 999.5 ? { number: notZero(value), unit: "g" } : scaled(value, 1000, ["g", "kg", "t"]));

/** Three significant digits; what is not zero is not written as zero. */
const notZero = (value: number): string => (value === 0 || value >= 0.0005 ? small(value) : "<0.001");

export type Unit = "1" | "By" | "W" | "Cel" | "Hz" | "s" | "{token}/s" | "{token}/J" | "count" | "h" | "J" | "g" | `money:${string}`;

export function write(value: number, unit: Unit): Written {
  switch (unit) {
    case "1":
      return percent(value);
    case "By":
      return bytes(value);
    case "W":
      return watts(value);
    case "Cel":
      return celsius(value);
    case "Hz":
      return hertz(value);
    case "s":
      return seconds(value);
    case "{token}/s":
    case "{token}/J":
      return { number: small(value), unit: unit.replace("{token}", "tokens") };
    case "count":
      return { number: count(value), unit: "" };
    case "h":
      return gpuHours(value);
    case "J":
      return joules(value);
    case "g":
      return grams(value);
    default:
      return money(value, unit.slice("money:".length));
  }
}

/** As one text: 61.4 GiB; "no data" for null. */
export function text(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "no data";
  const w = write(value, unit);
  return w.unit ? w.number + gap + w.unit : w.number;
}

/** A length of time in its two largest units: 4 s, 2 min 05 s, 1 h 12 min, 3 d 4 h. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}${gap}s`;
  if (s < 3600) return `${Math.floor(s / 60)}${gap}min ${String(s % 60).padStart(2, "0")}${gap}s`;
  if (s < 86_400) return `${Math.floor(s / 3600)}${gap}h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}${gap}min`;
  return `${Math.floor(s / 86_400)}${gap}d ${Math.floor((s % 86_400) / 3600)}${gap}h`;
}

/** A length of time that a person would say: 90 seconds, 15 minutes. */
export function spoken(seconds: number): string {
  const [n, word] = seconds < 120 || seconds % 60 ? [seconds, "second"] : seconds < 7200 || seconds % 3600 ? [seconds / 60, "minute"] : [seconds / 3600, "hour"];
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

/** The time within which a new pod should report, and whether that is the console's default. */
export function warmup(config: { warmup: number; thresholds_from: string }): string {
  return spoken(config.warmup) + (config.thresholds_from === "gpu_summary" ? "" : " (this console’s default: gpu_summary reports no thresholds)");
}

/** Milliseconds or seconds, whichever reads better: 84 ms, 1.2 s. */
export function latency(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)}${gap}ms` : `${seconds.toFixed(1)}${gap}s`;
}

const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minuteFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Time of day in the reader's zone: 14:05:09. */
export const clock = (at: Date): string => clockFormat.format(at);

/** Time of day without seconds: 14:05. */
export const minutes = (at: Date): string => minuteFormat.format(at);

/** The day in the reader's zone: 21 Nov. */
export const day = (at: Date): string => dayFormat.format(at);

const utcDayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** The day in UTC, as days of usage are: 21 Nov. */
export const utcDay = (at: Date): string => utcDayFormat.format(at);

/** An hour or a day of usage by its start: 21 Nov 14:00, or 21 Nov UTC. */
export const period = (start: Date, step: number): string => (step >= 86_400 ? `${utcDay(start)} UTC` : `${day(start)} ${minutes(start)}`);

/** Time of day, with the day where that is not today. */
export function moment(at: Date, now: Date): string {
  return at.toDateString() === now.toDateString() ? clock(at) : `${day(at)} ${clock(at)}`;
}

/** The moment without doubt, for titles and machines: 2026-11-21T14:05:09Z. */
export const utc = (at: Date): string => at.toISOString().replace(/\.\d+Z$/, "Z");

/**
 * A text from outside, made safe to show: control, bidirectional and invisible
 * characters, which could make one name look like another, become visible.
 */
export function safe(name: string): string {
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
}

/** "1 pod", "3 pods". */
export const plural = (n: number, word: string): string => `${count(n)}${"\u00a0"}${word}${n === 1 ? "" : "s"}`;

/** How often something happened: "× 3"; "at least once" where it may have been more. */
export const times = (n: number, least: boolean): string => (least ? `, at least ${n === 1 ? "once" : `${count(n)} times`}` : `${gap}×${gap}${count(n)}`);

/** What people call a board: by its index, else by what is short in its id, as a PCI address or the end of a unique id. */
export function gpuName(d: { id: string; index: string | null }): string {
  if (d.index !== null) return `GPU${gap}${safe(d.index)}`;
  const board = d.id.replace(/^PCI-.*@/, "").replace(/(\/|::).*$/, "").replace(/^(GPU-serial-|GPU-|GAUDI-)/, "");
  return `GPU${gap}${safe(/^[0-9a-f]{16}$/.test(board) ? board.slice(-8) : /^[0-9a-f]{8}-/.test(board) ? board.slice(0, 8) : board)}`;
}
