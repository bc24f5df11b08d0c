import type { Grafana, ServiceName, WindowName } from "./api/types";

/**
 * The link into Grafana, or null where none is to be shown: no URL is configured,
 * or it is not one that a browser should open.
 */
export function grafanaLink(grafana: Grafana | null, name: ServiceName, window: WindowName): string | null {
  if (!grafana || !/^https?:\/\//i.test(grafana.dashboard_url)) return null;
  const query = new URLSearchParams();
  for (const variable of grafana.variables) {
    if (!/^[A-Za-z0-9_]+$/.test(variable.name)) continue;
    const value = { cluster: name.cluster, namespace: name.namespace, service: name.service }[variable.value];
    if (value) query.set(`var-${variable.name}`, value);
  }
  query.set("from", `now-${window}`);
  query.set("to", "now");
  return `${grafana.dashboard_url.replace(/\/+$/, "")}?${query}`;
}
