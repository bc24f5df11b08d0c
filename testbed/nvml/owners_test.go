// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	simnvml "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/nvml"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// Processes on a shared board and on an instance have the container and the pod of their
// control group, and the memory that the simulated fleet gave them.
func TestReceiverWithProcesses(t *testing.T) {
	pods := []gpusim.Pod{
		{Namespace: "n", Name: "a", UID: "0a11ce00-0001-4000-8000-00000000000a", Container: "one", Devices: []string{"0::0"}, Load: gpusim.Training},
		{Namespace: "n", Name: "b", UID: "0a11ce00-0001-4000-8000-00000000000b", Container: "two", Devices: []string{"0::1"}, Load: gpusim.Training},
		{Namespace: "n", Name: "c", UID: "0a11ce00-0001-4000-8000-00000000000c", Container: "three", Devices: []string{"1:0"}, Load: gpusim.Training},
	}
	scenario(t, "by container", false, nvmllab.Options{Driver: "575", Pods: pods, MIG: map[string][]string{"1": {"1g.10gb"}}}, func(p *place) {
		p.keys["processes"] = map[string]any{"by": "container"}
		p.keys["collection_interval"] = "5s"
		p.keys["groups"] = []any{"memory", "processes"}
		p.start()
		owners := func(v values) map[string]string { // device by container
			found := map[string]string{}
			for key, bytes := range v {
				if fields := strings.Fields(key); len(fields) > 1 && fields[1] == "gpu.process.memory.usage" && bytes > 0 {
					for _, pod := range pods {
						if strings.Contains(key, simnvml.ContainerID(pod.UID, pod.Container)) && strings.Contains(key, pod.UID) {
							found[pod.Name] = fields[0]
						}
					}
				}
			}
			return found
		}
		v := p.run.Await("all containers", func(v values) bool { return len(owners(v)) == len(pods) })
		boards := p.Truth()
		got := owners(v)
		assert.Equal(p.T, boards[0].UUID, got["a"])
		assert.Equal(p.T, boards[0].UUID, got["b"])
		assert.True(p.T, strings.HasPrefix(got["c"], boards[1].UUID+"/"), got["c"])
	})
}
