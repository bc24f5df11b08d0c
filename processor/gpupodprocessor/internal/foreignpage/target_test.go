// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package foreignpage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfDaemonSetPods(t *testing.T) {
	for pod, want := range map[string]string{
		"gpu-x2x9k": "gpu", "gpu-burn": "", "gpu-burns": "gpu", "gpu": "", "gpu-": "", "-x2x9k": "", "": "",
		"gpu-7d9c6b5f4-x2x9k": "gpu-7d9c6b5f4", "gpu-X2x9k": "", "gpu-0": "", "mygpu-x2x9k": "mygpu",
	} {
		require.Equal(t, want, daemonSet(pod), pod)
	}
}
