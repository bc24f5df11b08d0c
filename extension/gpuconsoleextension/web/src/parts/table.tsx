import type { ComponentChildren } from "preact";

export interface Column {
  name: string;
  /** What it means, where the name does not say it. */
  title?: string;
  /** Numbers stand to the right. */
  number?: boolean;
  /** The column whose cells name their rows. */
  head?: boolean;
  class?: string;
}

/**
 * A table that becomes a list of cards where it has no room. Roles are written
 * out, because the change of display would take them away.
 */
export function Table(p: {
  caption: string;
  columns: readonly Column[];
  children: ComponentChildren;
  class?: string;
  showCaption?: boolean;
}) {
  return (
    <table role="table" class={`table ${p.class ?? ""}`}>
      <caption class={p.showCaption ? undefined : "vh"}>{p.caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {p.columns.map((c) => (
            <th key={c.name} role="columnheader" scope="col" title={c.title} class={[c.number ? "number" : "", c.class ?? ""].join(" ").trim() || undefined}>
              {c.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">{p.children}</tbody>
    </table>
  );
}

/** One row; cells are given in the order of the columns. */
export function Row({ columns, cells, class: className, data }: { columns: readonly Column[]; cells: readonly ComponentChildren[]; class?: string; data?: string }) {
  return (
    <tr role="row" class={className} data-row={data}>
      {columns.map((c, i) =>
        c.head ? (
          <th key={c.name} role="rowheader" scope="row" class={`head ${c.class ?? ""}`.trim()}>
            {cells[i]}
          </th>
        ) : (
          <td key={c.name} role="cell" data-label={c.name} class={[c.number ? "number" : "", c.class ?? ""].join(" ").trim() || undefined}>
            {cells[i]}
          </td>
        ),
      )}
    </tr>
  );
}

/** How much of a list is on the page, and the rest of it. */
export function More({ shown, total, word, limit, grow }: { shown: number; total: number; word: string; limit: number; grow: () => void }) {
  if (shown >= total) return null;
  return (
    <p class="more">
      <span>
        {shown} of {total} {word}
      </span>
      <button type="button" class="button" onClick={grow}>
        Show {Math.min(limit, total - shown)} more
      </button>
    </p>
  );
}
