// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import "time"

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

// Demo is the built-in fleet: four nodes with exporters of three generations,
// a model server over three nodes, a training job, and notebooks on MIG
// instances and on an old board.
func Demo(t Times) Config {
	labels := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }
	llama := func(name string, devices ...string) Pod {
		return Pod{Namespace: "inference", Name: name, Container: "vllm", Labels: labels("llama"), Devices: devices, Load: Inference}
	}
	notebook := func(name string, load Load, device string) Pod {
		return Pod{Namespace: "notebooks", Name: name, Container: "jupyter", Labels: map[string]string{"app": "jupyter"}, Devices: []string{device}, Load: load}
	}
	whisper := Pod{
		Namespace: "inference", Name: "whisper-5c7b9d8f64-w8kzt", Container: "server", Labels: labels("whisper"),
		Devices: []string{"1"}, Load: Inference, Warmup: Duration(30 * time.Second),
	}
	return Config{
		Seed: 1,
		Nodes: []Node{
			{
				Name: "gpu-node-a", Version: "4.6", Model: "H100", Devices: 4, Fields: "all", PodLabels: true,
				Pods: []Pod{llama("llama-6b8d5c9f7d-k2x9p", "0", "1")},
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
