// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
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
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// An agent with nvml on a machine without NVIDIA's hardware, as a DaemonSet has them: it is
// silent, and what dcgm reads goes on.
func TestNVMLWithoutHardware(t *testing.T) {
	t.Parallel()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	api := kubeapi.New("gpu-node-a")
	gateway := start(t, m{"processors": m{"gpu_summary": quick}}, nil, config("standalone.yaml"), fromAgents)
	agent := start(t, m{"receivers": m{
		"dcgm": m{"endpoints": endpoints[:1], "kubernetes": nil, "collection_interval": "1s"},
		"nvml": m{"collection_interval": "5s"},
	}}, append(agentEnv(t, api, fmt.Sprintf("%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC)), "NVML_ROOT="+t.TempDir()), config("agent.yaml"), config("nvml.yaml"))
	f := eventually(t, gateway, "devices and exporter of dcgm", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["hw_gpu_utilization_ratio"])) > 0 && len(find(f["gpu_exporter_up"])) > 0
	})
	assert.Len(t, find(f["gpu_exporter_up"]), 1, "hardware that is not there is not down")
	for _, level := range []string{"\terror\t", "\twarn\t"} {
		for _, line := range lines(log(t, agent), level) {
			assert.NotContains(t, line, `"otelcol.component.id": "nvml"`)
		}
	}
}

// twoSources are collectors over the same node of a simulated fleet: one reads its
// dcgm-exporter, one its driver.
func twoSources(t *testing.T) (sim *gpusim.Fleet, dcgm, nvml *collector.Collector) {
	t.Helper()
	labels := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }
	held := map[string][]string{"chat-0": {"0"}, "train-0": {"1"}, "note-0": {"2:0"}}
	node := gpusim.Node{
		Name: "gpu-node-a", Version: "4.6", Model: "H100", Devices: 3, Fields: "all",
		With: []string{"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"}, MIG: map[string][]string{"2": {"3g.40gb", "1g.10gb"}},
	}
	for _, pod := range slices.Sorted(maps.Keys(held)) {
		node.Pods = append(node.Pods, gpusim.Pod{Namespace: "ml", Name: pod, Container: "main", Labels: labels(pod[:len(pod)-2]), Devices: held[pod], Load: gpusim.Training})
	}
	sim, _, endpoints := fleet(t, gpusim.Config{Seed: 3, Nodes: []gpusim.Node{node}})
	lab := nvmllab.Start(t, nvmllab.Options{Driver: "575", Fleet: sim, Node: node.Name})
	lab.Run()

	folder, err := os.MkdirTemp("", "k") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	on, boards := kubelet.New(kubelet.Options{}), lab.Truth()
	ids := map[string]string{"0": boards[0].UUID, "1": boards[1].UUID}
	var whole, mig []string
	for _, b := range boards {
		if len(b.Instances) == 0 {
			whole = append(whole, b.UUID)
		}
		for i, instance := range b.Instances {
			mig = append(mig, instance.UUID)
			ids["2:"+strconv.Itoa(i)] = instance.UUID
		}
	}
	on.SetDevices("nvidia.com/gpu", kubelet.Devices(whole...))
	on.SetDevices("nvidia.com/mig-3g.40gb", kubelet.Devices(mig[:1]...))
	on.SetDevices("nvidia.com/mig-1g.10gb", kubelet.Devices(mig[1:]...))
	for pod, devices := range held {
		resource := "nvidia.com/gpu"
		if strings.HasPrefix(devices[0], "2:") {
			resource = "nvidia.com/mig-3g.40gb"
		}
		require.NoError(t, on.Force(kubelet.Pod{Namespace: "ml", Name: pod}, "main", resource, kubelet.Devices(ids[devices[0]])...))
	}
	socket := filepath.Join(folder, "kubelet.sock")
	require.NoError(t, on.Serve(socket))
	t.Cleanup(on.Stop)

	overlay := func(receiver string) m {
		return m{"receivers": m{
			receiver:         m{"collection_interval": "1s", "node_name": node.Name},
			"gpu_allocation": m{"socket": socket, "node_name": node.Name, "auth_type": "none", "poll_interval": "1s", "timeout": "1s", "collection_interval": "1s"},
		}, "processors": m{"gpu_summary": quick}}
	}
	dcgm = start(t, overlay("dcgm"), []string{"DCGM_EXPORTER_ENDPOINT=" + endpoints[0]}, config("standalone.yaml"))
	nvml = start(t, overlay("nvml"), []string{
		"NVML_LIBRARY=" + lab.Library, "NVML_ROOT=" + lab.Root, "NVML_RELEASE_FILE=" + filepath.Join(folder, "release"),
	}, config("standalone.yaml"), config("nvml-standalone.yaml"))
	return sim, dcgm, nvml
}

