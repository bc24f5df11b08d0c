import type { Device, GpuNode, Holder, Reason } from "../api/types";
import { gap, gpuName, plural, safe, text, times } from "../format";
import { placeLink, serviceLink } from "../router";
import { Tag, type Tone } from "../parts/notices";
import { HealthTag } from "../parts/health";
import { ReasonTags } from "../parts/reasons";
import { healthOf } from "../health";
import { Straggler } from "./Health";
import { pressing, toneOf } from "../reasons";
import { type Column, Row, Table } from "../parts/table";
import { Age, Memory, Meter, Name, Utilization, Value } from "../parts/values";
import { isPart, shortModel } from "./Pods";

const columns: readonly Column[] = [
  { name: "Device", head: true },
  { name: "State", class: "wide" },
  { name: "Health", title: "That of its board, and how many checks of it have data" },
  { name: "Held by" },
  { name: "Utilization" },
  { name: "Memory" },
  { name: "Power", title: "Of the limit, where that is known" },
  { name: "Temperature", title: "Chip, and memory where it has a sensor", number: true },
  { name: "Errors", title: "XID and uncorrected ECC errors of the last 24 hours" },
  { name: "Data age", number: true },
];

export function DeviceTable({ node, receivedAt, staleAfter }: { node: GpuNode; receivedAt: number; staleAfter: number }) {
  if (!node.devices.length) return <p class="empty">No device of this node has been seen.</p>;
  return (
    <Table caption={`Devices of ${safe(node.node)}`} columns={columns} class="device-table">
      {node.devices.map((d) => (
        <Row
          key={d.id}
          columns={columns}
          data={d.id}
          class={[d.parent ? "instance" : "", `device-${d.state}`, d.stale ? "is-stale" : ""].join(" ").trim()}
          cells={[
            <DeviceName device={d} cluster={node.cluster} instances={node.devices.filter((i) => i.parent === d.id)} />,
            <State device={d} />,
            <HealthTag health={healthOf(d, node)} />,
            <Holders holders={d.holders} cluster={node.cluster} device={d} />,
            <Utilization ratio={d.values.utilization} />,
            <Memory used={d.values.memory_used} total={d.values.memory_total} />,
            <Power device={d} />,
            <Temperature device={d} />,
            <Errors device={d} />,
            <Age age={d.data_age} stale={d.stale} staleAfter={staleAfter} receivedAt={receivedAt} time={d.data_time} />,
          ]}
        />
      ))}
    </Table>
  );
}

function DeviceName({ device: d, cluster, instances }: { device: Device; cluster: string | null; instances: readonly Device[] }) {
  const parts = instances.filter(isPart).length;
  const part = d.partition_profile !== null ? "partition" : "tile";
  const name = isPart(d) ? `${part}${gap}${safe(d.partition!)}` : d.parent ? (d.mig_profile ? `MIG ${safe(d.mig_profile)}` : "share") : gpuName(d);
  const layout = new Map<string, number>();
  for (const i of instances) if (i.mig_profile) layout.set(i.mig_profile, (layout.get(i.mig_profile) ?? 0) + 1);
  const under = d.parent
    ? d.mig_instance !== null
      ? `instance ${safe(d.mig_instance)}`
      : isPart(d)
        ? safe(d.partition_profile ?? "")
        : ""
    : layout.size
      ? `${shortModel(d)}; MIG ${[...layout].map(([p, n]) => `${n}${gap}×${gap}${safe(p)}`).join(", ")}`
      : [shortModel(d), parts > 0 && plural(parts, part), d.partition_profile && safe(d.partition_profile)].filter(Boolean).join("; ");
  return (
    <>
      <a class="device-name" title={safe(d.id)} href={placeLink({ cluster, device: d.id })}>
        {name}
      </a>
      <span class="under">{under}</span>
    </>
  );
}

/** What other columns of the row show. */
const elsewhere = new Set(["health", "xid", "ecc_uncorrected", "temperature", "memory_temperature"]);
/** Reasons to hold the clocks down that are faults, or that every idle GPU has. */
const faults = new Set(["hw_thermal", "sw_thermal", "hw_power_brake", "hw_slowdown", "gpu_idle"]);

function State({ device: d }: { device: Device }) {
  const limited = d.throttle.filter((r) => !faults.has(r));
  const here = d.reasons.filter((r) => !elsewhere.has(r.kind) && !(r.kind === "device_lost" && d.state === "lost"));
  const tag = {
    lost: <Tag tone="bad" title="It has been seen, and reports nothing although its exporter is up">lost</Tag>,
    split: <Tag tone="calm">{d.partition_profile !== null ? "partitioned" : d.vendor === "Intel" ? "has tiles" : "in MIG mode"}</Tag>,
    idle: <Tag tone="info" title="Held, and hardly used for long">idle-held</Tag>,
    held: <Tag tone={pressing(d.reasons) ? "calm" : "good"}>held</Tag>,
    free: <Tag tone="calm" title="The kubelet reports it as not assigned">free</Tag>,
    unknown: <Tag tone="calm" title="Neither the kubelet nor the exporter names an owner">owner unknown</Tag>,
  }[d.state];
  return (
    <span class="tags">
      {tag}
      <ReasonTags reasons={here} />
      {d.straggler !== null && <Straggler cause={d.straggler} />}
      {limited.length > 0 && (
        <Tag tone="calm" title="Clocks are limited as configured; this is not a fault">
          clocks limited: {limited.map((r) => safe(r).replaceAll("_", " ")).join(", ")}
        </Tag>
      )}
    </span>
  );
}

