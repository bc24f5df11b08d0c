// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// Services on Slurm have the account as namespace; one of Kubernetes has no other namespace.
func TestPlaceOfServices(t *testing.T) {
	for want, resource := range map[string]map[string]any{
		"service c1/ml/chat":            {"k8s.cluster.name": "c1", "k8s.namespace.name": "ml", "service.name": "chat", "service.namespace": "x"},
		"service hpc/physics/ada/train": {"slurm.cluster.name": "hpc", "service.namespace": "physics", "service.name": "ada/train"},
		"service //chat":                {"service.name": "chat", "service.namespace": "x"},
	} {
		e := Event{Event: eventrecord.Event{Resource: resource}}
		require.Equal(t, want, e.Place())
	}
}
