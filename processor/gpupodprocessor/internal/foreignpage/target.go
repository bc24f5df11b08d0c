// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package foreignpage

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

// target is what is known about the exporter that a page came from. A scraper
// labels points with its target's pod; where a device is free the exporter
// prints no pod of its own, and the target's looks like an owner.
type target struct {
	names    map[string]struct{}      // what the exporter's DaemonSet may be called
	pods     map[owner.Owner]struct{} // the exporter's own pod; the namespace may be unknown
	podNames map[string]struct{}      // of pods
}

// reset starts the page of the target that resource describes.
func (t *target) reset(resource pcommon.Map) {
	if t.names == nil {
		t.names, t.pods, t.podNames = map[string]struct{}{}, map[owner.Owner]struct{}{}, map[string]struct{}{}
	}
	clear(t.names)
	clear(t.pods)
	clear(t.podNames)
	t.addName(points.Str(resource, names.ServiceName)) // the scrape job
	if pod := points.Str(resource, names.K8sPodName); pod != "" {
		t.addPod(points.Str(resource, names.K8sNamespaceName), pod)
	}
}

// learn takes from the labels of one point what they have about the exporter.
func (t *target) learn(l *identity.Labels) {
	t.addName(l.Service)
	if l.Exported.Pod != "" && l.Plain.Pod != "" {
		namespace := ""
		if l.Exported.Namespace != "" {
			namespace = l.Plain.Namespace
		}
		t.addPod(namespace, l.Plain.Pod)
	}
}

// addName takes the name of a job or a Kubernetes Service; jobs of monitors
// have the form namespace/name.
func (t *target) addName(name string) {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name != "" {
		t.names[name] = struct{}{}
	}
}

func (t *target) addPod(namespace, pod string) {
	t.pods[owner.Owner{Namespace: namespace, Pod: pod}] = struct{}{}
	t.podNames[pod] = struct{}{}
}

// is reports whether h, read from labels that no scraper renamed, is the exporter
// and not an owner.
func (t *target) is(h owner.Owner) bool {
	switch h.Container {
	case "nvidia-dcgm-exporter", "dcgm-exporter":
		return true
	}
	if _, own := t.podNames[h.Pod]; own {
		_, exact := t.pods[owner.Owner{Namespace: h.Namespace, Pod: h.Pod}]
		_, anywhere := t.pods[owner.Owner{Pod: h.Pod}]
		if exact || anywhere || h.Namespace == "" {
			return true
		}
	}
	_, own := t.names[daemonSet(h.Pod)]
	return own
}

// daemonSet is the DaemonSet that pod belongs to if it is called as their pods
// are: the DaemonSet's name and five more letters or digits. Else it is empty.
func daemonSet(pod string) string {
	i := len(pod) - len("-x2x9k")
	if i <= 0 || pod[i] != '-' {
		return ""
	}
	for _, c := range []byte(pod[i+1:]) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return ""
		}
	}
	return pod[:i]
}

// keptOnDevice reports whether a resource attribute of a scraped target is true
// of its devices too. Most name the exporter: its pod, its address, its job.
func keptOnDevice(key string) bool {
	switch key {
	case names.K8sNodeName, names.K8sClusterName:
		return true
	case "http.scheme":
		return false
	}
	for _, prefix := range [...]string{"k8s.", "service.", "container.", "process.", "server.", "url.", "net.host."} {
		if strings.HasPrefix(key, prefix) {
			return strings.HasPrefix(key, "k8s.node.") || strings.HasPrefix(key, "k8s.cluster.")
		}
	}
	return true
}
