// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

// Labels of a node that gpu.node.info is made of.
const (
	labelDriver = "nvidia.com/cuda.driver-version.full" // GPU feature discovery
	// In versions before that: major, minor and rev of the driver.
	labelDriverPart = "nvidia.com/cuda.driver."
)

// capacityLabels have the capacity type of a node, and its values in them.
var capacityLabels = []struct {
	key    string
	values map[string]string
}{
	{"karpenter.sh/capacity-type", capacityWords},
	{"eks.amazonaws.com/capacityType", capacityWords},
	{"cloud.google.com/gke-spot", spotIfTrue},
	{"cloud.google.com/gke-preemptible", spotIfTrue},
	{"kubernetes.azure.com/scalesetpriority", capacityWords},
}

var spotIfTrue = map[string]string{"true": names.CapacitySpot}

// capacityWords are how clouds write capacity types, in lower case with "_".
var capacityWords = map[string]string{
	"on_demand":      names.CapacityOnDemand,
	"ondemand":       names.CapacityOnDemand,
	"regular":        names.CapacityOnDemand,
	"spot":           names.CapacitySpot,
	"preemptible":    names.CapacitySpot,
	"reserved":       names.CapacityReserved,
	"capacity_block": names.CapacityReserved,
}

// poolLabels have the pool of a node.
var poolLabels = []string{
	"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
}

// NodeReader takes what is needed out of the node's object.
type NodeReader struct {
	// CapacityLabel and PoolLabel come before the labels of the clouds; each may be "".
	CapacityLabel, PoolLabel string
	// Labels are those of the node that become node.label.<key>.
	Labels []string
	// Given is what the configuration has, by attribute: it stands where the node has no label.
	Given map[string]string
	// Schedulers are those that share the node's boards.
	Schedulers []*sharing.Scheduler
}

// info is what gpu.node.info has, sorted by key; what is not known is not in it.
type info []attribute

type attribute struct{ key, value string }

// with is the info with one more attribute, unless its value is empty.
func (i info) with(key, value string) info {
	if value == "" {
		return i
	}
	at, _ := slices.BinarySearchFunc(i, key, func(a attribute, key string) int { return cmp.Compare(a.key, key) })
	return slices.Insert(i, at, attribute{key, value})
}

func (r *NodeReader) info(node *corev1.Node) info {
	known := maps.Clone(r.Given)
	if known == nil {
		known = map[string]string{}
	}
	put := func(key, value string) {
		if value = safetext.Strip(value, maxInfo); value != "" {
			known[key] = value
		}
	}
	put(names.GPUNodeBootID, node.Status.NodeInfo.BootID)
	put(names.HostType, cmp.Or(node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelInstanceType]))
	put(names.CloudRegion, cmp.Or(node.Labels[corev1.LabelTopologyRegion], node.Labels[corev1.LabelFailureDomainBetaRegion]))
	put(names.GPUCapacityType, r.capacity(node.Labels))
	put(names.GPUNodePool, r.pool(node.Labels))
	put(names.HwDriverVersion, driver(node.Labels))
	for _, key := range r.Labels {
		put(names.NodeLabelPrefix+key, node.Labels[key])
	}
	return inOrder(known)
}

func inOrder(known map[string]string) info {
	all := make(info, 0, len(known))
	for _, key := range slices.Sorted(maps.Keys(known)) {
		all = append(all, attribute{key, known[key]})
	}
	return all
}

// capacity is the capacity type of a node; empty: no label has one that is known.
func (r *NodeReader) capacity(labels map[string]string) string {
	written := func(key string) string { return strings.ReplaceAll(strings.ToLower(labels[key]), "-", "_") }
	if r.CapacityLabel != "" {
		if is := capacityWords[written(r.CapacityLabel)]; is != "" {
			return is
		}
	}
	for _, l := range capacityLabels {
		if is := l.values[written(l.key)]; is != "" {
			return is
		}
	}
	return ""
}

func (r *NodeReader) pool(labels map[string]string) string {
	if pool := labels[r.PoolLabel]; pool != "" {
		return pool
	}
	for _, key := range poolLabels {
		if pool := labels[key]; pool != "" {
			return pool
		}
	}
	return ""
}

// driver returns the version of the driver that labels have; empty: they have none.
func driver(labels map[string]string) string {
	if full := labels[labelDriver]; full != "" {
		return full
	}
	version := labels[labelDriverPart+"major"]
	for _, part := range []string{"minor", "rev"} {
		if v := labels[labelDriverPart+part]; version != "" && v != "" {
			version += "." + v
		}
	}
	return version
}

// maxInfo is the longest text of gpu.node.info, in characters.
const maxInfo = 256
