// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What nvml needs is there where it is asked for, and nowhere else: image, runtime class,
// variables, rights and the receivers of the agent.
func TestNVML(t *testing.T) {
	t.Parallel()
	h := helms(t)[1]
	beside := []any{"inventory", "xid"}
	alone := []any{"utilization", "memory", "power", "temperature", "clocks", "throttle", "profiling", "io", "errors", "xid", "inventory"}
	for _, test := range []struct {
		name, values string
		standalone   bool
		image        string
		receivers    []any
		groups       []any
		by, log      string
		hostPID      any
		runtime      any
		mig          bool
		escalation   any
		privileged   any
	}{
		{name: "off", image: "otelcol-gpu:1", escalation: false},
		{name: "beside dcgm", values: "nvml: {enabled: true}", image: "otelcol-gpu:1-nvml", receivers: []any{"dcgm", "gpu_allocation", "nvml"},
			groups: beside, by: "off", log: "off", escalation: false},
		{name: "processes", values: "nvml: {enabled: true, processes: container, runtimeClassName: nvidia}", image: "otelcol-gpu:1-nvml",
			receivers: []any{"dcgm", "gpu_allocation", "nvml"}, groups: append(beside[:2:2], "processes"), by: "container", log: "off", hostPID: true, runtime: "nvidia", escalation: false},
		{name: "alone, MIG", values: "nvml: {enabled: true, alone: true, migDevices: true, image: {tag: x}}", image: "otelcol-gpu:x",
			receivers: []any{"gpu_allocation", "nvml"}, groups: alone, by: "off", log: "off", mig: true},
		{name: "standalone, kernel log", values: "mode: standalone\nnvml: {enabled: true, alone: true, kernelLog: true}", standalone: true, image: "otelcol-gpu:1-nvml",
			receivers: []any{"gpu_allocation", "nvml"}, groups: alone, by: "off", log: "on", privileged: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := h.template(t, "image: {repository: otelcol-gpu, tag: '1'}\n"+test.values)
			require.NoError(t, err)
			objects := decode(t, text)
			kind, name := "DaemonSet", "otelcol-gpu-agent"
			if test.standalone {
				kind, name = "Deployment", "otelcol-gpu"
			} else {
				gateway := field(t, find(t, objects, "StatefulSet", "otelcol-gpu-gateway").Object, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
				assert.Equal(t, "otelcol-gpu:1", gateway["image"], "the gateway is static")
			}
			pod := field(t, find(t, objects, kind, name).Object, "spec", "template", "spec").(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			assert.Equal(t, test.image, container["image"])
			assert.Equal(t, test.hostPID, pod["hostPID"])
			assert.Equal(t, test.runtime, pod["runtimeClassName"])
			security := container["securityContext"].(map[string]any)
			assert.Equal(t, test.privileged, security["privileged"])
			assert.Equal(t, test.escalation, security["allowPrivilegeEscalation"])
			capabilities := map[string]any{"drop": []any{"ALL"}}
			if test.mig {
				capabilities["add"] = []any{"SYS_ADMIN"}
			}
			assert.Equal(t, capabilities, security["capabilities"])
			environment := map[string]any{}
			for _, variable := range container["env"].([]any) {
				environment[variable.(map[string]any)["name"].(string)] = variable.(map[string]any)["value"]
			}
			_, monitor := environment["NVIDIA_MIG_MONITOR_DEVICES"]
			assert.Equal(t, test.mig, monitor, "the container toolkit refuses it without the capability")
			config, files := overlayOf(t, objects, name)
			assert.Equal(t, anyOrNil(test.receivers), field(t, config, "service", "pipelines", "metrics", "receivers"))
			if test.groups == nil {
				assert.NotContains(t, files, "nvml.yaml")
				assert.NotContains(t, environment, "NVIDIA_VISIBLE_DEVICES")
				return
			}
			assert.Contains(t, files, "nvml.yaml")
			assert.Equal(t, "all", environment["NVIDIA_VISIBLE_DEVICES"])
			assert.Equal(t, "utility", environment["NVIDIA_DRIVER_CAPABILITIES"])
			nvml := field(t, config, "receivers", "nvml").(map[string]any)
			assert.Equal(t, test.groups, nvml["groups"])
			assert.Equal(t, map[string]any{"by": test.by}, nvml["processes"])
			assert.Equal(t, map[string]any{"kernel_log": test.log}, nvml["xid"])
		})
	}
}
