import type { ComponentChildren } from "preact";
import { now } from "../clock";
import { clock, count, duration, gap, moment, safe, text, type Unit, utc, write } from "../format";
import type { Coverage } from "../api/types";
import { ageNow, partly, staleNow } from "../state";

/** Why a field has no value although its device reports. */
export const notMeasured = "not measured by this vendor";

/** Whether no vendor of the devices measures the field. */
export const unmeasured = (of: { not_measured: readonly string[] }, field: string): boolean => of.not_measured.includes(field);

/** A value with its unit; null is shown as no data, or as not measured, never as a number. */
export function Value({ value, unit, title, unmeasured }: { value: number | null; unit: Unit; title?: string | undefined; unmeasured?: boolean }) {
  if (value === null && unmeasured) {
    return (
      <span class="value none" title={notMeasured} data-value="null" data-unmeasured>
        not measured<span class="vh"> by this vendor</span>
      </span>
    );
  }
  if (value === null) {
    return (
      <span class="value none" title={title ?? "no data"} data-value="null">
        <span aria-hidden="true">—</span>
        <span class="vh">{title ?? "no data"}</span>
      </span>
    );
  }
  const w = write(value, unit);
  return (
    <span class="value" title={title} data-value={value}>
      {w.number}
      {w.unit && (
        <span class="unit">
          {gap}
          {w.unit}
        </span>
      )}
    </span>
  );
}

/** A count; null is told as not known. */
export function Count({ value }: { value: number | null }) {
  return value === null ? (
    <span class="value none" data-value="null">
      <span aria-hidden="true">—</span>
      <span class="vh">not known</span>
    </span>
  ) : (
    <span class="value" data-value={value}>
      {count(value)}
    </span>
  );
}

/** A name from outside: shown as text, whatever it holds, in its own direction. */
export function Name({ children, class: className }: { children: string; class?: string }) {
  const shown = safe(children);
  return (
    <bdi class={className ? `name ${className}` : "name"} title={shown.length > 24 ? shown : undefined}>
      {shown}
    </bdi>
  );
}

/** How full something is, beside the value that says the same. No data has no bar: an empty one would look like zero. */
export function Meter({ ratio, tone, children }: { ratio: number | null; tone?: string; children?: ComponentChildren }) {
  return (
    <span class={`meter${tone ? ` ${tone}` : ""}`}>
      <span class="meter-text">{children}</span>
      {ratio !== null && (
        <span class="meter-track" aria-hidden="true">
          <span class="meter-fill" style={{ width: `${(Math.min(1, Math.max(0, ratio)) * 100).toFixed(1)}%` }} />
        </span>
      )}
    </span>
  );
}

/** Says that a figure is over part of the devices. */
export function Partly({ of }: { of?: Coverage }) {
  const words = partly(of ?? null);
  return words ? (
    <span class="partly" title="The others have no current value" data-partly={`${of!.devices}/${of!.of}`}>
      {words}
    </span>
  ) : null;
}

/** Utilization as a bar with its value. */
export function Utilization({ ratio, min, max, of }: { ratio: number | null; min?: number | null; max?: number | null; of?: Coverage }) {
  const range = min != null && max != null ? `lowest pod ${text(min, "1")}, highest ${text(max, "1")}` : undefined;
  return (
    <Meter ratio={ratio}>
      <Value value={ratio} unit="1" title={ratio === null ? undefined : range} />
      <Partly of={of} />
    </Meter>
  );
}

/** Memory in use of what there is. A part of the devices has no bar: it would look like less use. */
export function Memory({ used, total, of }: { used: number | null; total: number | null; of?: Coverage }) {
  const ratio = used !== null && total && !partly(of ?? null) ? used / total : null;
  return (
    <Meter ratio={ratio} tone={ratio !== null && ratio >= 0.95 ? "full" : "second"}>
      <Value value={used} unit="By" />
      {total !== null && (
        <span class="of">
          {" / "}
          <Value value={total} unit="By" />
        </span>
      )}
      {ratio !== null && <span class="vh">, {text(ratio, "1")}</span>}
      <Partly of={of} />
    </Meter>
  );
}

/** How old data is, as of now, and whether that is too old. */
export function Age(p: { age: number | null; stale: boolean; staleAfter: number; receivedAt: number; time: string | null; /** What stands behind an age, as " old". */ suffix?: string }) {
  const age = ageNow(p.age, p.receivedAt, now.value);
  if (age === null) return <span class="age none">no data</span>;
  const stale = staleNow(p.stale, age, p.staleAfter);
  return (
    <span class={stale ? "age is-stale" : "age"} title={p.time ? `measured ${utc(new Date(p.time))}` : undefined}>
      {stale && <span class="stale-mark">stale </span>}
      {duration(age)}
      {p.suffix}
    </span>
  );
}

/** A moment, in the reader's zone; its title has it in UTC. */
export function Time({ at, seconds = true }: { at: string; seconds?: boolean }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span class="value none">—</span>;
  return (
    <time dateTime={utc(date)} title={utc(date)} class="time">
      {seconds ? moment(date, new Date(now.value)) : clock(date)}
    </time>
  );
}

/** 64 of 64 as the eye wants it: the first number full, the rest quiet. */
export function Of({ part, whole }: { part: number | null; whole: number | null }) {
  return (
    <span class="value">
      <Count value={part} />
      <span class="of"> / {whole === null ? "—" : count(whole)}</span>
    </span>
  );
}

