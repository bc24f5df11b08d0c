// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The library can be built for each driver.
func TestDrivers(t *testing.T) {
	t.Parallel()
	for i, d := range Drivers {
		if !all() && i%4 != 0 {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			l := Start(t, Options{Driver: d.Name})
			assert.FileExists(t, l.Library)
			version, err := os.ReadFile(filepath.Join(l.Root, "sys/module/nvidia/version"))
			require.NoError(t, err)
			assert.Equal(t, d.Version+"\n", string(version))
		})
	}
}

// all is whether every case is to be run: those of make test-nvml.
func all() bool { return os.Getenv("NVML_CASES") == "all" }