function Holders({ holders, cluster, device }: { holders: readonly Holder[]; cluster: string | null; device: Device }) {
  if (!holders.length) return <span class="none">{device.state === "split" ? "its instances" : device.state === "free" ? "nobody" : "not known"}</span>;
  const last = device.state === "unknown" || device.state === "lost"; // it may have another one by now
  return (
    <ul class="holders">
      {last && <li class="quiet">last known:</li>}
      {holders.map((h) => (
        <li key={`${h.namespace}\n${h.pod}\n${h.container ?? ""}`}>
          {h.service ? (
            <a href={serviceLink({ cluster, ...(h.job && !h.job.nested && { slurm_cluster: h.job.cluster }), namespace: h.namespace, service: h.service })} title={`service ${safe(h.service)}`}>
              <Name>{unit(h)}</Name>
            </a>
          ) : (
            <Name>{unit(h)}</Name>
          )}
          <span class="under">
            <Name>{h.namespace}</Name>
            {h.share !== null && h.share < 1 && <> · {text(h.share, "1")} of it{h.sharing && h.sharing !== "none" ? `, ${h.sharing.replace("_", "-").toUpperCase() === "MPS" ? "MPS" : h.sharing === "slurm_shared" ? "shared by jobs" : "time-slicing"}` : ""}</>}
            {h.job && <> · {h.job.nested && <>job {safe(h.job.id)}, </>}{h.job.user && <Name>{h.job.user}</Name>}</>}
            {h.source === "exporter_labels" && " · according to the exporter"}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** A pod, or a job, which stands on its node. */
const unit = (h: Holder): string => (h.job && !h.job.nested ? `job ${h.job.id}` : h.pod);

function Power({ device: d }: { device: Device }) {
  const { power } = d.values;
  if (d.power_limit === null || power === null) return <Value value={power} unit="W" />;
  return (
    <Meter ratio={power / d.power_limit} tone="third">
      <Value value={power} unit="W" />
      <span class="of">
        {" / "}
        <Value value={d.power_limit} unit="W" />
      </span>
    </Meter>
  );
}

/** Hot is what gpu_events calls so: a raised gpu.temperature of that sensor. */
function Temperature({ device: d }: { device: Device }) {
  const hot = d.reasons.find((r) => r.kind === "temperature");
  const hotMemory = d.reasons.find((r) => r.kind === "memory_temperature");
  const mark = (reason: Reason | undefined) => reason && <span class="stale-mark" title={safe(reason.text)}> hot</span>;
  return (
    <span class={hot ? "hot" : undefined}>
      <Value value={d.temperature} unit="Cel" />
      {mark(hot)}
      {(d.memory_temperature !== null || hotMemory) && (
        <span class={hotMemory ? "under hot" : "under"}>
          memory <Value value={d.memory_temperature} unit="Cel" />
          {mark(hotMemory)}
        </span>
      )}
    </span>
  );
}

/** Errors of the last day; those that still need attention by how bad they are. */
function Errors({ device: d }: { device: Device }) {
  const of = (kind: Reason["kind"], label?: string) => d.reasons.find((r) => r.kind === kind && (!label || r.label === label));
  const tone = (reason: Reason | undefined): Tone => (reason ? toneOf(reason.severity) : "calm");
  const codes = new Set(d.xid_errors.map((x) => `XID ${x.code}`));
  const others = d.reasons.filter((r) => r.kind === "xid" && !codes.has(r.label)); // known by their events alone
  const ecc = of("ecc_uncorrected");
  if (!d.xid_errors.length && !others.length && !d.uncorrected_errors && !ecc) {
    return d.xid === null && d.uncorrected_errors === null ? <Value value={null} unit="count" /> : <span class="quiet">none{d.xid ? `, last XID ${d.xid}` : ""}</span>;
  }
  return (
    <span class="tags">
      {d.xid_errors.map((x) => {
        const reason = of("xid", `XID ${x.code}`);
        const least = x.lower_bound ? "At least: the same code twice cannot be distinguished from once" : "";
        return (
          <Tag key={x.code} tone={tone(reason)} title={[reason && safe(reason.text), least].filter(Boolean).join("\n") || undefined}>
            XID {safe(x.code)}
            {times(x.count, x.lower_bound)}
          </Tag>
        );
      })}
      <ReasonTags reasons={others} />
      {(!!d.uncorrected_errors || ecc) && (
        <Tag tone={tone(ecc)} title={ecc && safe(ecc.text)}>
          {d.uncorrected_errors ? `${d.uncorrected_errors} ` : ""}ECC uncorrected
        </Tag>
      )}
    </span>
  );
}
