import type { ComponentChildren } from "preact";
import type { CostAnswer, CostLine } from "../api/types";
import { type Grouping, groupingNames, named, ofBoards } from "../cost";
import { text, type Unit } from "../format";
import { type CostRoute, costLink, serviceLink } from "../router";
import { Tag } from "../parts/notices";
import { type Column, Row, Table } from "../parts/table";
import { Meter, Name, Value } from "../parts/values";

/** Joules of every basis; null where none were measured. */
export function energyOf({ energy: e }: CostLine): number | null {
  return e && e.board + e.share + e.integrated;
}

const stateNames: Record<string, string> = {
  held: "held",
  free: "Free",
  stranded: "Stranded",
  unavailable: "Unavailable",
  unknown: "Unknown",
};

const stateHints: Record<string, string> = {
  free: "allocatable, and nothing held it",
  stranded: "part of a board that no MIG instance covers: nothing can hold it",
  unavailable: "not held, and the node is cordoned, its MIG instances are changing, or the device is not listed",
  unknown: "data was missing: it is charged to no owner",
};

/** Groups, then what nothing held, then the fleet: the sum of all. */
export function CostTable({ data, by, owners, at, outdated, grow }: { data: CostAnswer; by: Grouping; /** Whether it is of some owners alone. */ owners: boolean; at: CostRoute; outdated: boolean; grow: () => void }) {
  const boards = ofBoards(by) && !owners;
  const money: Unit | null = data.currency ? `money:${data.currency}` : null;
  const carbon = [...data.lines, ...data.states].some((l) => l.carbon !== null);
  const columns: Column[] = [
    { name: groupingNames[by], head: true },
    ...(boards ? [{ name: "State" }] : []),
    { name: "GPU hours", title: "Of a whole GPU: a half for two hours is one", number: true },
    { name: "Used", title: "Of the held time: utilization times time" },
    { name: "Idle", title: "Hours held and hardly used for long", number: true },
    ...(money ? [{ name: "Cost", number: true }, { name: "Idle cost", number: true }] : []),
    ...(money && data.share_unheld ? [{ name: "Spread", title: "What is added of the cost of what nothing held", number: true }] : []),
    { name: "Energy", title: "Of GPU boards alone", number: true },
    ...(carbon ? [{ name: "Carbon", title: "CO₂e: energy times PUE times the intensity of the region", number: true }] : []),
    { name: "Note", class: "wide" },
  ];
  const cells = (line: CostLine, head: ComponentChildren): ComponentChildren[] => [
    head,
    ...(boards ? [line.state === null ? "" : (stateNames[line.state] ?? line.state).toLowerCase()] : []),
    <Value value={line.time / 3600} unit="h" title={`${line.time} s`} />,
    <Used line={line} />,
    <Value value={line.idle === null ? null : line.idle / 3600} unit="h" title={line.idle === null ? why(line, "no utilization was measured") : undefined} />,
    ...(money ? [<Money line={line} unit={money} />, <Value value={owned(line) ? line.idle_cost : null} unit={money} title={!owned(line) || line.idle_cost === null ? why(line, unpriced(line)) : undefined} />] : []),
    ...(money && data.share_unheld ? [<Value value={line.shared_cost} unit={money} title={line.shared_cost === null ? "nothing is spread" : undefined} />] : []),
    <Value value={energyOf(line)} unit="J" title={energyOf(line) === null ? "no energy was reported" : undefined} />,
    ...(carbon ? [<Value value={line.carbon} unit="g" title={line.carbon !== null ? undefined : energyOf(line) ? "the carbon intensity of a part is not known" : "there is no energy"} />] : []),
    <Notes line={line} money={money !== null} />,
  ];
  const groups = boards ? data.lines : data.lines.filter((l) => l.state === "held");
  return (
    <section class={outdated ? "pods outdated" : "pods"} aria-label="By group">
      <div class="toolbar">
        <h2>By {groupingNames[by].toLowerCase()}</h2>
        <p class="quiet" role="status">
          {data.currency ? "the greatest cost first" : "the greatest time first"}
        </p>
      </div>
      <Table caption={`GPU time and cost by ${groupingNames[by].toLowerCase()}`} columns={columns} class="cost-table">
        {groups.map((line) => (
          <Row key={`${line.state}\n${JSON.stringify(line.group)}`} columns={columns} data={named(line, by).name ?? ""} cells={cells(line, <Head line={line} by={by} at={at} />)} />
        ))}
        {!data.next && !boards && !owners &&
          data.states
            .filter((s) => s.state !== "held")
            .map((line) => (
              <Row
                key={line.state}
                columns={columns}
                class="unowned"
                data={`state ${line.state}`}
                cells={cells(
                  line,
                  <>
                    {stateNames[line.state ?? ""] ?? line.state}
                    <span class="under">{stateHints[line.state ?? ""]}</span>
                  </>,
                )}
              />
            ))}
        {!data.next && <Row columns={columns} class="total" data="fleet" cells={cells(data.total, owners ? "Sum" : "Fleet")} />}
      </Table>
      {data.next && (
        <p class="more">
          <span>The first {groups.length}</span>
          <button type="button" class="button" onClick={grow}>
            Show more
          </button>
        </p>
      )}
    </section>
  );
}

