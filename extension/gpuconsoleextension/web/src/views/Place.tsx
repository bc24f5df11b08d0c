import { api } from "../api/client";
import type { GpuNode, Status, Where, WindowName } from "../api/types";
import { gap, safe } from "../format";
import { usePoll } from "../poll";
import { nodesLink, placeLink, replace } from "../router";
import { useTitle } from "../parts/announce";
import { Skeleton } from "../parts/Figure";
import { Failure, Panel } from "../parts/notices";
import { Age, Name } from "../parts/values";
import { deviceName, DeviceCharts } from "./Charts";
import { DeviceTable } from "./Devices";
import { HealthSection } from "./Health";
import { NodeTags } from "./Nodes";
import { shortModel } from "./Pods";

/** A node, or one device with its instances: what it does now, and did. */
export function Place({ where, status, window }: { where: Where; status: Status; window: WindowName }) {
  const poll = usePoll((signal) => api.nodes(where, signal), status.config.refresh * 1000, []);
  const known = poll.known.value;
  const node = known.data?.nodes[0];
  const shown: GpuNode | undefined = node && where.device ? { ...node, devices: node.devices.filter((d) => d.id === where.device || d.parent === where.device) } : node;
  const device = where.device ? shown?.devices.find((d) => d.id === where.device) : undefined;
  const title = device ? deviceName(device) : (where.node ?? "Device");
  useTitle(node && device ? `${title} · ${safe(node.node)}` : safe(title));
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={nodesLink()}>Nodes</a>
        {node && device && (
          <>
            <span aria-hidden="true">/</span>
            <a href={placeLink({ cluster: node.cluster, node: node.node })}>
              <Name>{node.node}</Name>
            </a>
          </>
        )}
      </nav>
      <div class="head-line">
        <h1>
          <Name>{title}</Name>
        </h1>
        {node && !device && (
          <span class="tags">
            <NodeTags node={node} />
          </span>
        )}
        {device && (
          <span class="quiet">
            {shortModel(device)}
            {gap}·{gap}
            <code>{safe(device.id)}</code>
          </span>
        )}
        <span class="spread" />
        {known.data && shown && (
          <span class="quiet">
            {(device ?? shown).data_age !== null && "data "}
            <Age
              age={(device ?? shown).data_age}
              stale={(device ?? shown).stale}
              staleAfter={known.data.freshness.stale_after}
              receivedAt={known.receivedAt}
              time={(device ?? shown).data_time}
              suffix=" old"
            />
          </span>
        )}
      </div>
      <Failure known={known} refresh={poll.refresh} />
      {!known.data && !known.error && <Skeleton rows={5} />}
      {known.data && !shown && (
        <Panel tone="info" title={`Nothing is known of this ${where.device ? "device" : "node"}`} state="not_found">
          <p>No telemetry names it any more, or it has another name or cluster.</p>
          <p>
            <a href={nodesLink()}>All nodes</a>
          </p>
        </Panel>
      )}
      {known.data && shown && (
        <>
          <HealthSection node={shown} devices={node!.devices} board={device} status={status} />
          {shown.devices.length > 0 && <DeviceCharts where={where} status={status} window={window} change={(to) => replace(placeLink(where, to))} />}
          <section class="pods" aria-label="Devices">
            <div class="toolbar">
              <h2>{where.device ? "Now" : "Devices"}</h2>
            </div>
            <DeviceTable node={shown} receivedAt={known.receivedAt} staleAfter={known.data.freshness.stale_after} />
          </section>
        </>
      )}
    </>
  );
}
