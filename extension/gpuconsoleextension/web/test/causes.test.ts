import { expect, test, vi } from "vitest";
import type { Pod, Reason, Service } from "../src/api/types";

vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("addEventListener", () => {});
const { likelyCauses } = await import("../src/causes");

const reason = (kind: string, text: string, subject: Partial<Reason["subject"]>) => ({ kind, text, subject: { node: null, device: null, ...subject } }) as Reason;
const pod = (state: Pod["state"], node: string | null, exporter: Pod["exporter"] = "up", devices: string[] = []) => ({ state, node, exporter, devices: devices.map((id) => ({ id, parent: null })) }) as unknown as Pod;
const service = (reasons: Reason[], off = 0) => ({ cluster: "c1", reasons, pods: { not_running: off } }) as unknown as Service;
const xid = reason("xid", "GPU 6 of n-2 reported XID 79.", { node: "n-2", device: "GPU-6" });
const down = reason("exporter_down", "The exporter of node n-1 does not answer.", { node: "n-1" });

test.each<[string, Service, Pod[], (Reason | [string, string | null])[]]>([
  ["nothing is missing", service([down, xid], 2), [pod("reporting", "n-1"), pod("reporting", "n-2", "up", ["GPU-6"])], []],
  ["an exporter is down, once for all its pods", service([down]), [pod("missing", "n-1", "down"), pod("missing", "n-1", "down")], [down]],
  ["an XID on its device", service([xid, down]), [pod("degraded", "n-2", "up", ["GPU-6"])], [xid]],
  ["an XID on another pod's device is none", service([xid]), [pod("missing", "n-2", "up", ["GPU-5"]), pod("reporting", "n-2", "up", ["GPU-6"])], []],
  ["heat does not silence", service([reason("temperature", "hot", { node: "n-1" })]), [pod("missing", "n-1")], []],
  ["an exporter that stands still and that no reason names", service([]), [pod("missing", "n-3", "frozen")], [["The exporter of node n-3 answers with values that stand still.", "#/node?cluster=c1&node=n-3"]]],
  ["an exporter with unknown fields", service([]), [pod("missing", "n-3", "unrecognized")], [["The exporter of node n-3 answers with fields that are not known.", "#/node?cluster=c1&node=n-3"]]],
  ["nowhere", service([], 1), [pod("missing", null)], [["No telemetry names the node of 1\u00a0pod: it may have ended, or use no GPU.", null], ["1\u00a0pod of the service is not running.", null]]],
])("%s", (_, given, pods, expected) => {
  const { reasons, hints } = likelyCauses(given, pods);
  expect([...reasons, ...hints.map((h) => [h.text, h.link])]).toEqual(expected);
});
