import type { ApiError } from "./api/client";
import type { Attention, PodCounts, Reason, Service, Status } from "./api/types";
import type { Known } from "./poll";

/**
 * In which state the page is. A to F are the states of the whole and of a service
 * that the console must tell apart:
 * A not enabled, B no GPU services, C warming up, D scraper down, E partial, F store unreachable.
 */
export type Letter = "A" | "B" | "C" | "D" | "E" | "F";

export type Screen =
  | { kind: "loading" }
  | { kind: "state"; letter: "A" | "B" | "C" | "D" | "F"; status: Status }
  /** The console's own server does not answer, and nothing was ever heard of it. */
  | { kind: "offline"; error: ApiError }
  | { kind: "ready"; status: Status };

const letters = {
  not_enabled: "A",
  no_services: "B",
  warming_up: "C",
  scraper_down: "D",
  store_unreachable: "F",
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
