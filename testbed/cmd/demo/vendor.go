// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// receiverTypes are the receivers by vendor, the time between two scrapes that each
// vendor's exporter bears, and the time after which a pod without data is silent.
var receiverTypes = map[string]struct{ name, interval, staleness string }{
	vendors.AMD: {"amd_gpu", "2s", "10s"}, vendors.Gaudi: {"gaudi", "10s", "25s"}, vendors.Intel: {"intel_gpu", "2s", "10s"},
}

// simulateVendor serves the fleet of gpusim's demo of a vendor.
func simulateVendor(d *demo) (stop func(), err error) {
	cfg, err := vendors.Demo(d.vendor, d.times.XID, d.times.Down, d.times.DownFor)
	if err != nil {
		return nil, err
	}
	fleet, err := vendors.New(cfg, time.Now)
	if err != nil {
		return nil, err
	}
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	started := func(s func(), err error) error {
		if err != nil {
			stop()
			return err
		}
		stops = append(stops, s)
		return nil
	}
	server, err := exporters.ServeVendors(fleet, collector.Loopback, d.sim.exporters)
	if err != nil {
		return nil, err
	}
	stops = append(stops, server.Close)
	for _, node := range fleet.Nodes() {
		d.nodes = append(d.nodes, node)
		d.targets = append(d.targets, server.URL(node))
	}
	if err := started(serveVendorKubelets(d, fleet)); err != nil {
		return nil, err
	}
	d.sink = webhook.NewSink(time.Now)
	if err := started(serve(d.sim.sink, d.sink)); err != nil {
		return nil, err
	}
	if err := started(serve(d.sim.control, exporters.ControlVendors(fleet, d.sink))); err != nil {
		return nil, err
	}
	return stop, nil
}

// serveVendorKubelets serves each node's pod-resources API, and writes the part of its
// sysfs that its ids are resolved with.
func serveVendorKubelets(d *demo, fleet *vendors.Fleet) (stop func(), err error) {
	if d.kubelets, err = os.MkdirTemp("", "kubelets"); err != nil {
		return nil, err
	}
	failed := func(err error) (func(), error) { return nil, errors.Join(err, os.RemoveAll(d.kubelets)) }
	for _, node := range fleet.Nodes() {
		if err := fleet.WriteSysfs(node, filepath.Join(d.kubelets, node), time.Now()); err != nil {
			return failed(err)
		}
	}
	k, err := simkubelet.StartVendors(fleet, d.kubelets, time.Now)
	if err != nil {
		return failed(err)
	}
	return func() { k.Stop(); _ = os.RemoveAll(d.kubelets) }, nil
}

// vendorOverlay is what config/demo.yaml is for NVIDIA's fleet: the simulated nodes as
// targets, times short enough to watch, and the simulator's webhook sink.
func vendorOverlay(d *demo) map[string]any {
	type m = map[string]any
	kind := receiverTypes[d.vendor]
	receivers := m{}
	var names []string
	for i, node := range d.nodes {
		exporter, kubelet := kind.name+"/"+node, "gpu_allocation/"+node
		receivers[exporter] = m{"endpoints": []string{d.targets[i]}, "node_name": node, "collection_interval": kind.interval, "exporter_interval": kind.interval}
		receivers[kubelet] = m{
			"node_name": node, "socket": filepath.Join(d.kubelets, node+".sock"), "sysfs_root": filepath.Join(d.kubelets, node), "auth_type": "none",
			"optional": true, "poll_interval": "1s", "collection_interval": "2s", "timeout": "1s",
		}
		names = append(names, exporter, kubelet)
	}
	sink := fmt.Sprintf("http://%s:%d", collector.Loopback, d.sim.sink)
	return m{
		"receivers": receivers,
		"processors": m{
			"gpu_summary": m{"interval": "5s", "initial_interval": "2s", "staleness": kind.staleness, "warmup": "20s"},
			// Without Kubernetes the service of a pod is what is before the hashes in its name.
			"transform/service": m{"error_mode": "propagate", "metric_statements": []m{{"context": "resource", "statements": []string{
				`set(resource.attributes["service.name"], resource.attributes["k8s.pod.name"]) where resource.attributes["k8s.pod.name"] != nil`,
				`replace_pattern(resource.attributes["service.name"], "-[a-z0-9]{8,10}-[a-z0-9]{5}$", "") where resource.attributes["service.name"] != nil`,
			}}}},
			"gpu_pod":          m{"service_name": "none"},
			"gpu_pod/services": m{"only_end_series": true},
		},
		"connectors": m{"gpu_cost": m{"flush_interval": "10s"}},
		"exporters": m{"webhook": m{
			"receivers": m{
				"sink":  m{"url": sink + "/ops", "format": "standard"},
				"slack": m{"url": sink + "/slack", "format": "slack"},
			},
			"allow_cidrs": []string{"127.0.0.0/8", "::1/128"}, "retry": m{"enabled": true}, "storage": "file_storage/state",
			"audit": m{"path": "${env:STATE_DIRECTORY:-otelcol-gpu-state}/audit.jsonl", "store": "gpu_store"},
		}},
		"extensions": m{"gpu_console": m{"refresh": "5s", "stale_after": "30s", "warmup": "20s"}},
		"service": m{"pipelines": m{
			"metrics":     m{"receivers": names, "processors": []string{"memory_limiter", "gpu_pod", "transform/service", "gpu_pod/services", "gpu_summary"}},
			"logs/events": m{"exporters": []string{"debug/events", "gpu_store", "webhook"}},
		}},
	}
}

// introduceVendor describes the simulated fleet.
func introduceVendor(d *demo) {
	d.print("simulated fleet of %s boards: %d nodes with exporter and kubelet: %s", d.vendor, len(d.nodes), strings.Join(d.targets, " "))
	d.print("  truth and faults: http://localhost:%d/truth, POST /fault; webhooks that arrived: http://localhost:%d/received", d.sim.control, d.sim.sink)
	d.print("  script: a board breaks at %s, the exporter of %s prints no devices from %s to %s",
		d.times.XID, d.nodes[0], d.times.Down, d.times.Down+d.times.DownFor)
}
