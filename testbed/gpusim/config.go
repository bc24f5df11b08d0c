// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"io"
	"time"

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
	Version string `json:"version"` // exporter: 2.1, 2.4, 3.0, 3.3, 4.5 or 4.6
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
	Pods        []Pod    `json:"pods,omitempty"`
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
