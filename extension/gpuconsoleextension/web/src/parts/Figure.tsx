import type { ComponentChildren } from "preact";
import type { Unit } from "../format";
import { notMeasured, Value } from "./values";

interface Shown {
  value: number | null;
  /** More about the value, or why there is none. */
  title?: string | undefined;
}

/** One number that matters, with its name, unit and what it is measured against; `full` draws how far it is from its highest, `also` is a second number behind it. */
export function Figure(p: Shown & { name: string; hint?: string; unit: Unit; also?: Shown | undefined; note?: ComponentChildren; tone?: "warn" | "bad"; full?: number | null | undefined; unmeasured?: boolean }) {
  return (
    <div class={`figure${p.tone ? ` ${p.tone}` : ""}`} data-figure={p.name}>
      <dt title={p.hint}>{p.name}</dt>
      <dd>
        <span class="figure-value">
          <Value value={p.value} unit={p.unit} title={p.unmeasured ? notMeasured : p.title} />
          {p.also && (
            <>
              <span class="of"> / </span>
              <Value value={p.also.value} unit={p.unit} title={p.also.title} />
            </>
          )}
        </span>
        {p.full !== undefined && p.full !== null && (
          <span class="meter-track" aria-hidden="true">
            <span class="meter-fill" style={{ width: `${(Math.min(1, p.full) * 100).toFixed(1)}%` }} />
          </span>
        )}
        {p.unmeasured && p.value === null ? (
          <span class="figure-note" data-unmeasured>
            {notMeasured}
          </span>
        ) : (
          p.note !== undefined && <span class="figure-note">{p.note}</span>
        )}
      </dd>
    </div>
  );
}

/** What is shown while nothing has been answered yet. */
export function Skeleton({ rows }: { rows: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}
