// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// target is what is known about the exporter that a page came from. A scraper
// labels points with its target's pod; where a device is free the exporter
// prints no pod of its own, and the target's looks like a holder.
type target struct {
	names []string // what the exporter's DaemonSet may be called
	pods  []holder // the exporter's own pod; the namespace may be unknown
}

// reset starts the page of the target that resource describes.
func (t *target) reset(resource pcommon.Map) {
	t.names, t.pods = t.names[:0], t.pods[:0]
	t.addName(str(resource, names.ServiceName)) // the scrape job
	if pod := str(resource, names.K8sPodName); pod != "" {
		t.addPod(str(resource, names.K8sNamespaceName), pod)
	}
}

// learn takes from the labels of one point what they tell about the exporter.
func (t *target) learn(l *labels) {
	t.addName(l.service)
	if l.exported.pod != "" && l.plain.pod != "" {
		namespace := ""
		if l.exported.namespace != "" {
			namespace = l.plain.namespace
		}
		t.addPod(namespace, l.plain.pod)
	}
}

// addName takes the name of a job or a Kubernetes Service; jobs of monitors
// have the form namespace/name.
func (t *target) addName(name string) {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name == "" {
		return
	}
	for _, known := range t.names {
		if known == name {
			return
		}
	}
	t.names = append(t.names, name)
}

func (t *target) addPod(namespace, pod string) {
	own := holder{namespace: namespace, pod: pod}
	for _, known := range t.pods {
		if known == own {
			return
		}
	}
	t.pods = append(t.pods, own)
}

// is reports whether h, read from labels that nobody renamed, is the exporter
// and not a holder.
func (t *target) is(h holder) bool {
	switch h.container {
	case "nvidia-dcgm-exporter", "dcgm-exporter":
		return true
	}
	for _, own := range t.pods {
		if own.pod == h.pod && (own.namespace == "" || h.namespace == "" || own.namespace == h.namespace) {
			return true
		}
	}
	for _, name := range t.names {
		if ofDaemonSet(h.pod, name) {
			return true
		}
	}
	return false
}

// ofDaemonSet reports whether pod is called as the pods of the DaemonSet name
// are: its name and five more letters or digits.
func ofDaemonSet(pod, name string) bool {
	suffix, found := strings.CutPrefix(pod, name+"-")
	if !found || len(suffix) != 5 {
		return false
	}
	for _, c := range []byte(suffix) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
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