/** Why a value is not there that only held time can have. */
const why = (line: CostLine, otherwise: string): string => (owned(line) ? otherwise : "nothing held it");

/** Whether it is of owners, or of them too. */
const owned = (line: CostLine): boolean => line.state === "held" || line.state === null;

const unpriced = (line: CostLine): string => `no price for ${text(line.unpriced / 3600, "h")} of it`;

/** The name of a group, which leads to what it consists of. */
function Head({ line, by, at }: { line: CostLine; by: Grouping; at: CostRoute }) {
  const { name, under, ...unnamed } = named(line, by);
  const why = line.time > 0 ? unnamed.why : "nothing was in this state";
  if (line.others) return <>Others</>;
  const g = line.group;
  const link =
    name === null ? null
    : by === "tenant" ? costLink({ ...at, by: "service", tenant: name })
    : by === "namespace" ? costLink({ ...at, by: "service", namespace: name, cluster: g.cluster ?? "", slurm_cluster: g.slurm_cluster ?? "" })
    : by === "service" && g.namespace ? serviceLink({ cluster: g.cluster || null, slurm_cluster: g.slurm_cluster, namespace: g.namespace, service: name })
    : null;
  const shown =
    name === null ? (
      <span class="none" title={why}>
        <span aria-hidden="true">—</span>
        <span class="vh">{why}</span>
      </span>
    ) : (
      <Name>{name}</Name>
    );
  return (
    <>
      {link ? <a href={link}>{shown}</a> : shown}
      {under.length > 0 && (
        <span class="under">
          {under.map((u, i) => (
            <span key={i}>
              {i > 0 && <span aria-hidden="true"> · </span>}
              <Name>{u}</Name>
            </span>
          ))}
        </span>
      )}
    </>
  );
}

/** How much of the held time was used, of that which was measured. Where a part was not, there is no bar. */
function Used({ line }: { line: CostLine }) {
  const unmeasured = line.unmeasured ?? 0;
  const measured = line.time - unmeasured;
  const part = line.used === null || line.state !== "held" || measured <= 0 ? null : line.used / measured;
  return (
    <Meter ratio={unmeasured ? null : part}>
      <Value value={line.used === null ? null : line.used / 3600} unit="h" title={line.used === null ? why(line, "no utilization was measured") : undefined} />
      {part !== null && <span class="of"> · {text(part, "1")}</span>}
      {unmeasured > 0 && line.used !== null && <span class="partly">{text(unmeasured / 3600, "h")} not measured</span>}
    </Meter>
  );
}

/** Money of all the time; where a part has no price, that of the rest. */
function Money({ line, unit }: { line: CostLine; unit: Unit }) {
  if (line.cost !== null) return <Value value={line.cost} unit={unit} />;
  return (
    <>
      <Value value={null} unit={unit} title={unpriced(line)} />
      {line.priced_cost !== null && <span class="partly">{text(line.priced_cost, unit)} of a part</span>}
    </>
  );
}

/** What a reader of the row has to know. That hours are open or unknown is so of all rows: the last one has it. */
function Notes({ line, money }: { line: CostLine; money: boolean }) {
  const marked = (money && line.unpriced > 0) || line.contested || line.unplaced > 0 || line.board_metered || line.estimated || (line.state === null && (line.open || line.unknown_hours));
  if (!marked) return null;
  return (
    <span class="tags">
      {money && line.unpriced > 0 && <Tag tone="warn" title={unpriced(line)}>no price{line.unpriced < line.time ? " for a part" : ""}</Tag>}
      {line.state === null && line.unknown_hours && <Tag tone="warn" title="In an hour of it more than 1 % of the fleet’s time is unknown">unknown hours</Tag>}
      {line.contested && <Tag tone="warn" title="Several owners held the same device: each has a part of it">contested</Tag>}
      {line.unplaced > 0 && <Tag tone="warn" title={`${text(line.unplaced / 3600, "h")} on boards that are not known, which no row contains`}>unplaced</Tag>}
      {line.state === null && line.open && <Tag tone="info" title="An hour of it is still open: its amounts grow">open</Tag>}
      {line.board_metered && <Tag tone="info" title="Used is by the utilization of the whole board, which others share">board</Tag>}
      {line.estimated && <Tag tone="info" title="Its share of a board, or its energy, is an estimate">estimate</Tag>}
    </span>
  );
}
