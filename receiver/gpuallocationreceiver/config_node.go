// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

const (
	maxNodeLabels = 16  // in gpu.node.info
	maxGiven      = 256 // bytes of a value that the configuration has
)

// NodeInfoConfig is what gpu.node.info has besides labels that every cluster knows.
type NodeInfoConfig struct {
	// CapacityTypeLabel and NodePoolLabel are labels of the node that come before those of
	// the clouds.
	CapacityTypeLabel string `mapstructure:"capacity_type_label"`
	NodePoolLabel     string `mapstructure:"node_pool_label"`

	// HostType, Region, CapacityType and NodePool stand where the node has no label for
	// them, and where the Kubernetes API is not used.
	HostType     string `mapstructure:"host_type"`
	Region       string `mapstructure:"region"`
	CapacityType string `mapstructure:"capacity_type"`
	NodePool     string `mapstructure:"node_pool"`
	// Labels stand likewise for labels of the node, by key.
	Labels map[string]string `mapstructure:"labels"`
}

// given are the values that the configuration has, by key of the configuration.
func (c *NodeInfoConfig) given() map[string]struct{ attribute, value string } {
	return map[string]struct{ attribute, value string }{
		"host_type":     {names.HostType, c.HostType},
		"region":        {names.CloudRegion, c.Region},
		"capacity_type": {names.GPUCapacityType, c.CapacityType},
		"node_pool":     {names.GPUNodePool, c.NodePool},
	}
}

func (c *Config) nodeReader() snapshot.NodeReader {
	r := snapshot.NodeReader{
		CapacityLabel: c.NodeInfo.CapacityTypeLabel, PoolLabel: c.NodeInfo.NodePoolLabel,
		Labels: c.NodeLabels, Given: map[string]string{}, Schedulers: c.schedulers(),
	}
	for _, g := range c.NodeInfo.given() {
		if g.value != "" {
			r.Given[g.attribute] = g.value
		}
	}
	for key, value := range c.NodeInfo.Labels {
		r.Given[names.NodeLabelPrefix+key] = value
	}
	return r
}

func (c *Config) validateNodeInfo(refuse func(format string, args ...any)) {
	seen := map[string]bool{}
	for i, key := range c.NodeLabels {
		switch {
		case !isLabel(key):
			refuse("node_labels::%d: %q is no key of a label: write it as kubectl get node --show-labels does, such as example.com/pool", i, key)
		case seen[key]:
			refuse("node_labels::%d: %q is in the list already: remove one of them", i, key)
		}
		seen[key] = true
	}
	for key := range c.NodeInfo.Labels {
		seen[key] = true
	}
	if len(seen) > maxNodeLabels {
		refuse("node_labels, node_info::labels: are %d keys: use at most %d, each is an attribute of gpu.node.info", len(seen), maxNodeLabels)
	}
	for _, l := range []struct{ key, label string }{
		{"capacity_type_label", c.NodeInfo.CapacityTypeLabel}, {"node_pool_label", c.NodeInfo.NodePoolLabel},
	} {
		if l.label != "" && !isLabel(l.label) {
			refuse("node_info::%s: %q is no key of a label: write it as kubectl get node --show-labels does, such as example.com/pool", l.key, l.label)
		}
	}
	switch c.NodeInfo.CapacityType {
	case "", names.CapacityOnDemand, names.CapacitySpot, names.CapacityReserved:
	default:
		refuse("node_info::capacity_type: %q is no capacity type: use %s, %s or %s", c.NodeInfo.CapacityType, names.CapacityOnDemand, names.CapacitySpot, names.CapacityReserved)
	}
	given := c.NodeInfo.given()
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !isText(given[key].value) {
			refuse("node_info::%s: is longer than %d bytes, or has characters that are not printable: shorten it", key, maxGiven)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.NodeInfo.Labels)) {
		switch value := c.NodeInfo.Labels[key]; {
		case !isLabel(key):
			refuse("node_info::labels: %q is no key of a label: use one such as example.com/pool", key)
		case value == "" || !isText(value):
			refuse("node_info::labels::%s: is empty, longer than %d bytes, or has characters that are not printable: set it to the value that price rules name", key, maxGiven)
		}
	}
}

func isLabel(key string) bool { return len(validation.IsQualifiedName(key)) == 0 }

func isText(value string) bool {
	return len(value) <= maxGiven && safetext.Strip(value, maxGiven) == value
}
