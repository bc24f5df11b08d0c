// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package podnames has the names of the pods on this node by their uid, from the receiver of
// this process that asks the Kubernetes API to the one that knows only uids: from control
// groups of processes.
package podnames

import "sync/atomic"

// Pod is a pod by its names.
type Pod struct {
	UID, Namespace, Name string
	Containers           map[string]string // names by the ids of running containers
}

// Registry has the pods of a node. It is safe for concurrent use.
type Registry struct {
	wanted atomic.Bool
	pods   atomic.Pointer[map[string]Pod]
}

// Process is that of the process.
var Process = &Registry{}

// Want has pods published. It is called before components start.
func (r *Registry) Want() { r.wanted.Store(true) }

// Wanted reports whether anybody called Want.
func (r *Registry) Wanted() bool { return r.wanted.Load() }

// Publish replaces the pods; nil: none is known. They are not changed afterwards.
func (r *Registry) Publish(pods []Pod) {
	byUID := make(map[string]Pod, len(pods))
	for _, p := range pods {
		if p.UID != "" {
			byUID[p.UID] = p
		}
	}
	r.pods.Store(&byUID)
}

// Container returns the names of a container by its pod's uid and its id; ok is false where
// one of them is not known.
func (r *Registry) Container(uid, id string) (pod Pod, container string, ok bool) {
	pods := r.pods.Load()
	if pods == nil {
		return Pod{}, "", false
	}
	pod, known := (*pods)[uid]
	container = pod.Containers[id]
	return pod, container, known && container != ""
}
