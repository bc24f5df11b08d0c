// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// The pace: a second here is a collection interval of 15 s there, and all
// windows shrink with it.
const (
	interval  = time.Second // of collection, poll and evaluation: the shortest that the components take
	staleness = 6 * time.Second
	warmup    = 4 * time.Second
	grace     = 15 * time.Second // reconnect_grace: gRPC's pauses do not shrink
	maxAge    = 4 * time.Second  // of what gpu.allocation reported
)

type m = map[string]any

func address(port int) string { return net.JoinHostPort(collector.Loopback, strconv.Itoa(port)) }

// merged is an overlay of JSON, which is YAML.
func merged(overlay m) (string, error) {
	text, err := json.Marshal(overlay)
	return "yaml:" + string(text), err
}

// agentOf is the agent of a node: config/agent.yaml at this pace, with a second
// exporter that sends to the judge beside the gateway.
func (w *world) agentOf(n *node, link string, ports collector.Ports, pprof int) (*process.Process, error) {
	_, exporter, err := net.SplitHostPort(n.exporter.Addr())
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(exporter)
	if err != nil {
		return nil, err
	}
	overlay := ports.Overlay()
	overlay["exporters"] = m{
		"otlp_grpc/judge":  m{"endpoint": w.recorder.Addr(), "tls": m{"insecure": true}, "sending_queue": m{"num_consumers": 1}},
		"otlp_grpc":        m{"retry_on_failure": m{"initial_interval": "200ms", "max_interval": "1s"}, "timeout": "2s"},
		"otlp_grpc/events": m{"retry_on_failure": m{"initial_interval": "200ms", "max_interval": "1s"}, "timeout": "2s"},
	}
	receivers := overlay["receivers"].(m)
	receivers["dcgm"] = m{
		"collection_interval": interval.String(), "exporter_interval": interval.String(), "kubernetes": m{"port": port},
	}
	receivers["gpu_allocation"] = m{
		"socket": n.socket, "poll_interval": interval.String(), "timeout": interval.String(), "collection_interval": interval.String(),
	}
	overlay["processors"] = m{"gpu_pod": m{"max_age": maxAge.String()}}
	overlay["connectors"] = m{"gpu_events": m{"staleness": staleness.String(), "events": m{
		"gpu.exporter.down": m{"for": "5s"}, "gpu.xid": m{"repeat_after": "0s"}, "gpu.ecc.uncorrected": m{"repeat_after": "0s"},
		"gpu.throttle": m{"for": "5s", "clear_for": "3s"},
	}}}
	extensions := overlay["extensions"].(m)
	delete(extensions, "gpu_store")
	delete(extensions, "gpu_console")
	extensions["pprof"] = m{"endpoint": address(pprof)}
	service := overlay["service"].(m)
	service["extensions"] = []string{"health_check", "file_storage/state", "pprof"}
	service["pipelines"] = m{"metrics": m{"exporters": []string{"otlp_grpc", "gpu_events", "otlp_grpc/judge"}}}
	text, err := merged(overlay)
	if err != nil {
		return nil, err
	}
	return &process.Process{
		Name: "agent-" + n.name, Binary: w.binary("otelcol-gpu"), Dir: w.Dir, Ports: ports, Pprof: pprof, Died: w.died, Ended: w.ended,
		Configs: []string{w.config("agent.yaml"), text},
		Env:     append(w.access(), "K8S_NODE_NAME="+n.name, "GATEWAY_ENDPOINT="+link, "GATEWAY_INSECURE=true"),
	}, nil
}

func (w *world) access() []string {
	return []string{"K8S_CLUSTER_NAME=" + clusterName, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + filepath.Join(w.Dir, "kubeconfig")}
}

func (w *world) config(name string) string { return filepath.Join(w.Config, name) }
func (w *world) binary(name string) string { return filepath.Join(w.Bin, name) }

