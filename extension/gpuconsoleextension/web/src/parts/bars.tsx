import { count } from "../format";

/**
 * A line of utilization over time without axes, beside the value that it led to.
 * Gaps are gaps. It is decoration: the value and the service's charts tell it in words.
 */
export function Sparkline({ values }: { values: readonly (number | null)[] | null }) {
  if (!values || values.length < 2) return null;
  const width = 96;
  const height = 24;
  const x = (i: number) => ((i / (values.length - 1)) * (width - 2) + 1).toFixed(1);
  const y = (v: number) => ((1 - Math.min(1, v)) * (height - 4) + 2).toFixed(1);
  let line = "";
  let area = "";
  let run = -1;
  values.forEach((v, i) => {
    if (v !== null && run < 0) run = i;
    if ((v === null || i === values.length - 1) && run >= 0) {
      const end = v === null ? i - 1 : i;
      const points = values.slice(run, end + 1).map((p, k) => `${x(run + k)} ${y(p ?? 0)}`);
      // A value between two gaps is a dot, or it would not be seen.
      line += points.length > 1 ? `M${points.join("L")}` : `M${points[0]}h.1`;
      area += points.length > 1 ? `M${x(run)} ${height}L${points.join("L")}L${x(end)} ${height}z` : "";
      run = -1;
    }
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
      {area && <path class="spark-area" d={area} />}
      {line && <path class="spark-line" d={line} />}
    </svg>
  );
}

/** Where the first of some lines begins; 0 if none has two values behind it. */
export function begin(lines: readonly (readonly (number | null)[])[]): number {
  const firsts = lines.map((values) => values.findIndex((v) => v !== null)).filter((at) => at >= 0);
  const first = firsts.length ? Math.min(...firsts) : 0;
  return lines.some((values) => values.length - first < 3) ? 0 : first;
}

export interface Part {
  name: string;
  value: number | null;
  /** Names the pattern and colour. */
  kind: string;
}

/** Parts of a whole, each with its own pattern, and in words below or beside. */
export function Stack({ parts, total, label, legend = false }: { parts: readonly Part[]; total: number | null; label: string; legend?: boolean }) {
  const known = parts.filter((p): p is Part & { value: number } => !!p.value);
  const whole = total || known.reduce((sum, p) => sum + p.value, 0);
  const words = parts.filter((p) => p.value !== null).map((p) => `${count(p.value!)} ${p.name}`);
  return (
    <div class={legend ? "stack with-legend" : "stack"}>
      <span class="stack-track" role="img" aria-label={`${label}: ${words.join(", ") || "not known"}`}>
        {known.map((p) => (
          <span key={p.kind} class={`stack-part ${p.kind}`} style={{ flexGrow: p.value / (whole || 1) }} />
        ))}
      </span>
      {legend && (
        <ul class="stack-legend" aria-hidden="true">
          {parts
            .filter((p) => p.value !== null)
            .map((p) => (
              <li key={p.kind}>
                <span class={`swatch ${p.kind}`} />
                <b>{count(p.value!)}</b> {p.name}
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}
