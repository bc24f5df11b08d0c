import type { Pod, Reason, Service } from "./api/types";
import { plural, safe } from "./format";
import { placeLink } from "./router";

/** Reasons that can silence a device. */
const silencing: readonly Reason["kind"][] = ["node_lost", "exporter_down", "exporter_frozen", "exporter_unrecognized", "device_lost", "xid", "ecc_uncorrected", "row_remap_failure"];

/** What an exporter does that is not well. */
const unwell: Partial<Record<Pod["exporter"], string>> = {
  down: "does not answer",
  frozen: "answers with values that stand still",
  unrecognized: "answers with fields that are not known",
};

/** What no reason says of a cause, and where to read on. */
export interface Hint {
  text: string;
  link: string | null;
}

/**
 * Likely causes of what is missing: what else is known of the nodes and devices of
 * just those pods. None is a cause for certain.
 */
export function likelyCauses(service: Service, pods: readonly Pod[]): { reasons: Reason[]; hints: Hint[] } {
  const silent = pods.filter((p) => p.state === "missing" || p.state === "degraded");
  const nodes = new Set(silent.map((p) => p.node));
  const devices = new Set(silent.flatMap((p) => p.devices.flatMap((d) => [d.id, d.parent])));
  const reasons = service.reasons.filter(({ kind, subject: s }) => silencing.includes(kind) && (s.device !== null ? devices.has(s.device) : s.node !== null && nodes.has(s.node)));
  const hints: Hint[] = [];
  // An exporter that no reason names, because which node it is on is not certain.
  const named = new Set(reasons.filter((r) => r.subject.device === null).map((r) => r.subject.node));
  for (const p of silent) {
    const what = unwell[p.exporter];
    if (what && p.node !== null && !named.has(p.node)) {
      named.add(p.node);
      hints.push({ text: `The exporter of node ${safe(p.node)} ${what}.`, link: placeLink({ cluster: service.cluster, node: p.node }) });
    }
  }
  const nowhere = silent.filter((p) => p.node === null).length;
  if (nowhere) hints.push({ text: `No telemetry names the node of ${plural(nowhere, "pod")}: ${nowhere === 1 ? "it" : "they"} may have ended, or use no GPU.`, link: null });
  const off = service.pods.not_running;
  if (off && silent.length) hints.push({ text: `${plural(off, "pod")} of the service ${off === 1 ? "is" : "are"} not running.`, link: null });
  return { reasons, hints };
}
