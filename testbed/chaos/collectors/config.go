// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"net"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

type m = map[string]any

// agentOverlay is laid over config/agent.yaml: this pace, and a second exporter that
// sends to the judge beside the gateway.
func agentOverlay(n *fleet.Node, out *Outputs, ports collector.Ports, pprof int) (m, error) {
	_, exporter, err := net.SplitHostPort(n.Exporter.Addr())
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(exporter)
	if err != nil {
		return nil, err
	}
	overlay := ports.Overlay()
	overlay["exporters"] = m{
		"otlp_grpc/judge":  m{"endpoint": out.Recorder.Addr(), "tls": m{"insecure": true}, "sending_queue": m{"num_consumers": 1}},
		"otlp_grpc":        m{"retry_on_failure": m{"initial_interval": "200ms", "max_interval": "1s"}, "timeout": "2s"},
		"otlp_grpc/events": m{"retry_on_failure": m{"initial_interval": "200ms", "max_interval": "1s"}, "timeout": "2s"},
	}
	receivers := overlay["receivers"].(m)
	receivers["dcgm"] = m{
		"collection_interval": pace.Interval.String(), "exporter_interval": pace.Interval.String(), "kubernetes": m{"port": port},
	}
	receivers["gpu_allocation"] = m{
		"socket": n.Socket, "poll_interval": pace.Interval.String(), "timeout": pace.Interval.String(), "collection_interval": pace.Interval.String(),
	}
	overlay["processors"] = m{"gpu_pod": m{"max_age": pace.MaxAge.String()}}
	overlay["connectors"] = m{"gpu_events": m{"staleness": pace.Staleness.String(), "events": m{
		"gpu.exporter.down": m{"for": "5s"}, "gpu.xid": m{"repeat_after": "0s"}, "gpu.ecc.uncorrected": m{"repeat_after": "0s"},
		"gpu.throttle": m{"for": "5s", "clear_for": "3s"},
	}}}
	extensions := overlay["extensions"].(m)
	delete(extensions, "gpu_store")
	delete(extensions, "gpu_console")
	extensions["pprof"] = m{"endpoint": collector.Address(pprof)}
	service := overlay["service"].(m)
	service["extensions"] = []string{"health_check", "file_storage/state", "pprof"}
	service["pipelines"] = m{"metrics": m{"exporters": []string{"otlp_grpc", "gpu_events", "otlp_grpc/judge"}}}
	return overlay, nil
}

// gatewayOverlay is laid over config/gateway.yaml: this pace, webhooks, and a copy of
// all that it sends to the judge.
func gatewayOverlay(files Files, out *Outputs, ports collector.Ports, pprof int) m {
	overlay := ports.Overlay()
	overlay["processors"] = m{"gpu_summary": m{
		"interval": pace.Interval.String(), "staleness": pace.Staleness.String(), "initial_interval": pace.Interval.String(), "warmup": pace.Warmup.String(),
		"reconnect_grace": pace.Grace.String(), "service_ttl": "20s", "allocation_ttl": "20s",
	}}
	overlay["connectors"] = m{"gpu_events": m{"staleness": pace.Staleness.String(), "restored_ttl": "30s", "events": m{
		"gpu.node.lost": m{"lost_after": "30s"},
	}}}
	exporters := overlay["exporters"].(m)
	plain := m{"insecure": true}
	// No queue: what it refuses is refused to gpu_summary.
	exporters["otlp_grpc/judge"] = m{
		"endpoint": out.Recorder.Addr(), "tls": plain, "headers": m{judge.FromGateway: "1"}, "sending_queue": m{"enabled": false}, "retry_on_failure": m{"enabled": false},
	}
	// A backend that takes nothing, all the time: what is optional delays and refuses
	// nothing else.
	exporters["otlp_grpc/clogged"] = m{
		"endpoint": out.clogged.Addr().String(), "tls": plain, "timeout": "1s", "retry_on_failure": m{"enabled": false},
		"sending_queue": m{"queue_size": 2, "num_consumers": 1},
	}
	exporters["otlp_grpc/events"] = m{"endpoint": out.Recorder.Addr(), "tls": plain, "sending_queue": m{"enabled": false}}
	exporters["prometheus"].(m)["metric_expiration"] = "20s"
	list := m{}
	for _, r := range out.Webhooks {
		list[r.Name] = r.Configuration(out.events)
	}
	exporters["webhook"] = m{
		"receivers": list, "allow_cidrs": []string{"127.0.0.0/8"}, "group_wait": "20ms", "storage": "file_storage/state",
		"retry": m{"enabled": true, "initial_interval": "100ms", "max_interval": "2s", "max_attempts": 6},
		"audit": m{
			"path": files.Audit(), "fingerprint_key_file": files.fingerprintKey(), "checkpoint_key_file": files.checkpointKey(),
			"checkpoint_interval": "1s", "max_bytes": 2 << 20, "max_files": 1000, "store": "gpu_store",
		},
	}
	extensions := overlay["extensions"].(m)
	extensions["pprof"] = m{"endpoint": collector.Address(pprof)}
	service := overlay["service"].(m)
	service["extensions"] = []string{"health_check", "request_limit", "file_storage/state", "gpu_store", "gpu_console", "pprof"}
	service["pipelines"] = m{
		"metrics":            m{"exporters": []string{"best_effort/prometheus", "gpu_events", "gpu_cost", "otlp_grpc/judge"}},
		"metrics/prometheus": m{"exporters": []string{"prometheus", "gpu_store", "otlp_grpc/clogged"}},
		"logs/events":        m{"exporters": []string{"otlp_grpc/events", "gpu_store", "webhook"}},
	}
	return overlay
}
