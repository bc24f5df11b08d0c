// Events and what became of their webhooks.
import { deviceId, iso } from "./world.mjs";

const none = { cluster: null, namespace: null, service: null, pod: null, node: null, device: null };
const uuid = (n) => `019a9d3c-${String(7000 + n)}-7${String(100 + n).padStart(3, "0")}-8a21-${String(4_000_000 + n * 7919).padStart(12, "0")}`;

const subject = (cluster, namespace, service) => ({ ...none, cluster, namespace, service });

/** Which events are active: the newest of each condition, if raised, and of each notice. */
function marked(list) {
  const seen = new Set();
  return list.map((e) => {
    const newest = !seen.has(e.key);
    seen.add(e.key);
    return { ...e, active: newest && e.state === "raised", acknowledged_at: null };
  });
}

export function events(now) {
  let n = 0;
  const event = (ago, name, state, severity, about, body, attributes = {}, deliveries = []) => {
    const id = uuid(++n);
    const key = [name, about.cluster ?? "", about.namespace, about.service, about.node, about.device].filter((x) => x !== null && x !== undefined).join("/");
    const time = now - ago * 1000;
    return {
      id, name, key, state, notice: name === "gpu.xid" || name === "gpu.ecc.uncorrected", severity, time: iso(time), body, subject: about, attributes,
      deliveries: deliveries.map((d, i) => ({
        id: `${id.slice(0, -2)}${10 + i}`, time: iso(time + (d.after ?? 0.04) * 1000), receiver: d.receiver, url_host: d.host, format: d.format, attempt: d.attempt ?? 1, max_attempts: d.max ?? 1,
        outcome: d.outcome ?? "succeeded", status: d.status === undefined ? 200 : d.status, error_type: d.error ?? null,
        next_attempt: d.next ? iso(time + d.next * 1000) : null, duration: d.duration ?? 0.084, trigger: d.trigger ?? "event",
      })),
    };
  };
  const slack = (over = {}) => ({ receiver: "ops-slack", host: "hooks.slack.com", format: "slack", ...over });
  const pager = (over = {}) => ({ receiver: "pager", host: "events.pagerduty.com", format: "pagerduty", status: 202, duration: 0.21, ...over });
  const billing = (over = {}) => ({ receiver: "billing", host: "billing.example.com", format: "standard", ...over });
  return marked([
    event(42, "gpu.service.partial", "raised", "warn", subject("eu-west-1", "inference", "chat-70b"), "Service chat-70b in namespace inference of cluster eu-west-1 is partial: 2 of 6 settled pods are missing (chat-70b-0, chat-70b-1).",
      { "gpu.service.missing_pods": ["chat-70b-0", "chat-70b-1"], "gpu.service.missing_pod_count": 2, "gpu.service.settled_pod_count": 6, "gpu.service.missing_ratio": 0.3333 },
      [slack(), billing({ outcome: "failed", status: 503, error: "http_5xx", max: 3, next: 2, duration: 0.412 }), billing({ after: 2.1, attempt: 2, max: 3, outcome: "failed", status: 503, error: "http_5xx", next: 34, duration: 0.388 })]),
    event(131, "gpu.service.no_data", "raised", "error", subject("us-east-1", "inference", "speech"), "Service speech in namespace inference of cluster us-east-1 has no data: all 2 settled pods are missing.",
      { "gpu.service.missing_pod_count": 2, "gpu.service.settled_pod_count": 2 }, [slack({ duration: 0.131 }), pager()]),
    event(640, "gpu.node.lost", "raised", "error", { ...none, cluster: "us-east-1", node: "gpu-h200-us-07" }, "Node gpu-h200-us-07 of cluster us-east-1 is silent: 8 devices of 2 services are not heard of.",
      { "gpu.node.devices": 8 }, [slack(), pager({ outcome: "failed", status: null, error: "timeout", duration: 5 })]),
    event(1260, "gpu.xid", "raised", "error", { ...none, cluster: "eu-west-1", node: "gpu-h100-eu-02", device: deviceId("gpu-h100-eu-02/0") }, "XID 94 on GPU 0 of node gpu-h100-eu-02: contained ECC error. The application that was hit has been ended; the GPU goes on.",
      { "gpu.xid.code": "94", "gpu.xid.fatal": false }, [slack(), pager()]),
    event(2150, "gpu.throttle", "cleared", "info", { ...none, cluster: "eu-west-1", node: "gpu-h100-eu-02", device: "GPU-6f2c1b9e" }, "GPU 1 of node gpu-h100-eu-02 is not throttled any more.", {}, [slack()]),
    event(3480, "gpu.throttle", "raised", "warn", { ...none, cluster: "eu-west-1", node: "gpu-h100-eu-02", device: "GPU-6f2c1b9e" }, "GPU 1 of node gpu-h100-eu-02 is held down by heat for 2 min.", { "gpu.throttle.reason": "hw_thermal" }, [slack()]),
    event(5400, "gpu.idle_held", "raised", "info", subject("eu-west-1", "research", "notebooks"), "Service notebooks in namespace research of cluster eu-west-1 holds 4 GPUs that were idle for 15 min.", { "gpu.service.idle_devices": 4 }, [billing({ outcome: "blocked", status: null, error: "ssrf_blocked", duration: 0.003 })]),
    event(7300, "gpu.webhook.test", null, null, none, null, {}, [billing({ trigger: "test", status: 204 })]),
    event(9100, "gpu.exporter.down", "cleared", "info", { ...none, cluster: "us-east-1", node: "gpu-l4-us-01" }, "The exporter on node gpu-l4-us-01 answers again.", {}, [slack()]),
    event(9420, "gpu.exporter.down", "raised", "warn", { ...none, cluster: "us-east-1", node: "gpu-l4-us-01" }, "The exporter on node gpu-l4-us-01 has not answered for 1 min.", { "server.address": "10.4.7.19:9400" }, [slack({ outcome: "dropped", status: null, error: "queue_full", attempt: 0, duration: 0 })]),
    event(90_400, "gpu.memory.pressure", "cleared", "info", { ...none, cluster: "us-east-1", node: "gpu-a100-us-01" }, "Memory of GPU 3 of node gpu-a100-us-01 is at 91 %.", {}, [slack()]),
  ]);
}
