// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// Config describes a fleet. It is decoded from JSON by ReadConfig.
type Config struct {
	Seed   uint64  `json:"seed"`
	Nodes  []Node  `json:"nodes"`
	Faults []Fault `json:"faults,omitempty"` // scripted: After counts from the start
}

// Node is one host with one dcgm-exporter.
type Node struct {
	Name    string `json:"name"`
	Version string `json:"version"` // exporter: 1.7, 2.1, 2.4, 3.0, 3.3, 4.5, 4.6 or 4.9
	// Driver is the driver's version, by default one of the exporter's time.
	Driver  string `json:"driver,omitempty"`
	Model   string `json:"model"`
	Devices int    `json:"devices"` // 1 to 8
	// Models names a model per device, for a node that mixes boards; it stands
	// in for Model and Devices.
	Models []string `json:"models,omitempty"`
	// MIG is the layout of the devices in MIG mode, by device index.
	MIG map[string][]string `json:"mig,omitempty"`
	// Fields is "default" (the lines active in the exporter's own CSV files) or
	// "all" (every field that the simulator knows).
	Fields string `json:"fields,omitempty"`
	// With are families beside them: DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION,
	// DCGM_EXP_GPU_HEALTH_STATUS, DCGM_EXP_P2P_STATUS. Without are those that the counters
	// file leaves out.
	With    []string `json:"with,omitempty"`
	Without []string `json:"without,omitempty"`
	// Profiling turns the DCGM_FI_PROF_* fields on (default) or off.
	Profiling *bool `json:"profiling,omitempty"`
	// PodLabels and PodUID print them on the series, where the version can.
	PodLabels bool `json:"pod_labels,omitempty"`
	PodUID    bool `json:"pod_uid,omitempty"`
	// Kubernetes is whether the exporter asks the kubelet who holds what
	// (default); if not, no row has container, namespace and pod.
	Kubernetes *bool `json:"kubernetes,omitempty"`
	// VirtualGPUs is --kubernetes-virtual-gpus: one row for each pod that shares
	// a device, from 4.5 on.
	VirtualGPUs bool `json:"virtual_gpus,omitempty"`
	// StaleLabels is how long a device that became free still has the former
	// pod's labels.
	StaleLabels Duration `json:"stale_labels,omitempty"`
	// Refresh is how often the exporter reads the boards; until then its page stays as it
	// is. 0: for each request.
	Refresh Duration `json:"refresh,omitempty"`
	Pods    []Pod    `json:"pods,omitempty"`
}

// Load is the kind of work a pod does.
type Load string

const (
	// Inference follows the day's traffic with bursts of requests.
	Inference Load = "inference"
	// Training is near 100 % with a dip at every checkpoint.
	Training Load = "training"
	// Idle holds memory and does nothing: a forgotten notebook.
	Idle Load = "idle"
)

