// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// A role without a configuration has the rights that config/kubernetes gives it.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	for _, role := range []string{config.RoleAgent, config.RoleGateway} {
		text, err := os.ReadFile("../../../../../config/kubernetes/" + role + "-rbac.yaml")
		require.NoError(t, err)
		given := map[string]bool{}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object struct {
				Rules []struct {
					APIGroups []string `yaml:"apiGroups"`
					Resources []string `yaml:"resources"`
					Verbs     []string `yaml:"verbs"`
				} `yaml:"rules"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &object))
			for _, r := range object.Rules {
				for _, verb := range r.Verbs {
					given[r.APIGroups[0]+"/"+r.Resources[0]+" "+verb] = true
				}
			}
		}
		asked := map[string]bool{}
		for _, r := range rights(probe.Env{Role: role}) {
			for _, verb := range r.verbs {
				asked[r.group+"/"+r.resource+" "+verb] = true
			}
		}
		assert.Equal(t, given, asked, role)
	}
}

// An agent's configuration needs the rights of its role, a gateway's those of its own,
// and one machine without a cluster needs none.
func TestRightsOfTheShippedConfigurations(t *testing.T) {
	t.Setenv("K8S_NODE_NAME", "n1")
	t.Setenv("GATEWAY_ENDPOINT", "gateway.example:4317")
	t.Setenv("STATE_DIRECTORY", "/state")
	rightsOf := func(role string) []right {
		conf, err := config.Load(t.Context(), []string{"../../../../../config/" + role + ".yaml"})
		require.NoError(t, err)
		return rights(probe.Env{Config: conf})
	}
	var agent []string
	for _, r := range rightsOf(config.RoleAgent) {
		agent = append(agent, r.resource+": "+r.who)
	}
	assert.Equal(t, []string{
		"pods: dcgm, k8s_attributes", "nodes: gpu_allocation", "resourceslices: gpu_allocation", "resourceclaims: gpu_allocation",
	}, agent)
	assert.Equal(t, rights(probe.Env{Role: config.RoleAgent}), rightsOf(config.RoleAgent))
	assert.Len(t, rightsOf(config.RoleGateway), 2)
	conf, err := config.Load(t.Context(), []string{"../../../../../config/gateway.yaml", "../../../../../config/scheduler.yaml"})
	require.NoError(t, err)
	var scheduling []string
	for _, r := range rights(probe.Env{Config: conf}) {
		scheduling = append(scheduling, r.resource+": "+r.who)
	}
	assert.Equal(t, []string{
		"pods: gpu_summary, gpu_scheduling", "resourceclaims: gpu_summary, gpu_scheduling", "nodes: gpu_scheduling", "resourceslices: gpu_scheduling", "deviceclasses: gpu_scheduling",
	}, scheduling)
	assert.Empty(t, rightsOf(config.RoleStandalone))
}
