// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// object is one of the API server's.
type object = map[string]any

// labels puts the node into the API server, with the state of its MIG manager.
func (n *Node) labels(mig string) {
	n.fleet.API.Put("nodes", "", n.Name, object{
		"apiVersion": "v1", "kind": "Node", "metadata": object{"name": n.Name, "uid": n.Name, "labels": object{"nvidia.com/mig.config.state": mig}},
		"spec": object{}, "status": object{},
	})
}

// object is the pod as the API server has it.
func (n *Node) object(p *Pod) object {
	since := p.Started
	if since.IsZero() {
		since = time.Now()
	}
	started := since.UTC().Format(time.RFC3339)
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"namespace": Namespace, "name": p.Name, "uid": p.UID, "creationTimestamp": started,
			"labels": object{"app.kubernetes.io/name": p.Service},
		},
		"spec": object{"nodeName": n.Name, "containers": []object{{
			"name": Container, "image": "example.com/" + p.Service,
			"resources": object{"limits": object{p.Resource: strconv.Itoa(p.Count)}, "requests": object{p.Resource: strconv.Itoa(p.Count)}},
		}}},
		"status": object{
			"phase": "Running", "podIP": "10.0.0.1", "startTime": started, "conditions": []object{{"type": "Ready", "status": "True"}},
			"containerStatuses": []object{{"name": Container, "ready": true, "started": true, "state": object{"running": object{"startedAt": started}}}},
		},
	}
}

// exporterPod puts the exporter's pod into the API server, in the node's network.
func (n *Node) exporterPod() { n.exporterPodAt("nvidia-dcgm-exporter-"+n.Name, "127.0.0.1") }

func (n *Node) exporterPodAt(name, address string) {
	started := time.Now().UTC().Format(time.RFC3339)
	n.fleet.API.Put("pods", "gpu-operator", name, object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"namespace": "gpu-operator", "name": name, "uid": name, "creationTimestamp": started, "labels": object{"app": "nvidia-dcgm-exporter"}},
		"spec":     object{"nodeName": n.Name, "hostNetwork": true, "containers": []object{{"name": "nvidia-dcgm-exporter", "image": "example.com/dcgm-exporter"}}},
		"status": object{
			"phase": "Running", "podIP": address, "hostIP": address, "startTime": started, "conditions": []object{{"type": "Ready", "status": "True"}},
		},
	})
}

// SecondExporter is another exporter on the node, with a pod that began later, as beside
// that of a cloud's own. end takes it away.
func (n *Node) SecondExporter() (end func() error, err error) {
	const address = "127.0.0.2"
	_, port, err := net.SplitHostPort(n.Exporter.Addr())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: n.Exporter, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	name := "nvidia-dcgm-exporter-second-" + n.Name
	n.exporterPodAt(name, address)
	return func() error {
		n.fleet.API.Delete("pods", "gpu-operator", name)
		return server.Close()
	}, nil
}
