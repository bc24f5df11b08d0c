import type { Inference as Data } from "../api/types";
import { plural, safe } from "../format";
import { cardsOf, lacking } from "../inference";
import { Figure } from "../parts/Figure";

/** What the inference servers of a service report, beside what its GPUs do. */
export function Inference({ data }: { data: Data }) {
  const { servers } = data;
  return (
    <section aria-label="Inference" class="cards inference">
      <p class="cards-note quiet">
        {data.engines.map(safe).join(", ")}
        {servers && (servers.up < servers.of ? `: ${servers.up} of ${plural(servers.of, "server")} answered` : `: ${plural(servers.of, "server")}`)}. Over the last five minutes, of the whole service.
      </p>
      <dl>
        {cardsOf(data).map(({ key, name, hint, unit, also }) => (
          <Figure
            key={key}
            name={name}
            hint={hint}
            value={data[key]}
            unit={unit}
            title={data[key] === null ? lacking(data, key) : undefined}
            full={unit === "1" ? data[key] : undefined}
            also={also && { value: data[also], title: data[also] === null ? lacking(data, also) : undefined }}
          />
        ))}
      </dl>
    </section>
  );
}