// Pod holds devices of one node.
type Pod struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid,omitempty"` // default: made from the seed and the name
	Container string            `json:"container"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Devices are "<index>" for a whole device, or "<index>:<position>" for the
	// MIG instance at that position of the device's layout; "::<n>" after it is
	// replica n alone, so that several pods may share it.
	Devices []string `json:"devices"`
	Load    Load     `json:"load"`
	// Engine is the inference engine of the pod, or a gateway before engines, if it is
	// one: its page is served on Port (0: a free one). Requests, Ranks and TensorRanks
	// are those of engines.Config. A gateway has no devices; it stands before the
	// engines of the service Fronts in its namespace, which is its own by default.
	Engine      string           `json:"engine,omitempty"`
	Port        int              `json:"port,omitempty"`
	Requests    *requests.Config `json:"requests,omitempty"`
	Ranks       int              `json:"ranks,omitempty"`
	TensorRanks int              `json:"tensor_ranks,omitempty"`
	Fronts      string           `json:"fronts,omitempty"`
	// Start is when the pod comes. A pod that is there from the beginning is
	// settled; a later one warms up for Warmup (default 30s): its memory fills
	// while it computes nothing.
	Start  Duration `json:"start,omitempty"`
	Warmup Duration `json:"warmup,omitempty"`
}

// Service is the service a pod belongs to, computed as without Kubernetes.
func (p *Pod) Service() string {
	for _, key := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/name", "app"} {
		if v := p.Labels[key]; v != "" {
			return v
		}
	}
	return p.Name
}

// warmup is the time, in seconds, that a late pod takes to fill its memory.
func (p *Pod) warmup() float64 {
	if p.Warmup <= 0 {
		return 30
	}
	return time.Duration(p.Warmup).Seconds()
}

// settled is when a pod that comes has loaded its model.
func (p *Pod) settled() time.Duration {
	if p.Start <= 0 {
		return 0
	}
	return time.Duration(p.Start) + time.Duration(p.warmup()*float64(time.Second))
}

// engine is the configuration of the pod's engine.
func (p *Pod) engine() engines.Config {
	return engines.Config{Engine: p.Engine, Pod: p.Name, Requests: p.Requests, Ranks: p.Ranks, TensorRanks: p.TensorRanks}
}

// fronts is the service that a gateway stands before.
func (p *Pod) fronts() string { return cmp.Or(p.Fronts, p.Service()) }

// Duration is a time.Duration that JSON writes as "1m30s"; plain numbers are
// read as seconds.
type Duration = strictjson.Duration

// step is the whole second that a time since the start falls into.
func step(d Duration) int64 { return int64(time.Duration(d) / time.Second) }

// ReadConfig decodes one JSON configuration. Unknown keys are errors; whether
// the fleet makes sense is checked by New.
func ReadConfig(r io.Reader) (Config, error) {
	var c Config
	if err := strictjson.Decode(r, &c); err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return c, nil
}

// Times is when things happen in the demo, counted from its start.
type Times struct {
	NewPod  time.Duration // a pod starts and warms up
	XID     time.Duration // a training GPU reports an XID
	Down    time.Duration // an exporter dies: one of three pods of llama is out of sight
	DownFor time.Duration // and returns
}

// DemoTimes are the times of the demo, all within the first two minutes.
func DemoTimes() Times {
	return Times{NewPod: 20 * time.Second, XID: 40 * time.Second, Down: 60 * time.Second, DownFor: 50 * time.Second}
}

// SetExporter gives the nodes with an exporter of 4.x one of another version. Their drivers
// stay.
func (c *Config) SetExporter(version string) error {
	if _, err := findExporter(version); err != nil {
		return err
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if x, err := findExporter(n.Version); err == nil && x.major == 4 {
			n.Version, n.Driver = version, cmp.Or(n.Driver, x.driver)
		}
	}
	return nil
}

// SetPorts gives engines their ports, in the order of nodes and of those that come later.
// Without one an engine is on a free port.
func (c *Config) SetPorts(ports []int) {
	set := func(p *Pod) {
		if p != nil && p.Engine != "" && len(ports) > 0 {
			p.Port, ports = ports[0], ports[1:]
		}
	}
	for i := range c.Nodes {
		for j := range c.Nodes[i].Pods {
			set(&c.Nodes[i].Pods[j])
		}
	}
	for i := range c.Faults {
		set(c.Faults[i].Pod)
	}
}

// DemoExporters is the port of the demo's first exporter in config/demo.yaml, the others
// follow; DemoEngines are those of its engines.
const DemoExporters = 9400

var DemoEngines = []int{9410, 9411, 9412, 9413, 9414}

// Demo is the built-in fleet: four nodes with exporters of three generations,
// a model server over three nodes behind a picker, a training job, and notebooks on
// MIG instances and on an old board. Its engines are on free ports.
func Demo(t Times) Config {
	labels := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }
	llama := func(name string, devices ...string) Pod {
		return Pod{Namespace: "inference", Name: name, Container: "vllm", Labels: labels("llama"), Devices: devices, Load: Inference, Engine: "vllm-0.21"}
	}
	notebook := func(name string, load Load, device string) Pod {
		return Pod{Namespace: "notebooks", Name: name, Container: "jupyter", Labels: map[string]string{"app": "jupyter"}, Devices: []string{device}, Load: load}
	}
	whisper := Pod{
		Namespace: "inference", Name: "whisper-5c7b9d8f64-w8kzt", Container: "server", Labels: labels("whisper"),
		Devices: []string{"1"}, Load: Inference, Warmup: Duration(30 * time.Second), Engine: "tgi-3",
	}
	picker := Pod{
		Namespace: "inference", Name: "llama-epp-7d4f9c8b6-x5r2t", Container: "epp", Labels: labels("llama-epp"), Load: Idle, Engine: "epp", Fronts: "llama",
	}
	return Config{
		Seed: 1,
		Nodes: []Node{
			{
				Name: "gpu-node-a", Version: "4.6", Model: "H100", Devices: 4, Fields: "all", PodLabels: true,
				Pods: []Pod{llama("llama-6b8d5c9f7d-k2x9p", "0", "1"), picker},
			},
			{
				Name: "gpu-node-b", Version: "4.5", Model: "A100-SXM4-80GB", Devices: 8, PodLabels: true,
				Pods: []Pod{
					{Namespace: "training", Name: "trainer-7f9c6d5b48-t5hvn", Container: "pytorch", Labels: labels("trainer"), Devices: []string{"0", "1", "2", "3"}, Load: Training},
					llama("llama-6b8d5c9f7d-m7wq4", "6"),
				},
			},
			{
				Name: "gpu-node-c", Version: "4.6", Model: "A100-SXM4-40GB", Devices: 4, PodLabels: true,
				MIG: map[string][]string{"3": {"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}},
				Pods: []Pod{
					llama("llama-6b8d5c9f7d-z4j6c", "0"),
					notebook("jupyter-84d7bf6c95-b6n2x", Inference, "3:0"),
					notebook("jupyter-84d7bf6c95-h9c5r", Idle, "3:1"),
					notebook("jupyter-84d7bf6c95-q7v8d", Inference, "3:2"),
				},
			},
			{
				Name: "gpu-node-d", Version: "2.4", Model: "T4", Devices: 2,
				// An exporter of this age prints no pod labels: the pod is its own service.
				Pods: []Pod{{Namespace: "notebooks", Name: "old-notebook-0", Container: "jupyter", Devices: []string{"0"}, Load: Idle}},
			},
		},
		Faults: []Fault{
			{Node: "gpu-node-c", Kind: NewPod, After: Duration(t.NewPod), Pod: &whisper},
			{Node: "gpu-node-b", Kind: XID, Device: "2", After: Duration(t.XID), Code: 94},
			{Node: "gpu-node-a", Kind: ExporterDown, After: Duration(t.Down), For: Duration(t.DownFor)},
		},
	}
}