// onlyDCGM are families that dcgm-exporter's pages have and NVML has not, or not on every GPU.
var onlyDCGM = []string{
	"gpu_fabric_status", "gpu_memory_remap_banks", "gpu_memory_sram_threshold_exceeded", "gpu_pcie_link_generation", "gpu_pcie_link_generation_max",
	"gpu_pcie_link_width", "gpu_pcie_link_width_max",
	"gpu_exporter_unrecognized", // of a page that another program prints
	"gpu_bar1_usage_bytes", "gpu_bar1_limit_bytes", "gpu_bar1_free_bytes", "gpu_clock_frequency_max_hertz", "gpu_clock_frequency_application_hertz",
	"gpu_nvlink_lane_throughput_bytes_per_second", "gpu_c2c_bandwidth_max_bytes_per_second", "gpu_vgpu_memory_usage_bytes",
	"gpu_vgpu_licensed",                      // the driver knows which GPUs are virtual
	"gpu_nvlink_throughput_bytes_per_second", // the page has the sum of both directions
	"gpu_allocation",                         // of MIG-<uuid> it is resolved with nvml alone
}

// One machine with nvml in place of dcgm, by config/nvml-standalone.yaml: the same series,
// owners, services and events, whatever dashboards and rules ask for.
func TestNVMLInPlaceOfDCGM(t *testing.T) {
	t.Parallel()
	sim, dcgm, nvml := twoSources(t)
	settled := func(f map[string]*dto.MetricFamily) bool {
		reporting := find(f["gpu_service_pods"], "gpu_pod_state", "reporting")
		return len(find(f["gpu_sm_active_ratio"])) >= 4 && len(reporting) == 3 && len(find(f["gpu_health_coverage_ratio"])) == 3 &&
			!slices.ContainsFunc(reporting, func(m *dto.Metric) bool { return collector.Value(m) != 1 })
	}
	fromDCGM := eventually(t, dcgm, "services of dcgm", settled)
	var odd string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("lacked last: " + odd)
		}
	})
	fromNVML := eventually(t, nvml, "services of nvml", func(f map[string]*dto.MetricFamily) bool {
		if !settled(f) {
			return false
		}
		for name, family := range fromDCGM { // of nvml it may come an interval later
			has := series(f[name])
			if !strings.HasPrefix(name, "dcgm_") && !slices.Contains(onlyDCGM, name) &&
				slices.ContainsFunc(series(family), func(s string) bool { return !slices.Contains(has, s) }) {
				odd = name
				return false
			}
		}
		return true
	})
	compared := 0
	for name, family := range fromDCGM {
		if strings.HasPrefix(name, "dcgm_") || slices.Contains(onlyDCGM, name) {
			continue
		}
		compared++
		assert.Subset(t, series(fromNVML[name]), series(family), name)
	}
	assert.Greater(t, compared, 50)
	for _, name := range []string{"gpu_power_limit_watts", "gpu_service_devices", "gpu_service_memory_limit_bytes"} {
		assert.Equal(t, values(fromDCGM[name]), values(fromNVML[name]), name)
	}
	allocated := find(fromNVML["gpu_allocation"], "gpu_allocation_resolved", "true", "k8s_pod_name", "note-0", "k8s_resource_name", "nvidia.com/mig-3g.40gb")
	if assert.Len(t, allocated, 1, "the layout is the driver's") {
		assert.True(t, strings.HasSuffix(collector.Label(allocated[0], "hw_id"), "/1"))
	}

	for _, fault := range []gpusim.Fault{
		{Kind: gpusim.XID, Device: "0", Code: 94}, {Kind: gpusim.RowRemapPending, Device: "1"},
	} {
		fault.Node = "gpu-node-a"
		_, err := sim.StartFault(fault)
		require.NoError(t, err)
	}
	// An XID 94 comes with an error that could not be corrected; both have reasons for health.
	const events = 5
	for what, c := range map[string]*collector.Collector{"dcgm": dcgm, "nvml": nvml} {
		require.Eventually(t, func() bool { return len(raised(t, c)) >= events }, patience, 100*time.Millisecond, what)
	}
	require.Eventually(t, func() bool { return slices.Equal(raised(t, dcgm), raised(t, nvml)) }, patience, 100*time.Millisecond, "the same events of both")
	for _, c := range []*collector.Collector{dcgm, nvml} {
		assert.Empty(t, lines(log(t, c), "\terror\t"))
	}
	assert.NotContains(t, log(t, nvml), "in no pipeline", "standalone.yaml's receiver is replaced")
}

// raised are the texts of the events in a collector's log.
func raised(t *testing.T, c *collector.Collector) []string {
	t.Helper()
	var all []string
	for _, line := range lines(log(t, c), " gpu.event.id=") {
		text, _, _ := strings.Cut(line, " gpu.event.id=")
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// values are those of a family by its labels.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, metric := range f.GetMetric() {
		all[labelsOf(metric)] = collector.Value(metric)
	}
	return all
}

// series are the labels of a family.
func series(f *dto.MetricFamily) []string {
	return slices.Sorted(maps.Keys(values(f)))
}

// labelsOf are the labels of a series, without those of where it was read.
func labelsOf(metric *dto.Metric) string {
	var labels []string
	for _, l := range metric.GetLabel() {
		if !strings.HasPrefix(l.GetName(), "server_") {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, " ")
}
