// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// obstacles: what this cluster does not let the values do is reported before anything
// is created, by both majors of Helm. The namespaces are those of podSecurity.
func (w *world) obstacles(t *testing.T) {
	w.t = t
	w.exporters()
	for _, h := range []helm{newHelm(t, "helm3", w.AdminKubeconfig()), newHelm(t, "helm4", w.AdminKubeconfig())} {
		for _, o := range []struct {
			name, namespace, values string
			want                    []string // none: it is installed
		}{
			{"an agent in a restricted namespace", "restricted", "",
				[]string{"agent.podResources", "the namespace restricted enforces the pod security level restricted", "kubectl label --overwrite namespace restricted"}},
			{"an agent in a baseline namespace", "baseline", "", []string{"agent.podResources", "level baseline"}},
			{"an agent without the kubelet", "restricted", "agent: {podResources: {enabled: false}, stateHostPath: ''}", nil},
			{"standalone on two nodes", "privileged", "mode: standalone", []string{"mode: standalone is for a cluster of one node, and this one has 2"}},
			{"an exporter beside another", "privileged", "dcgm-exporter: {enabled: true}",
				[]string{"dcgm-exporter.enabled", "gpu-operator/nvidia-dcgm-exporter", "disturb each other"}},
			{"not asked to look", "privileged", "{clusterChecks: false, dcgm-exporter: {enabled: true}}", nil},
			{"an exporter in a restricted namespace", "restricted", "dcgm-exporter: {enabled: true}", []string{"- dcgm-exporter.enabled: the namespace restricted"}},
			{"openshift elsewhere is not asked for", "privileged", "", nil},
			{"vendors without exporter", "privileged", "{vendors: [nvidia, amd, intel], amdExporter: {source: sysfs}}", nil},
		} {
			t.Run(h.name+"/"+o.name, func(t *testing.T) {
				args := append([]string{"install", release, "charts/otelcol-gpu", "--namespace", o.namespace, "--dry-run=server"}, valuesArgs(t, o.values)...)
				out, err := h.run(t.Context(), args...)
				if o.want == nil {
					require.NoError(t, err)
					// The notes name the exporters that no node has: dcgm-exporter is there, and the
					// kernel needs none.
					assert.Equal(t, strings.Contains(o.values, "intel"), strings.Contains(out, "no DaemonSet of Intel XPU Manager was found"), out)
					assert.NotContains(t, out, "no DaemonSet of AMD's")
					assert.NotContains(t, out, "no DaemonSet of a dcgm-exporter")
					return
				}
				require.Error(t, err)
				for _, part := range o.want {
					assert.Contains(t, err.Error(), part)
				}
			})
		}
	}
}
