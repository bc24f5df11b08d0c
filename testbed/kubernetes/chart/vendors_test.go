// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// overlayOf is the file values.yaml of an agent's or a gateway's ConfigMap, and the names of
// all of its files.
func overlayOf(t *testing.T, objects []*unstructured.Unstructured, name string) (overlay map[string]any, files []string) {
	t.Helper()
	data, _, err := unstructured.NestedStringMap(find(t, objects, "ConfigMap", name).Object, "data")
	require.NoError(t, err)
	for file := range data {
		files = append(files, file)
	}
	require.NoError(t, yaml.Unmarshal([]byte(data["values.yaml"]), &overlay))
	return overlay, files
}

func field(t *testing.T, object map[string]any, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	require.NoError(t, err)
	return value
}

// What depends on a vendor follows the value vendors, and a cluster of NVIDIA's GPUs has
// nothing of the others.
func TestVendors(t *testing.T) {
	t.Parallel()
	h := helms(t)[1]
	nvidia := []any{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"}
	amd := []any{"amd.com/gpu", "amd.com/{spx,dpx,tpx,qpx,cpx}_nps{1,2,4,8}"}
	for _, test := range []struct {
		name, values              string
		receivers, names, drivers []any // receivers nil: those of agent.yaml
		overlay                   bool
		staleness                 string
		terms                     int // of nodes, beside those of NVIDIA's
	}{
		{"the default", "", nil, nvidia, []any{"gpu.nvidia.com"}, false, "45s", 0},
		{"once a minute", "collectionInterval: 1m", nil, nvidia, []any{"gpu.nvidia.com"}, false, "180s", 0},
		{"two", "vendors: [amd, nvidia]", []any{"dcgm", "gpu_allocation", "amd_gpu"}, slices.Concat(nvidia, amd),
			[]any{"gpu.nvidia.com", "gpu.amd.com"}, true, "45s", 6},
		{"one other", "{vendors: [gaudi], agent: {nodeSelectorTerms: [{key: a}]}}", []any{"gpu_allocation", "gaudi"}, []any{"habana.ai/gaudi"},
			[]any{"gaudi.intel.com"}, true, "90s", -8},
		{"names of their own", "{vendors: [intel], resourceNames: [gpu.intel.com/xe]}", []any{"gpu_allocation", "intel_gpu"}, []any{"gpu.intel.com/xe"},
			[]any{"gpu.intel.com"}, true, "45s", 2},
		{"without the kubelet", "{vendors: [nvidia, intel], agent: {podResources: {enabled: false}}}", []any{"dcgm", "intel_gpu"},
			slices.Concat(nvidia, []any{"gpu.intel.com/*"}), []any{"gpu.nvidia.com", "gpu.intel.com"}, true, "45s", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := h.template(t, test.values)
			require.NoError(t, err)
			objects := decode(t, text)
			agent, files := overlayOf(t, objects, "otelcol-gpu-agent")
			gateway, _ := overlayOf(t, objects, "otelcol-gpu-gateway")
			assert.Equal(t, test.overlay, slices.Contains(files, "vendors.yaml"))
			assert.Equal(t, anyOrNil(test.receivers), field(t, agent, "service", "pipelines", "metrics", "receivers"))
			for part, at := range map[string]struct {
				config map[string]any
				path   []string
			}{"agent": {agent, []string{"receivers", "gpu_allocation"}}, "gateway": {gateway, []string{"processors", "gpu_summary"}}} {
				assert.Equal(t, any(test.names), field(t, at.config, append(at.path[:2:2], "resource_names")...), part)
				assert.ElementsMatch(t, test.drivers, field(t, at.config, append(at.path[:2:2], "dra", "drivers")...), part)
			}
			assert.Equal(t, test.staleness, field(t, agent, "connectors", "gpu_events", "staleness"))
			assert.Equal(t, test.staleness, field(t, gateway, "connectors", "gpu_cost", "staleness"))
			terms := field(t, find(t, objects, "DaemonSet", "otelcol-gpu-agent").Object,
				"spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
			assert.Len(t, terms, 9+test.terms)
		})
	}
}

// Privilege is for partitions alone, and a container without it has none of what comes with it.
func TestPartitionAccess(t *testing.T) {
	t.Parallel()
	h := helms(t)[1]
	for _, mode := range []string{"cluster", "standalone"} {
		for _, access := range []bool{false, true} {
			text, err := h.template(t, "{vendors: [amd], mode: "+mode+", agent: {amd: {partitionAccess: "+strconv.FormatBool(access)+"}}}")
			require.NoError(t, err)
			kind, name := "DaemonSet", "otelcol-gpu-agent"
			if mode == "standalone" {
				kind, name = "Deployment", "otelcol-gpu"
			}
			containers := field(t, find(t, decode(t, text), kind, name).Object, "spec", "template", "spec", "containers").([]any)
			security := containers[0].(map[string]any)["securityContext"].(map[string]any)
			if access {
				assert.Equal(t, true, security["privileged"])
				assert.NotContains(t, security, "allowPrivilegeEscalation", "the API server refuses both")
			} else {
				assert.NotContains(t, security, "privileged")
				assert.Equal(t, false, security["allowPrivilegeEscalation"])
			}
			assert.Equal(t, true, security["readOnlyRootFilesystem"])
		}
	}
}

func anyOrNil(list []any) any {
	if list == nil {
		return nil
	}
	return list
}
