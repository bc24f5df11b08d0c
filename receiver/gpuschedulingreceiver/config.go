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
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
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

	// ResourceNames are the extended resources that are accelerators: names, or their
	// beginning followed by "*".
	ResourceNames []string `mapstructure:"resource_names"`

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

	// DRA is about what is asked for through ResourceClaims.
	DRA DRAConfig `mapstructure:"dra"`

	// MaxPods bounds the pods in memory, MaxNodes the nodes, MaxQueues the names of queues.
	MaxPods   int `mapstructure:"max_pods"`
	MaxNodes  int `mapstructure:"max_nodes"`
	MaxQueues int `mapstructure:"max_queues"`
}

// DRAConfig is about dynamic resource allocation.
type DRAConfig struct {
	// Enabled is whether ResourceClaims and ResourceSlices are read.
	Enabled bool `mapstructure:"enabled"`

	// Drivers are those of GPUs.
	Drivers []string `mapstructure:"drivers"`

	// DeviceClasses are those of GPUs, for claims that were not allocated yet.
	DeviceClasses []string `mapstructure:"device_classes"`
}

var _ confmap.Validator = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Config:        k8sclient.Config{AuthType: k8sclient.ServiceAccount},
		Interval:      15 * time.Second,
		ResourceNames: resourcenames.Default(),
		GPUTaints: []string{
			"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/*",
		},
		RequestWindow: 24 * time.Hour,
		Nodes:         true,
		DRA: DRAConfig{
			Enabled:       true,
			Drivers:       []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
			DeviceClasses: []string{"gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
		},
		MaxPods:   200_000,
		MaxNodes:  20_000,
		MaxQueues: 2_000,
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
	c.validateResources(refuse)
	return errors.Join(errs...)
}

func (c *Config) validateResources(refuse func(string, ...any)) {
	if len(c.ResourceNames) == 0 {
		refuse("resource_names: is empty: name a resource such as nvidia.com/gpu, or leave the key out for the defaults")
	}
	if _, err := resourcenames.New(c.ResourceNames); err != nil {
		for _, one := range strings.Split(err.Error(), "\n") {
			refuse("resource_names::%s", one)
		}
	}
	if !c.DRA.Enabled {
		return
	}
	if len(c.DRA.Drivers) == 0 {
		refuse("dra::drivers: is empty: name a driver such as gpu.nvidia.com, leave the key out for the defaults, or set dra::enabled to false")
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"drivers", c.DRA.Drivers}, {"device_classes", c.DRA.DeviceClasses}} {
		for i, n := range list.names {
			if len(validation.IsDNS1123Subdomain(n)) > 0 {
				refuse("dra::%s::%d: %q is no name of one: write it as the cluster has it, such as gpu.nvidia.com", list.key, i, n)
			}
		}
	}
}
