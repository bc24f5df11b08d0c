import type { CostBudget } from "../api/types";
import { budgetTone } from "../cost";
import { period, text, type Unit } from "../format";
import { Tag } from "../parts/notices";
import { Meter, Name, Value } from "../parts/values";

/** How much of each budget is used, as a bar and in numbers. */
export function Budgets({ budgets, currency }: { budgets: readonly CostBudget[] | null; currency: string | null }) {
  if (budgets && !budgets.length) return null;
  return (
    <section class="budgets" aria-label="Budgets">
      <h2>Budgets</h2>
      {!budgets && <p class="quiet">The metric store, which has how much of them is used, does not answer.</p>}
      <ul>
        {budgets?.map((b) => (
          <Budget key={`${b.name}\n${b.kind}`} budget={b} unit={b.kind === "cost" ? `money:${currency ?? ""}` : "h"} />
        ))}
      </ul>
    </section>
  );
}

const unknown = "not known: nothing of it has a price yet";

function Budget({ budget: b, unit }: { budget: CostBudget; unit: Unit }) {
  const tone = budgetTone(b.ratio);
  return (
    <li data-budget={b.name} class={tone ?? undefined}>
      <span class="budget-name">
        <Name>{b.name}</Name>
        {tone === "bad" && <Tag tone="bad">over budget</Tag>}
        {tone === "warn" && <Tag tone="warn">nearly used</Tag>}
      </span>
      <Meter ratio={b.ratio} tone={tone === "bad" ? "over" : tone === "warn" ? "full" : "second"}>
        {b.limit !== null && (
          <>
            <Value value={b.used} unit={unit} title={b.used === null ? unknown : undefined} />
            <span class="of"> of {text(b.limit, unit)} · </span>
          </>
        )}
        <Value value={b.ratio} unit="1" title={b.ratio === null ? unknown : undefined} />
        {b.limit === null && b.ratio !== null && <span class="of"> of its {b.kind === "cost" ? "money" : "hours"}</span>}
      </Meter>
      {(b.tenant || (b.start && b.end)) && (
        <span class="under">
          {b.tenant && (
            <>
              tenant <Name>{b.tenant}</Name>{" "}
            </>
          )}
          {b.start && b.end && `${period(new Date(b.start), 86_400)} to ${period(new Date(b.end), 86_400)}`}
        </span>
      )}
    </li>
  );
}