// gatewayOf is the gateway: config/gateway.yaml at this pace, with webhooks, and
// a copy of all that it sends to the judge.
func (w *world) gatewayOf(ports collector.Ports, pprof int) (*process.Process, error) {
	p := &process.Process{Name: "gateway", Binary: w.binary("otelcol-gpu"), Dir: w.Dir, Ports: ports, Pprof: pprof, Died: w.died, Ended: w.ended, Env: w.access()}
	overlay := ports.Overlay()
	overlay["processors"] = m{"gpu_summary": m{
		"interval": interval.String(), "staleness": staleness.String(), "initial_interval": interval.String(), "warmup": warmup.String(),
		"reconnect_grace": grace.String(), "service_ttl": "20s", "allocation_ttl": "20s",
	}}
	overlay["connectors"] = m{"gpu_events": m{"staleness": staleness.String(), "restored_ttl": "30s", "events": m{
		"gpu.node.lost": m{"lost_after": "30s"},
	}}}
	exporters := overlay["exporters"].(m)
	plain := m{"insecure": true}
	// No queue: what it refuses is refused to gpu_summary.
	exporters["otlp_grpc/judge"] = m{
		"endpoint": w.recorder.Addr(), "tls": plain, "headers": m{fromGateway: "1"}, "sending_queue": m{"enabled": false}, "retry_on_failure": m{"enabled": false},
	}
	// A backend that takes nothing, all the time: what is optional delays and refuses
	// nothing else.
	exporters["otlp_grpc/clogged"] = m{
		"endpoint": w.clogged.Addr().String(), "tls": plain, "timeout": "1s", "retry_on_failure": m{"enabled": false},
		"sending_queue": m{"queue_size": 2, "num_consumers": 1},
	}
	exporters["otlp_grpc/events"] = m{"endpoint": w.recorder.Addr(), "tls": plain, "sending_queue": m{"enabled": false}}
	exporters["prometheus"].(m)["metric_expiration"] = "20s"
	list := m{}
	for _, r := range w.receivers {
		list[r.Name] = r.Configuration(w.expected)
	}
	exporters["webhook"] = m{
		"receivers": list, "allow_cidrs": []string{"127.0.0.0/8"}, "group_wait": "20ms", "storage": "file_storage/state",
		"retry": m{"enabled": true, "initial_interval": "100ms", "max_interval": "2s", "max_attempts": 6},
		"audit": m{
			"path": w.audit(), "fingerprint_key_file": w.fingerprintKey(), "checkpoint_key_file": w.checkpointKey(),
			"checkpoint_interval": "1s", "max_bytes": 2 << 20, "max_files": 1000, "store": "gpu_store",
		},
	}
	extensions := overlay["extensions"].(m)
	extensions["pprof"] = m{"endpoint": address(pprof)}
	service := overlay["service"].(m)
	service["extensions"] = []string{"health_check", "request_limit", "file_storage/state", "gpu_store", "gpu_console", "pprof"}
	service["pipelines"] = m{
		"metrics":            m{"exporters": []string{"best_effort/prometheus", "gpu_events", "otlp_grpc/judge"}},
		"metrics/prometheus": m{"exporters": []string{"prometheus", "gpu_store", "otlp_grpc/clogged"}},
		"logs/events":        m{"exporters": []string{"otlp_grpc/events", "gpu_store", "webhook"}},
	}
	text, err := merged(overlay)
	p.Configs = []string{w.config("gateway.yaml"), text}
	return p, err
}

func (w *world) audit() string          { return filepath.Join(w.Dir, "audit", "audit.jsonl") }
func (w *world) checkpointKey() string  { return filepath.Join(w.Dir, "checkpoint.key") }
func (w *world) fingerprintKey() string { return filepath.Join(w.Dir, "fingerprint.key") }

// receiversOf starts webhook receivers, each of which misbehaves in its own way.
func receiversOf(seed uint64, n, events int) ([]*delivery.Receiver, error) {
	ports, err := delivery.FreePorts(n)
	if err != nil {
		return nil, err
	}
	var out []*delivery.Receiver
	for i := range n {
		r, err := delivery.Listen(seed, i, events, ports[i])
		if err != nil {
			for _, r := range out {
				r.Close()
			}
			return nil, fmt.Errorf("webhook receiver %d: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}
