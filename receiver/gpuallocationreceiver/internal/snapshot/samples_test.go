// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// Slices of the drivers' documentation, where they are at hand: all their devices are free.
func TestSlicesOfOtherVendors(t *testing.T) {
	const samples = "../../../../../shared/data/"
	if _, err := os.Stat(samples + "amd"); err != nil {
		t.Skip("samples are not there")
	}
	root := sysfstest.Write(t, sysfstest.Board{PCI: "0003:00:02.0", UniqueID: 0xe3a9c1d200000001, Compute: "SPX", Memory: "NPS1", Card: 0, Render: 128})
	for file, tt := range map[string]struct {
		sysfs *gpusysfs.Snapshot
		want  []string
	}{
		"amd/dra-mi300x-slice.yaml": {gpusysfs.Read(root, os.DirFS(root), t0), []string{"- " + amd + " 0 gpu.amd.com dra none true"}},
		"gaudi/dra-gaudi-slice.yaml": {nil, []string{ // the serial number is empty
			"- rpl-s/gaudi.intel.com/rpl-s/0000-a0-00-0-0x1020 0 gaudi.intel.com dra none false",
			"- rpl-s/gaudi.intel.com/rpl-s/0000-b0-00-0-0x1020 0 gaudi.intel.com dra none false",
		}},
		"intel_gpu/dra-gpu-slice.yaml": {nil, []string{
			"- PCI-rpl-s@0000:00:02.0 0 gpu.intel.com dra none true", "- PCI-rpl-s@0000:04:00.0 0 gpu.intel.com dra none true",
		}},
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(samples + file)
			require.NoError(t, err)
			var slice resourcev1.ResourceSlice
			require.NoError(t, yaml.Unmarshal(text, &slice))
			if slice.Spec.Driver == "" { // trimmed in the documentation
				slice.Spec.Driver, slice.Spec.Pool = dra.DriverAMD, resourcev1.ResourcePool{Name: "rpl-s", ResourceSliceCount: 1}
			}
			b := newBuilder(t, func(b *Builder) { b.Node = "rpl-s" })
			s, _ := b.Build(answer(&node{}, 0), View{DRA: true, Fresh: true, Pools: poolsOf(&slice), Sysfs: tt.sysfs}, nil)
			assert.Equal(t, tt.want, draLines(s))
		})
	}
}
