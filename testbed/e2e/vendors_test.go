// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// vendorNode is a simulated node with boards of a vendor: its exporter, its kubelet and
// its sysfs.
type vendorNode struct {
	fleet             *vendors.Fleet
	name              string
	url, socket, root string
}

func startVendorNode(t *testing.T, n vendors.Node) *vendorNode {
	t.Helper()
	f, err := vendors.New(vendors.Config{Seed: 7, Nodes: []vendors.Node{n}}, time.Now)
	require.NoError(t, err)
	folder, err := os.MkdirTemp("", "v") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	v := &vendorNode{
		fleet: f, name: n.Name, url: serve(t, f.Handler(n.Name)) + "/metrics",
		socket: filepath.Join(folder, "kubelet.sock"), root: filepath.Join(folder, "sys"),
	}
	require.NoError(t, f.WriteSysfs(n.Name, v.root, time.Now()))
	on := kubelet.New(kubelet.Options{})
	announced, grants := f.Kubelet(n.Name, time.Now())
	for resource, ids := range announced {
		on.SetDevices(resource, kubelet.Devices(ids...))
	}
	for _, g := range grants {
		for resource, ids := range g.IDs {
			require.NoError(t, on.Force(kubelet.Pod{Namespace: g.Namespace, Name: g.Pod}, g.Container, resource, kubelet.Devices(ids...)...))
		}
	}
	require.NoError(t, on.Serve(v.socket))
	t.Cleanup(on.Stop)
	return v
}

// readings adds the files of AMD's driver that have readings to those that have identity.
func (v *vendorNode) readings(t *testing.T) {
	t.Helper()
	for _, d := range v.fleet.TruthAt(time.Now()).Nodes[0].Devices {
		used, _ := d.Get("hw.gpu.memory.usage", "")
		total, _ := d.Get("hw.gpu.memory.limit", "")
		folder := filepath.Join(v.root, "bus/pci/devices", d.PCI)
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "hwmon/hwmon3"), 0o755))
		for name, value := range map[string]float64{
			"gpu_busy_percent": 50, "mem_info_vram_used": used.Value, "mem_info_vram_total": total.Value, "hwmon/hwmon3/power1_average": 300e6,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), strconv.AppendFloat(nil, value, 'f', 0, 64), 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, "hwmon/hwmon3/name"), []byte("amdgpu\n"), 0o600))
	}
}

// allocation is gpu_allocation on the node.
func (v *vendorNode) allocation() m {
	return m{"socket": v.socket, "node_name": v.name, "poll_interval": "1s", "timeout": "1s", "collection_interval": "1s"}
}

// check compares what Prometheus sees with the truth: each device once, with its owner, and
// of physical devices all that the page has, so that sums are those of the node.
func (v *vendorNode) check(t *testing.T, c *collector.Collector) {
	t.Helper()
	truth := v.fleet.TruthAt(time.Now()).Nodes[0]
	require.NotEmpty(t, truth.Devices)
	missing := "a page"
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("missing: " + missing)
		}
	})
	f := eventually(t, c, "devices and owners", func(f map[string]*dto.MetricFamily) bool {
		if up := find(f["gpu_exporter_up"]); len(up) != 1 || collector.Value(up[0]) != 1 {
			missing = fmt.Sprint("gpu.exporter.up of one exporter: ", up)
			return false
		}
		for _, d := range truth.Devices {
			for metric, family := range map[string]string{
				"hw.gpu.memory.usage": "hw_gpu_memory_usage_bytes", "hw.gpu.memory.limit": "hw_gpu_memory_limit_bytes", "hw.power": "hw_power_watts",
			} {
				if reading, _ := d.Get(metric, ""); reading.State != vendors.Known {
					continue
				}
				labels := []string{"hw_id", d.ID}
				if len(d.Owners) == 1 {
					labels = append(labels, "k8s_pod_name", d.Owners[0].Pod, "k8s_namespace_name", d.Owners[0].Namespace, "k8s_container_name", d.Owners[0].Container)
				}
				if missing = family + " " + strings.Join(labels, " "); len(find(f[family], labels...)) != 1 {
					return false
				}
			}
		}
		missing = "the limits of all devices, and the partitions with their boards"
		for _, d := range truth.Devices {
			if limit, has := d.Get("hw.gpu.memory.limit", ""); has && limit.State == vendors.Known && len(find(f["hw_gpu_memory_limit_bytes"], "hw_id", d.ID)) == 0 {
				return false
			}
			if d.Parent != "" && len(find(f["hw_gpu_memory_usage_bytes"], "hw_id", d.ID, "hw_parent", d.Parent)) == 0 {
				return false
			}
		}
		return true
	})
	limits := map[string]float64{}
	for _, metric := range f["hw_gpu_memory_limit_bytes"].GetMetric() {
		id := collector.Label(metric, "hw_id")
		assert.NotContains(t, limits, id, "a device is one series")
		limits[id] = collector.Value(metric)
	}
	for _, d := range truth.Devices {
		limit, has := d.Get("hw.gpu.memory.limit", "")
		if has && limit.State == vendors.Known {
			assert.InEpsilon(t, limit.Value, limits[d.ID], 0.06, d.ID)
		}
		if power, has := d.Get("hw.power", ""); has && power.State == vendors.Absent {
			assert.Empty(t, find(f["hw_power_watts"], "hw_id", d.ID), d.ID)
		}
		if d.Parent != "" {
			assert.Len(t, find(f["hw_gpu_memory_usage_bytes"], "hw_id", d.ID, "hw_parent", d.Parent,
				"gpu_partition_id", d.Partition, "gpu_partition_profile", d.Profile), 1)
			assert.Empty(t, find(f["hw_power_watts"], "hw_id", d.ID), "power is the board's")
		}
	}
}

