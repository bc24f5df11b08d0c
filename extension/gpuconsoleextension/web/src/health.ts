import type { Device, GpuEvent, GpuNode, Health, HealthCounts, HealthState } from "./api/types";
import { count, plural, safe } from "./format";
import type { Tone } from "./parts/notices";

/** Each state has a word and a sign of its own kind: colour alone says nothing. */
const states: Record<HealthState, { word: string; tone: Tone }> = {
  ok: { word: "ok", tone: "good" },
  degraded: { word: "degraded", tone: "warn" },
  predicted_failure: { word: "predicted failure", tone: "warn" },
  failed: { word: "failed", tone: "bad" },
  unknown: { word: "unknown", tone: "calm" },
};

/** A state of a later version is not known here. */
export const stateOf = (state: HealthState) => states[state] ?? states.unknown;

/** The health in a few words: how much was looked at belongs to it. "ok, 5 of 11 checks" */
export function inWords({ state, coverage }: Health): string {
  const word = stateOf(state).word;
  return coverage ? `${word}, ${count(coverage.with_data)} of ${plural(coverage.applicable, "check")}` : word;
}

const capitals: Record<string, string> = { gpu: "GPU", vm: "VM", rma: "RMA", p2p: "P2P", xid: "XID", ecc: "ECC", sram: "SRAM", pcie: "PCIe", nvlink: "NVLink", dcgm: "DCGM" };

/** A word of a closed list as people write it: "reset GPU" for reset_gpu. */
export const spelled = (word: string): string =>
  safe(word)
    .split("_")
    .map((part) => capitals[part] ?? part)
    .join(" ");

/** What the title of a state explains. */
export function explained(health: Health): string {
  const last = health.state === "unknown" ? "last known: " : "";
  const reasons = health.reasons.map((r) => `${last}${spelled(r.name)}: ${safe(r.text)}`);
  if (health.state === "unknown" && !reasons.length) return health.watched_since ? "Nothing fresh is known of its health" : "gpu_events reports nothing of its health";
  return reasons.join("\n");
}

/** Boards that are not well, as "2 of 8 GPUs degraded", the worst first; what is not known is named too. */
export function unwell(counts: HealthCounts): { text: string; tone: Tone }[] {
  if (!counts) return [];
  const all = plural(counts.ok + counts.degraded + counts.predicted_failure + counts.failed + counts.unknown, "GPU");
  const parts: [number, string, Tone][] = [
    [counts.failed, "failed", "bad"],
    [counts.predicted_failure, "predicted to fail", "warn"],
    [counts.degraded, "degraded", "warn"],
    [counts.unknown, "of unknown health", "info"],
  ];
  return parts.filter(([n]) => n > 0).map(([n, word, tone]) => ({ text: `${count(n)} of ${all} ${word}`, tone }));
}

/** How many boards are known not to be well. */
export const notWell = (counts: NonNullable<HealthCounts>): number => counts.degraded + counts.predicted_failure + counts.failed;

/** XIDs of one device with no longer silence between them. */
export interface Incident {
  device: string;
  begin: string;
  end: string;
  /** The first one names it, the others may be its consequences. */
  codes: string[];
  times: number;
}

const burst = 180_000;

/** The incidents of the last day, the newest first, of events about XIDs. */
export function incidents(events: readonly GpuEvent[], devices: ReadonlySet<string>, now: number): Incident[] {
  const all: Incident[] = [];
  const open = new Map<string, Incident>();
  const oldest = [...events].filter((e) => e.name === "gpu.xid" && e.subject.device !== null && devices.has(e.subject.device) && now - Date.parse(e.time) < 86_400_000).sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
  for (const e of oldest) {
    const device = e.subject.device!;
    const code = String(e.attributes["gpu.xid.code"] ?? "?");
    const times = Number(e.attributes["gpu.event.occurrences"] ?? 1) || 1;
    const last = open.get(device);
    if (last && Date.parse(e.time) - Date.parse(last.end) <= burst) {
      last.end = e.time;
      last.times += times;
      if (!last.codes.includes(code)) last.codes.push(code);
      continue;
    }
    const next = { device, begin: e.time, end: e.time, codes: [code], times };
    open.set(device, next);
    all.push(next);
  }
  return all.reverse();
}

/** The health that a device shows: that of its board. */
export const healthOf = (d: Device, node: GpuNode): Health | null => d.health ?? node.devices.find((p) => d.parent !== null && (p.id === d.parent || d.id.startsWith(`${p.id}/`)) && p.health !== null)?.health ?? null;
