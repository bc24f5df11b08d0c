// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
)

// FuzzLabels: whatever the labels are, reading them adds nothing to their content.
func FuzzLabels(f *testing.F) {
	f.Add("UUID", "GPU-0", "exported_pod", "p", "pod", "q")
	f.Add("uuid", "", "GPU_I_ID", "7", "GPU_I_PROFILE", "1g.10gb")
	f.Add("pod_label_", "<<<>>>", "DCGM_FI_", "<<<NULL>>>", "dra_mig_device_uuid", "\xff\"\n")
	f.Add("app", "a", "pod_label_app", "b", "app_kubernetes_io_name", "c")
	f.Add("hw.id", "x", "vgpu", "0", "hpc_job", "7")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3 string) {
		var attrs []label
		found := map[string]bool{"": true}
		var exported bool
		for _, l := range [][2]string{{k1, v1}, {k2, v2}, {k3, v3}} {
			if slices.ContainsFunc(attrs, func(o label) bool { return o.key == l[0] }) {
				return // the parser refuses it
			}
			attrs = append(attrs, label{l[0], l[1]})
			found[l[1]] = true
			exported = exported || exporterlabels.Exported(l[0]) && l[1] != "" && !placeholder(l[1]) && exporterlabels.Classify(l[0]).NamesOwner()
		}
		v := acme
		v.Label, v.AbsentText = exporterlabels.Classify, placeholder
		v.Facts = map[string]Fact{"DCGM_FI_DRIVER_VERSION": Driver, "dra_mig_device_uuid": PartUUID}
		v.PodLabel = func(key string) bool { return key == "app" }
		var r row
		r.read(&v, attrs)
		check := func(got string) {
			if !found[got] {
				t.Errorf("%q is on no label", got)
			}
			if strings.HasPrefix(got, "<<<") && strings.Contains(got, ">>>") {
				t.Errorf("%q is a sentinel", got)
			}
		}
		for _, got := range append(r.facts.text[:], r.owner.pod, r.owner.namespace, r.owner.container, r.owner.podUID) {
			check(got)
		}
		for i, l := range r.owner.more {
			check(l.value)
			if i > 0 && r.owner.more[i-1].key >= l.key {
				t.Errorf("%v is not sorted", r.owner.more)
			}
		}
		for _, v := range r.facts.other {
			check(v)
		}
		of := &Labels{all: attrs}
		if pod := of.Get("pod"); exported && pod != "" && r.owner.pod == pod && of.Get("exported_pod") != pod {
			t.Errorf("the exporter's own pod %q is no owner", pod)
		}
	})
}

// placeholder knows a text that stands for no value.
func placeholder(s string) bool { return strings.HasPrefix(s, "<<<") && strings.Contains(s, ">>>") }
