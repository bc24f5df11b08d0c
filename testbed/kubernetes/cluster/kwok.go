// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"os"
	"path/filepath"
)

// Annotations of pods that KWOK plays. Values are Go durations.
const (
	// AnnotationCompleteAfter makes a pod succeed that long after it runs.
	AnnotationCompleteAfter = "testbed/complete-after"
	// AnnotationStopAfter is how long a deleted pod takes to go.
	AnnotationStopAfter = "testbed/stop-after"
)

const (
	// annotationNode marks the nodes that KWOK keeps alive.
	annotationNode = "kwok.x-k8s.io/node"
	// annotationNotReady marks those that it does not report ready.
	annotationNotReady = "testbed/not-ready"
)

//go:embed stages.yaml
var stages []byte

// kwokArgs writes the stages that KWOK plays to a folder, and returns its arguments:
// pods that the selector unplayed matches are left alone.
func kwokArgs(dir, kubeconfig, unplayed string) ([]string, error) {
	file := filepath.Join(dir, "stages.yaml")
	if err := os.WriteFile(file, stages, 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + file,
		"--manage-nodes-with-annotation-selector=" + annotationNode + "=fake",
		"--node-ip=" + host,
		"--node-lease-duration-seconds=40", // a kubelet's
	}
	if unplayed != "" {
		args = append(args, "--disregard-status-with-label-selector="+unplayed)
	}
	return args, nil
}
