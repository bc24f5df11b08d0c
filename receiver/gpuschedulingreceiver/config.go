// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/cluster"
)

const (
	minInterval      = time.Second
	maxInterval      = 5 * time.Minute
	minRequestWindow = time.Minute
	maxRequestWindow = 7 * 24 * time.Hour
	maxQueueLabels   = 16
)

// Config of the gpu_scheduling receiver.
type Config struct {
	// Config is how the receiver connects to the Kubernetes API. It is validated by itself.
	k8sclient.Config `mapstructure:",squash"`

	// Interval is the time between two evaluations, 1s to 5m.
	Interval time.Duration `mapstructure:"interval"`

	// ClusterName becomes k8s.cluster.name where it is set.
	ClusterName string `mapstructure:"cluster_name"`

	// Keys are which pods request accelerators, as gpu_summary has them: with the same ones
	// both share a watch. Namespaces is not of use here.
	gpupods.Keys `mapstructure:",squash"`

	// GPUTaints are keys of taints that pods with devices tolerate: names, or their beginning
	// followed by "*". A node with any other NoSchedule or NoExecute taint is not schedulable.
	GPUTaints []string `mapstructure:"gpu_taints"`

	// QueueLabels are labels of pods with the name of their queue, which come after the known
	// ones.
	QueueLabels []string `mapstructure:"queue_labels"`

	// RequestWindow is for how long a pod counts in what is usual: the CPU and memory that
	// go with a device, and the sizes of requests. 1m to 168h.
	RequestWindow time.Duration `mapstructure:"request_window"`

	// Nodes is whether gpu.node.devices is emitted, which has series of each node.
	Nodes bool `mapstructure:"nodes"`

	// MaxPods bounds the pods in memory, MaxNodes the nodes, MaxQueues the names of queues.
	MaxPods   int `mapstructure:"max_pods"`
	MaxNodes  int `mapstructure:"max_nodes"`
	MaxQueues int `mapstructure:"max_queues"`
}

var _ confmap.Validator = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Config:   k8sclient.Config{AuthType: k8sclient.ServiceAccount},
		Interval: 15 * time.Second,
		Keys:     gpupods.DefaultKeys(),
		GPUTaints: []string{
			"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/*",
		},
		RequestWindow: 24 * time.Hour,
		Nodes:         true,
		MaxPods:       200_000,
		MaxNodes:      20_000,
		MaxQueues:     2_000,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate names every key that cannot work, with the remedy.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Interval < minInterval || c.Interval > maxInterval {
		refuse("interval: is %v: use %v to %v", c.Interval, minInterval, maxInterval)
	}
	if c.RequestWindow < minRequestWindow || c.RequestWindow > maxRequestWindow {
		refuse("request_window: is %v: use %v to %v", c.RequestWindow, minRequestWindow, maxRequestWindow)
	}
	for i, taint := range c.GPUTaints {
		switch name, _ := strings.CutSuffix(taint, "*"); {
		case name == "":
			refuse("gpu_taints::%d: %q is no key of a taint: write one, such as nvidia.com/gpu, or the beginning of one followed by *", i, taint)
		case len(validation.IsQualifiedName(strings.TrimSuffix(taint, "*"))) > 0 && len(validation.IsQualifiedName(name+"0")) > 0:
			refuse("gpu_taints::%d: %q is no key of a taint: write it as kubectl describe node does, without value and effect", i, taint)
		}
	}
	if len(c.QueueLabels) > maxQueueLabels {
		refuse("queue_labels: has %d: use at most %d", len(c.QueueLabels), maxQueueLabels)
	}
	for i, label := range c.QueueLabels {
		if len(validation.IsQualifiedName(label)) > 0 {
			refuse("queue_labels::%d: %q is no key of a label: write it as kubectl get pods --show-labels does, without a value", i, label)
		} else if slices.Contains(c.QueueLabels[:i], label) {
			refuse("queue_labels::%d: %q is named twice: remove one", i, label)
		}
	}
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_pods", c.MaxPods}, {"max_nodes", c.MaxNodes}, {"max_queues", c.MaxQueues}} {
		if limit.value < 1 {
			refuse("%s: is %d: use 1 or more", limit.key, limit.value)
		}
	}
	if len(c.Namespaces) > 0 {
		refuse("namespaces: is %q: leave it out, pods of all namespaces take devices", c.Namespaces)
	}
	c.Keys.Check(refuse)
	return errors.Join(errs...)
}

// cluster is what to follow beside pods.
func (c *Config) cluster(resources *resourcenames.Matcher) cluster.Config {
	out := cluster.Config{
		Nodes:    cluster.NodeKeeper{Resources: resources, GPUTaints: c.GPUTaints},
		MaxNodes: c.MaxNodes,
	}
	if c.DRA.Enabled {
		out.Drivers = map[string]bool{}
		for _, driver := range c.DRA.Drivers {
			out.Drivers[driver] = true
		}
	}
	return out
}

// need is what the watch of pods has to keep.
func (c *Config) need() gpupods.Need {
	return gpupods.Need{MaxPods: c.MaxPods, Scheduling: true, Others: true, QueueLabels: c.QueueLabels}
}
