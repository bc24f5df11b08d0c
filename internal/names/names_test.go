package names

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestInt: what is counted is whole, what is measured or shared is not.
func TestInt(t *testing.T) {
	for _, m := range []Metric{GPUMemoryUsage, GPUXIDErrors, GPUXIDLast, ExporterUp, PodState} {
		assert.True(t, m.Int(), m.Name)
	}
	for _, m := range []Metric{GPUUtilization, HwEnergy, GPUPCIeThroughput, GPUAllocation} {
		assert.False(t, m.Int(), m.Name)
	}
}
