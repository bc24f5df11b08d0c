import type { Reason } from "./api/types";
import type { Tone } from "./parts/notices";

const tones: Record<Reason["severity"], Tone> = { error: "bad", warn: "warn", info: "info" };
export const toneOf = (severity: Reason["severity"]): Tone => tones[severity] ?? "info";

/** Whether any of them needs attention; what is worth knowing alone does not. */
export const pressing = (reasons: readonly Reason[]): boolean => reasons.some((r) => r.severity !== "info");

/** Reasons of one label are one tag. */
export interface Grouped {
  reason: Reason;
  times: number;
  texts: string[];
}

export function grouped(reasons: readonly Reason[]): Grouped[] {
  const groups = new Map<string, Grouped>();
  for (const reason of reasons) {
    const found = groups.get(reason.label);
    if (!found) groups.set(reason.label, { reason, times: 1, texts: [reason.text] });
    else {
      found.times++;
      found.texts.push(reason.text);
    }
  }
  return [...groups.values()];
}

/**
 * What is wrong in the fleet and stands in no row of a service: nodes and devices
 * that no service owns. Exporters and endpoints have banners of their own.
 */
export const elsewhere = (reasons: readonly Reason[]): Reason[] => reasons.filter((r) => r.subject.service === null && (r.subject.node !== null || r.subject.device !== null) && !r.kind.startsWith("exporter_"));
