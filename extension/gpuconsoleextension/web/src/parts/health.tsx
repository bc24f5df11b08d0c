import type { Health, HealthCounts } from "../api/types";
import { explained, inWords, stateOf, unwell } from "../health";
import { Tag } from "./notices";

/** The health of a board or a node: word, sign and colour. */
export function HealthTag({ health }: { health: Health | null }) {
  if (!health) return <span class="none">—<span class="vh">none of its own</span></span>;
  return (
    <span data-health={health.state}>
      <Tag tone={stateOf(health.state).tone} title={explained(health) || undefined}>
        {inWords(health)}
      </Tag>
    </span>
  );
}

/** Which boards are not well, where some are: "2 of 8 GPUs degraded". */
export function HealthTags({ counts }: { counts: HealthCounts }) {
  return (
    <>
      {unwell(counts).map(({ text, tone }) => (
        <Tag key={text} tone={tone}>
          {text}
        </Tag>
      ))}
    </>
  );
}
