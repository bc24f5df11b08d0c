import type { ApiError } from "./api/client";
import type { Attention, Coverage, PodCounts, Reason, Service, Status } from "./api/types";
import { count, plural } from "./format";
import type { Known } from "./poll";

/**
 * In which state the page is. A to G are the states of the whole and of a service
 * that the console must tell apart:
 * A not enabled, B no GPU services, C warming up, D scraper down, E partial, F store unreachable,
 * G what arrives cannot be stored.
 */
export type Letter = "A" | "B" | "C" | "D" | "E" | "F" | "G";

export type Screen =
  | { kind: "loading" }
  | { kind: "state"; letter: "A" | "B" | "C" | "D" | "F" | "G"; status: Status }
  /** The console's own server does not answer, and has not answered before. */
  | { kind: "offline"; error: ApiError }
  | { kind: "ready"; status: Status };

const letters = {
  not_enabled: "A",
  no_services: "B",
  warming_up: "C",
  scraper_down: "D",
  store_unreachable: "F",
  not_stored: "G",
} as const;

/** What the whole page shows, from what is known of the status. */
export function screenOf(known: Known<Status>): Screen {
  const status = known.data;
  if (!status) return known.error ? { kind: "offline", error: known.error } : { kind: "loading" };
  const letter = letters[status.state as keyof typeof letters];
  return letter ? { kind: "state", letter, status } : { kind: "ready", status };
}

/** Seconds since the data was measured, as of now: it grows while no answer comes. */
export function ageNow(dataAge: number | null, receivedAt: number, now: number): number | null {
  return dataAge === null ? null : dataAge + Math.max(0, now - receivedAt) / 1000;
}

/** Whether data is too old to be called current: the server said so, or it became so since. */
export function staleNow(stale: boolean, age: number | null, staleAfter: number): boolean {
  return stale || (age !== null && staleAfter > 0 && age > staleAfter);
}

/** What a service's own page says above its numbers. */
export type ServiceState = "ok" | "warming" | "partial" | "no_data" | "not_running" | "unknown";

export function serviceState(service: Service): ServiceState {
  const { pods } = service;
  if (pods.settled === null) return "unknown";
  if (pods.settled > 0) {
    if (pods.missing === pods.settled) return "no_data";
    if (service.partial === null) return "unknown";
    return service.partial ? "partial" : "ok";
  }
  if (service.attention.includes("unknown")) return "unknown";
  if (pods.warming) return "warming";
  return pods.not_running ? "not_running" : "unknown";
}

/** Reasons worth a tag: "partial" says all that "missing_pods" does. */
export function told(service: Service): Reason[] {
  const says = (kind: Attention) => service.reasons.some((r) => r.kind === kind);
  return service.reasons.filter((r) => !(r.kind === "missing_pods" && (says("partial") || says("no_data"))));
}

/** Whether some pods of a service are warming although others are settled. */
export const someWarming = (pods: PodCounts): boolean => !!pods.warming && !!pods.settled;

/** Over how many of the devices a figure is, where that is not all of them: 11 of 18 devices. */
export function partly(c: Coverage): string {
  return c && c.devices > 0 && c.devices < c.of ? `${count(c.devices)} of ${plural(c.of, "device")}` : "";
}

/** What is the matter with exporters, in one line: one that is frozen answers. Empty if all are well. */
export function exportersUnwell(t: Pick<Status["telemetry"], "exporters_up" | "exporters_down" | "exporters_frozen" | "exporters_unrecognized">): string {
  const down = t.exporters_down ?? 0;
  const frozen = t.exporters_frozen ?? 0;
  const unrecognized = t.exporters_unrecognized ?? 0;
  const all = plural(down + frozen + unrecognized + (t.exporters_up ?? 0), "exporter");
  const parts = [];
  if (down) parts.push(`${count(down)} of ${all} ${down === 1 ? "does" : "do"} not answer`);
  if (frozen) parts.push(`${parts.length ? `${count(frozen)}` : `${count(frozen)} of ${all}`} ${frozen === 1 ? "is frozen: it answers" : "are frozen: they answer"} with old values`);
  if (unrecognized) parts.push(`${parts.length ? `${count(unrecognized)}` : `${count(unrecognized)} of ${all}`} ${unrecognized === 1 ? "has" : "have"} fields that are not known`);
  return parts.join(", ");
}

/** The parts of a bar of held devices: busy ones are among those that are held, idle ones are not busy. */
export function heldParts(held: number | null, busy: number | null, idle: number | null): { busy: number | null; rest: number | null } {
  if (held === null || busy === null || idle === null) return { busy, rest: null };
  const working = Math.min(busy, Math.max(0, held - idle));
  return { busy: working, rest: held - idle - working };
}

/** Of the busy devices, those among the ones whose owner is unknown: what is left when all others have their place. */
export function busyUnowned(busy: number | null, owned: number | null, unknown: number | null): number {
  return Math.min(unknown ?? 0, Math.max(0, (busy ?? 0) - (owned ?? 0)));
}

/** What is said where no settled pod reports. */
export const noAverages = (settled: number): string =>
  settled === 1 ? "The only settled pod is missing, so there is no average." : `All ${plural(settled, "settled pod")} are missing, so there are no averages.`;

/** What is said of averages where some settled pods report. */
export const averagesOver = (reporting: number): string =>
  reporting === 1 ? "The averages are over the one pod that reports; the charts go on with it." : `The averages are over the ${plural(reporting, "pod")} that report; the charts go on with those.`;