// One machine with boards of each vendor, by config/vendors-standalone.yaml: from the
// exporter in its versions, or from the kernel.
func TestVendorsOnOneMachine(t *testing.T) {
	t.Parallel()
	pods := []vendors.Pod{
		{Namespace: "ml", Name: "train-0", Container: "main", Devices: []string{"0"}},
		{Namespace: "ml", Name: "chat-0", Container: "main", Devices: []string{"1"}},
	}
	for _, test := range []struct {
		receiver, endpoint string
		node               vendors.Node
	}{
		{"amd_gpu", "AMD_EXPORTER_ENDPOINT", vendors.Node{Name: "amd", Model: "MI300X", Boards: 3, Pods: pods}},
		{"amd_gpu/sysfs", "", vendors.Node{Name: "amd-kernel", Model: "MI300X", Boards: 3, Pods: pods}},
		{"gaudi", "GAUDI_EXPORTER_ENDPOINT", vendors.Node{Name: "gaudi", Model: "Gaudi3", Boards: 3, Pods: pods}},
		{"intel_gpu", "INTEL_EXPORTER_ENDPOINT", vendors.Node{Name: "intel", Model: "B60", Boards: 3, Pods: pods}},
		{"intel_gpu", "INTEL_EXPORTER_ENDPOINT", vendors.Node{Name: "intel-1", Model: "Flex140", Boards: 4, Version: "1", Pods: pods}},
	} {
		t.Run(test.node.Name, func(t *testing.T) {
			t.Parallel()
			v := startVendorNode(t, test.node)
			interval := "1s"
			if test.receiver == "gaudi" {
				interval = "10s" // the least that it takes
			}
			env := []string{"GPU_RECEIVERS=" + test.receiver, "SYSFS_ROOT=" + v.root, "K8S_NODE_NAME=" + v.name}
			if test.endpoint != "" {
				env = append(env, test.endpoint+"="+v.url)
			} else {
				v.readings(t)
			}
			c := start(t, m{"receivers": m{
				test.receiver:    m{"collection_interval": interval, "node_name": v.name},
				"gpu_allocation": v.allocation(),
			}, "processors": m{"gpu_summary": quick}}, env, config("standalone.yaml"), config("vendors-standalone.yaml"))
			v.check(t, c)
			assert.Empty(t, lines(log(t, c), "\terror\t"))
		})
	}
}

// An agent with the receivers of all vendors, on a node that has the exporter of one: its
// partitions have their owners, and the others emit nothing and log nothing.
func TestVendorsOnANode(t *testing.T) {
	t.Parallel()
	v := startVendorNode(t, vendors.Node{Name: "amd-node", Model: "MI300X", Boards: 2, Compute: "cpx", Memory: "nps4", Mixed: true, Pods: []vendors.Pod{
		{Namespace: "ml", Name: "train-0", Container: "main", Devices: []string{"0:0", "0:1"}},
		{Namespace: "ml", Name: "chat-0", Container: "main", Devices: []string{"1:5"}},
	}})
	exporter, err := url.Parse(v.url)
	require.NoError(t, err)
	port, err := strconv.Atoi(exporter.Port())
	require.NoError(t, err)
	api := kubeapi.New(v.name)
	api.AddPod("kube-amd-gpu", "metrics-exporter-x7k2p", m{
		"labels": m{"app.kubernetes.io/name": "metrics-exporter"}, "ownerReferences": owner("DaemonSet", "metrics-exporter"),
	}, exporter.Hostname())

	gateway := start(t, m{"processors": m{"gpu_summary": quick}}, nil, config("standalone.yaml"), fromAgents)
	agent := start(t, m{"receivers": m{
		"gpu_allocation": v.allocation(),
		"amd_gpu":        m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
	}}, append(agentEnv(t, api, collector.Loopback+":"+strconv.Itoa(gateway.Ports.OTLPGRPC)), "SYSFS_ROOT="+v.root),
		config("agent.yaml"), config("vendors.yaml"))
	v.check(t, gateway)
	text := log(t, agent)
	for _, level := range []string{"\terror\t", "\twarn\t"} {
		found := lines(text, level)
		found = slices.DeleteFunc(found, func(line string) bool {
			return !slices.ContainsFunc([]string{"dcgm", "gaudi", "intel_gpu"}, func(r string) bool {
				return len(lines(line, `"otelcol.component.id": "`+r)) > 0
			})
		})
		assert.Empty(t, found, "a receiver without exporter is silent")
	}
	f := eventually(t, gateway, "exporters", func(f map[string]*dto.MetricFamily) bool { return len(find(f["gpu_exporter_up"])) > 0 })
	assert.Len(t, find(f["gpu_exporter_up"]), 1, "exporters that are not there are not down")
}
