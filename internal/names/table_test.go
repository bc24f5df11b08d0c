package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable: a table answers as a map does.
func TestTable(t *testing.T) {
	var table Table[int]
	require.Zero(t, table.Get(""), "empty")
	want := map[string]int{}
	for i, name := range []string{"hw.power", "hw.speed", "hw.gpu.utilization", "", "hw.power", "é"} {
		table.Put(name, i+1)
		want[name] = i + 1
	}
	for name, v := range want {
		require.Equal(t, v, table.Get(name), name)
	}
	for _, other := range []string{"hw.powe", "hw.power.", "hw.Power", "x", "a name that is longer than all others"} {
		require.Zero(t, table.Get(other), other)
	}
}

// BenchmarkTable is the question for a metric that is there and one that is not,
// beside a map.
func BenchmarkTable(b *testing.B) {
	var table Table[int]
	byName := map[string]int{}
	for i, m := range []Metric{
		GPUUtilization, GPUPipeActive, GPUAllocation, GPUSMActive, GPUDRAMActive, GPUMemoryUsage, GPUMemoryLimit, HwPower,
	} {
		table.Put(m.Name, i)
		byName[m.Name] = i
	}
	asked := []string{GPUDRAMActive.Name, GPUMemoryController.Name}
	b.Run("table", func(b *testing.B) {
		sum := 0
		for b.Loop() {
			for _, name := range asked {
				sum += table.Get(name)
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		sum := 0
		for b.Loop() {
			for _, name := range asked {
				sum += byName[name]
			}
		}
	})
}
