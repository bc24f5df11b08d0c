import { api } from "../api/client";
import type { Device, GpuNode, HealthReason, Status } from "../api/types";
import { count, gap, plural, safe } from "../format";
import { incidents, spelled, stateOf } from "../health";
import { now } from "../clock";
import { usePoll } from "../poll";
import { placeLink } from "../router";
import { HealthTag } from "../parts/health";
import { Failure, Tag } from "../parts/notices";
import { type Column, Row, Table } from "../parts/table";
import { Time, Value } from "../parts/values";

const nameOf = (devices: readonly Device[], id: string | null): string => {
  const d = devices.find((one) => one.id === id);
  return d?.index != null ? `GPU${gap}${safe(d.index)}` : safe(id ?? "");
};

/** What is wrong with a node, or with one board, what to do, and what happened to it. */
export function HealthSection({ node, devices, board, status }: { node: GpuNode; devices: readonly Device[]; board: Device | undefined; status: Status }) {
  const boards = devices.filter((d) => d.parent === null && d.health !== null);
  const health = board ? board.health : node.health;
  if (!health) return null; // an instance or a replica: its board has it
  const { reasons, coverage } = health;
  return (
    <section class="pods health" aria-label="Health">
      <div class="toolbar">
        <h2>Health</h2>
        <HealthTag health={health} />
        {health.since && (
          <p class="quiet">
            since <Time at={health.since} />
          </p>
        )}
        {health.action && health.action !== "none" && (
          <p>
            To do: <strong data-action={health.action}>{spelled(health.action)}</strong>
          </p>
        )}
      </div>
      {health.state === "unknown" && (
        <p class="quiet">
          {reasons.length ? "Nothing fresh is known: these are the reasons that were known last." : health.watched_since ? "Nothing fresh is known, and nothing was wrong when it was known last." : "Nothing reports it: the gpu_events connector of the agents does, with gpu.health enabled and a metrics pipeline."}
        </p>
      )}
      {reasons.length > 0 && <Reasons reasons={reasons} devices={devices} cluster={node.cluster} one={!!board} />}
      {coverage && (
        <p class="quiet">
          {plural(coverage.with_data, "check")} of {count(coverage.applicable)} {coverage.with_data === 1 ? "has" : "have"} data
          {coverage.missing.length > 0 && `; without: ${coverage.missing.map(spelled).join(", ")}. gpuctl doctor exporter names the fields that are missing`}.
          {health.watched_since && (
            <>
              {" "}
              Watched since <Time at={health.watched_since} /> or longer: what was before is not judged.
            </>
          )}
        </p>
      )}
      <Memory boards={boards} cluster={node.cluster} />
      <Incidents node={node} boards={boards} status={status} />
    </section>
  );
}

const reasonColumns: readonly Column[] = [
  { name: "Reason", head: true },
  { name: "GPU" },
  { name: "State" },
  { name: "What was read", class: "wide" },
  { name: "Value and limit", number: true },
  { name: "To do" },
  { name: "Since", number: true },
];

function Reasons({ reasons, devices, cluster, one }: { reasons: readonly HealthReason[]; devices: readonly Device[]; cluster: string | null; one: boolean }) {
  const columns = reasonColumns.filter((c) => !one || c.name !== "GPU");
  return (
    <Table caption="Reasons, the worst first" columns={columns} class="reason-table">
      {reasons.map((r) => (
        <Row
          key={`${r.name}\n${r.device ?? ""}`}
          columns={columns}
          data={r.name}
          cells={[
            <a href={r.runbook} target="_blank" rel="noopener noreferrer">
              {spelled(r.name)}
              <span class="vh"> (runbook, new tab)</span>
            </a>,
            ...(one ? [] : [r.device === null ? <span class="none">the node</span> : <a href={placeLink({ cluster, device: r.device })}>{nameOf(devices, r.device)}</a>]),
            <Tag tone={stateOf(r.state).tone}>{stateOf(r.state).word}</Tag>,
            safe(r.text),
            r.value === null ? <Value value={null} unit="count" title="nothing is compared" /> : `${number(r.value)}${r.threshold === null ? "" : `, limit ${number(r.threshold)}`}`,
            spelled(r.action),
            r.since ? <Time at={r.since} /> : <span class="none">not known</span>,
          ]}
        />
      ))}
    </Table>
  );
}

/** In the unit of the reason, which its sentence has. */
const number = (value: number): string => (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3))));

const memoryColumns: readonly Column[] = [
  { name: "Memory of", head: true },
  { name: "Corrected", title: "Corrected ECC errors of the last 24 hours: a trend, and no state", number: true },
  { name: "Uncorrected", title: "Uncorrected ECC errors of the last 24 hours", number: true },
  { name: "Remapped rows", title: "Rows that were remapped in its life, and of these in the last 24 hours", number: true },
  { name: "Beside its peers" },
];

/** How the memory of boards is doing: of those that report it. */
function Memory({ boards, cluster }: { boards: readonly Device[]; cluster: string | null }) {
  const some = boards.filter((d) => d.corrected_errors !== null || d.uncorrected_errors !== null || d.remapped_rows !== null || d.straggler !== null);
  if (!some.length) return null;
  return (
    <Table caption="ECC errors of 24 hours and remapped rows" columns={memoryColumns} class="memory-table">
      {some.map((d) => (
        <Row
          key={d.id}
          columns={memoryColumns}
          data={`memory ${d.id}`}
          cells={[
            <a href={placeLink({ cluster, device: d.id })}>{nameOf(boards, d.id)}</a>,
            <Value value={d.corrected_errors} unit="count" />,
            <Value value={d.uncorrected_errors} unit="count" />,
            <>
              <Value value={d.remapped_rows} unit="count" />
              {!!d.remapped_rows_rise && <span class="of"> (+{count(d.remapped_rows_rise)})</span>}
            </>,
            d.straggler === null ? <span class="none">—<span class="vh">nothing is reported</span></span> : <Straggler cause={d.straggler} />,
          ]}
        />
      ))}
    </Table>
  );
}

/** That a board holds its job up. */
export function Straggler({ cause }: { cause: string }) {
  return (
    <Tag tone="info" title="Its clock is low among its peers in the service: a job that waits for all of them is as slow as it is">
      slower than its peers: {spelled(cause)}
    </Tag>
  );
}

/** XIDs of the last day, by incident. */
function Incidents({ node, boards, status }: { node: GpuNode; boards: readonly Device[]; status: Status }) {
  const poll = usePoll((signal) => api.events({ name: "gpu.xid", q: node.node, limit: Math.min(100, status.config.limits.max_services_per_request) }, signal), status.config.refresh * 1000, [node.node]);
  const known = poll.known.value;
  const found = known.data ? incidents(known.data.events, new Set(boards.map((d) => d.id)), now.value) : [];
  return (
    <>
      <Failure known={known} refresh={poll.refresh} />
      {known.data && (
        <>
          <h3>XID incidents of 24 hours</h3>
          {found.length === 0 ? (
            <p class="quiet">None in the log of events.</p>
          ) : (
            <ul class="reasons">
              {found.map((i) => (
                <li key={`${i.device}\n${i.begin}`} data-incident={i.codes[0]}>
                  <Time at={i.begin} />
                  <a href={placeLink({ cluster: node.cluster, device: i.device })}>{nameOf(boards, i.device)}</a>
                  <span>
                    XID{gap}
                    {safe(i.codes[0]!)}
                    {i.codes.length > 1 && `, with ${i.codes.slice(1).map(safe).join(", ")}`}
                    {i.times > 1 && <span class="quiet"> {plural(i.times, "error")}</span>}
                  </span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </>
  );
}
