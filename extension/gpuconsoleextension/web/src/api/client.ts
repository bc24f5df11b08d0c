import { token } from "../session";
import type { AcknowledgeAnswer, Capacity, CostAnswer, DeviceRange, Events, Nodes, Pods, Range, ServiceAnswer, ServiceName, Services, Status, Where, WindowName } from "./types";

/** Why a request has no answer. reason is the API's word, or one of ours. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    readonly reason: string,
    readonly detail: string,
    /** Seconds after which the server wants to be asked again; null if it does not say. */
    readonly retryAfter: number | null,
  ) {
    super(message);
  }
}

/** Longest that a request may take, milliseconds: above the server's own limit. */
const timeout = 45_000;

type Parameters = Record<string, string | number | boolean | null | undefined>;

/** The address of an endpoint, relative to the page: it may live under a prefix. */
export function url(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return `./api/v1/${path}${text ? `?${text}` : ""}`;
}

/** Seconds of a Retry-After header, which is a number or a date; null if it is neither. */
export function retryAfter(header: string | null, now: number): number | null {
  if (!header) return null;
  if (/^\d+$/.test(header.trim())) return Math.min(Number(header), 600);
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(Math.max(0, Math.ceil((at - now) / 1000)), 600);
}

async function failure(response: Response): Promise<ApiError> {
  const after = retryAfter(response.headers.get("Retry-After"), Date.now());
  try {
    const body = (await response.json()) as { error?: unknown; reason?: unknown; detail?: unknown };
    if (typeof body.error === "string") {
      return new ApiError(body.error, response.status, String(body.reason ?? ""), String(body.detail ?? ""), after);
    }
  } catch {
    // Not the API's own answer: a proxy stands in between.
  }
  return new ApiError(`The server answered ${response.status}.`, response.status, "unexpected", "What answers is not the console's API; a proxy may stand in between.", after);
}

const get = <T>(path: string, parameters: Parameters, signal: AbortSignal): Promise<T> => ask(url(path, parameters), {}, signal);

const post = <T>(path: string, body: unknown, signal: AbortSignal): Promise<T> =>
  ask(url(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }, signal);

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** A response that is no failure. */
async function respond(address: string, request: Asked, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  let response: Response;
  try {
    response = await fetch(address, {
      ...request,
      headers,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
      cache: "no-store",
      credentials: "same-origin",
    });
  } catch (error) {
    if (signal.aborted) throw error;
    const slow = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(
      slow ? "The console's server does not answer in time." : "The console's server cannot be reached.",
      0,
      slow ? "timeout" : "offline",
      "It may be restarting, or the network in between is gone.",
      null,
    );
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function ask<T>(address: string, request: Asked, signal: AbortSignal): Promise<T> {
  const response = await respond(address, request, signal);
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("The server's answer is not JSON.", response.status, "unexpected", "A proxy may stand in between.", null);
  }
}

export interface CostQuery {
  by: string;
  since?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  step?: string;
  top?: number;
  share_unheld?: string | undefined;
  tenant?: string;
  namespace?: string;
  slurm_cluster?: string;
  cluster?: string;
  limit?: number;
  cursor?: string | null;
}

const identity = (name: ServiceName): Parameters => ({ cluster: name.cluster, slurm_cluster: name.slurm_cluster, namespace: name.namespace, service: name.service });

export const api = {
  status: (signal: AbortSignal) => get<Status>("status", {}, signal),
  services: (p: { q?: string; limit?: number; cursor?: string | null; trend?: boolean; window?: WindowName }, signal: AbortSignal) => get<Services>("services", p, signal),
  service: (name: ServiceName, signal: AbortSignal) => get<ServiceAnswer>("service", identity(name), signal),
  pods: (name: ServiceName, p: { limit?: number; cursor?: string | null }, signal: AbortSignal) => get<Pods>("pods", { ...identity(name), ...p }, signal),
  nodes: (p: { q?: string; limit?: number; cursor?: string | null; attention?: boolean } | Where, signal: AbortSignal) => get<Nodes>("nodes", { ...p }, signal),
  deviceRange: (where: Where, window: WindowName, signal: AbortSignal) => get<DeviceRange>("device_range", { ...where, window }, signal),
  range: (name: ServiceName, window: WindowName, by: "service" | "pod", signal: AbortSignal) =>
    get<Range>("range", { ...identity(name), window, by }, signal),
  events: (p: { limit?: number; cursor?: string | null; name?: string; min_severity?: string; q?: string; active?: boolean; cluster?: string | null; namespace?: string; service?: string }, signal: AbortSignal) =>
    get<Events>("events", p, signal),
  capacity: (p: { size: string; show?: string; q?: string; limit?: number; cursor?: string | null }, signal: AbortSignal) => get<Capacity>("capacity", p, signal),
  cost: (p: CostQuery, signal: AbortSignal) => get<CostAnswer>("cost", { ...p }, signal),
  /** The same as a file. It is no link, for the token is no part of an address. */
  costFile: async (p: CostQuery, format: "csv", signal: AbortSignal): Promise<Blob> => (await respond(url("cost", { ...p, format }), { headers: { Accept: "text/csv" } }, signal)).blob(),
  acknowledge: (id: string, signal: AbortSignal) => post<AcknowledgeAnswer>("acknowledge", { event_id: id }, signal),
};
