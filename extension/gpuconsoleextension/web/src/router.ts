import { computed, signal } from "@preact/signals";
import type { ServiceName, Where } from "./api/types";

/**
 * Where the reader is. Addresses stand in the fragment, so that they need nothing
 * of the server and work under any prefix; names are parameters, because they may
 * hold slashes: #/service?cluster=c1&namespace=ml&service=chat&window=1h
 */
export type Route =
  | { view: "fleet"; q: string }
  | { view: "nodes"; q: string; node: string; attention: boolean }
  | { view: "place"; where: Where; window: string | null }
  | { view: "service"; name: ServiceName; window: string | null; by: "service" | "pod" }
  | { view: "events"; severity: string; q: string; active: boolean; name: ServiceName | null; event: string }
  | { view: "cost"; cost: CostRoute }
  | { view: "capacity"; capacity: CapacityRoute }
  | { view: "unknown"; path: string };

/** What the page of capacity shows: a request of how many devices, and which nodes. */
export interface CapacityRoute {
  size: string;
  show: string;
  q: string;
}

/** What the page of cost shows; by, range, step and what fall back to the first of their choices. */
export interface CostRoute {
  by: string;
  range: string;
  step: string;
  what: string;
  shared: boolean;
  tenant: string;
  namespace: string;
  slurm_cluster: string;
  cluster: string;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#/, ""));
  const p = new URLSearchParams(query);
  const text = (name: string) => p.get(name) ?? "";
  switch (path.replace(/\/+$/, "")) {
    case "":
      return { view: "fleet", q: text("q") };
    case "/nodes":
      return { view: "nodes", q: text("q"), node: text("node"), attention: text("attention") === "true" };
    case "/node":
      return text("node") ? { view: "place", where: { cluster: p.get("cluster") || null, node: text("node") }, window: p.get("window") } : { view: "unknown", path };
    case "/device":
      return text("device") ? { view: "place", where: { cluster: p.get("cluster") || null, device: text("device") }, window: p.get("window") } : { view: "unknown", path };
    case "/service":
      if (!text("namespace") || !text("service")) return { view: "unknown", path };
      return { view: "service", name: serviceName(p), window: p.get("window"), by: text("by") === "pod" ? "pod" : "service" };
    case "/events":
      return { view: "events", severity: text("min_severity"), q: text("q"), active: text("active") === "true", name: text("namespace") && text("service") ? serviceName(p) : null, event: text("event") };
    case "/capacity":
      return { view: "capacity", capacity: { size: text("size"), show: text("show"), q: text("q") } };
    case "/cost":
      return {
        view: "cost",
        cost: { by: text("by"), range: text("range"), step: text("step"), what: text("what"), shared: text("shared") === "true", tenant: text("tenant"), namespace: text("namespace"), slurm_cluster: text("slurm_cluster"), cluster: text("cluster") },
      };
    default:
      return { view: "unknown", path };
  }
}

function split(text: string): [string, string] {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

const serviceName = (p: URLSearchParams): ServiceName => ({
  cluster: p.get("cluster") || null,
  ...(p.get("slurm_cluster") ? { slurm_cluster: p.get("slurm_cluster")! } : {}),
  namespace: p.get("namespace") ?? "",
  service: p.get("service") ?? "",
});

function address(path: string, parameters: Record<string, string | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export const fleetLink = (q = ""): string => address("/", { q });
export const nodesLink = (p: { q?: string; node?: string; attention?: boolean } = {}): string => address("/nodes", { q: p.q, node: p.node, attention: p.attention ? "true" : null });
/** A node's page, or that of one device. */
export const placeLink = (w: Where, window?: string | null): string => (w.device ? address("/device", { cluster: w.cluster, device: w.device, window }) : address("/node", { cluster: w.cluster, node: w.node, window }));
export const serviceLink = (name: ServiceName, p: { window?: string | null; by?: string } = {}): string =>
  address("/service", { cluster: name.cluster, slurm_cluster: name.slurm_cluster, namespace: name.namespace, service: name.service, window: p.window, by: p.by === "pod" ? "pod" : undefined });
export const eventsLink = (p: { min_severity?: string; q?: string; active?: boolean; name?: ServiceName | null; event?: string | null } = {}): string =>
  address("/events", { min_severity: p.min_severity, q: p.q, active: p.active ? "true" : null, ...(p.name ?? {}), event: p.event });
export const capacityLink = (p: Partial<CapacityRoute> = {}): string => address("/capacity", { ...p });
export const costLink = (p: Partial<CostRoute> = {}): string => address("/cost", { ...p, shared: p.shared ? "true" : null });

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed(() => parse(hash.value));

/** Replaces the address without a step in the history, as for a filter being typed. */
export function replace(link: string): void {
  history.replaceState(null, "", link);
  hash.value = location.hash;
}
