// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// twoStages are the agent's: gpu_pod, what k8s_attributes and transform/service write,
// and a gpu_pod that only ends series.
type twoStages struct {
	first, second *bench
	services      map[string]string // by pod; what is not in it has no metadata yet
	between       time.Duration     // from the first stage to the second
	store         backend
}

func newTwoStages(t *testing.T) *twoStages {
	return &twoStages{
		first: start(t, noService), second: start(t, noService, func(c *Config) { c.OnlyEndSeries = true }),
		services: map[string]string{}, store: backend{},
	}
}

func (s *twoStages) feed(t *testing.T, in string) {
	t.Helper()
	md := s.first.feed(parse(in))
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		if service := s.services[str(attrs, names.K8sPodName)]; service != "" {
			attrs.PutStr(names.ServiceName, service)
		}
	}
	time.Sleep(s.between)
	s.store.write(t, s.second.feed(md))
}

// live are the live series of a metric, shortened to pod and service.
func (s *twoStages) live(metric string) (out []string) {
	for series := range s.store {
		if rest, ok := strings.CutPrefix(series, metric+" "); ok {
			out = append(out, strings.Join(strings.Fields(rest), " "))
		}
	}
	return out
}

// No hw.id is two live series of one metric, whatever becomes of its service's name.
func TestAnotherServiceNameEndsTheFormerSeries(t *testing.T) {
	s := newTwoStages(t)
	step := func(at int, pod string, want ...string) {
		t.Helper()
		s.feed(t, snapshot(at, "ml/"+pod+"/main 1 hw.id=GPU-a")+telemetry(at, "GPU-a", "k8s.node.name=n1"))
		assert.Equal(t, want, s.live("hw.power"), "at %d", at)
		assert.Len(t, s.live(names.GPUAllocation.Name), 1, "at %d", at)
	}
	step(10, "a", "GPU-a ml a main hw.id=GPU-a")
	s.services["a"] = "chat" // its metadata arrives
	step(20, "a", "GPU-a ml a main chat hw.id=GPU-a")
	step(30, "a", "GPU-a ml a main chat hw.id=GPU-a")
	s.services["a"] = "talk" // its label is changed
	step(40, "a", "GPU-a ml a main talk hw.id=GPU-a")
	s.services["b"] = "chat"
	s.services["a"] = "" // its metadata is forgotten before its series end
	step(50, "b", "GPU-a ml b main chat hw.id=GPU-a")
	s.services["a"] = "late"
	step(60, "a", "GPU-a ml a main late hw.id=GPU-a")

	shared := func(at int) {
		s.feed(t, snapshot(at, "ml/a/main 0.5 hw.id=GPU-s::0 gpu.sharing=mps", "ml/b/main 0.5 hw.id=GPU-s::1 gpu.sharing=mps")+inputs(at, "GPU-s", "k8s.node.name=n1"))
		for _, metric := range []string{names.GPUSMActive.Name, names.GPUAllocation.Name} {
			ids := map[string]int{}
			for _, series := range s.live(metric) {
				f := strings.Fields(series)
				ids[f[len(f)-1]]++
			}
			for id, n := range ids {
				assert.Equal(t, 1, n, "%s %s at %d", metric, id, at)
			}
		}
	}
	shared(70)
	s.services["a"], s.services["b"] = "x", "y"
	shared(80)
	shared(90)
}

// The second stage attributes nothing, and counts no device a second time.
func TestAStageThatOnlyEndsSeriesChangesNothingElse(t *testing.T) {
	b := start(t, func(c *Config) { c.OnlyEndSeries = true })
	for _, in := range []string{
		snapshot(10, "ml/a/main 1 hw.id=GPU-a") + telemetry(10, "GPU-a", "namespace=ml pod=b"),
		"resource job=dcgm\nmetric DCGM_FI_DEV_GPU_UTIL gauge 1\n1 @10 UUID=GPU-a pod=b namespace=ml\n",
	} {
		want := parse(in)
		copied := pmetric.NewMetrics()
		want.CopyTo(copied)
		require.Equal(t, format(copied), format(b.feed(want)))
	}
	_, err := b.tel.GetMetric("otelcol_gpu_pod_devices")
	require.Error(t, err)
}

// The same snapshot is sent twice, and the service's name becomes known in between: both
// series end.
func TestAServiceNameThatBecomesKnownWithinASnapshot(t *testing.T) {
	s := newTwoStages(t)
	s.feed(t, snapshot(10, "ml/a/main 1 hw.id=GPU-a"))
	s.services["a"] = "chat"
	s.feed(t, snapshot(10, "ml/a/main 1 hw.id=GPU-a"))
	assert.Equal(t, []string{"ml a main chat hw.id=GPU-a"}, s.live(names.GPUAllocation.Name))
	s.feed(t, snapshot(20, "- 0 hw.id=GPU-a"))
	assert.Equal(t, []string{"hw.id=GPU-a"}, s.live(names.GPUAllocation.Name))
}

// Batches need some time from the first stage to the second, one more than the other. What
// is gone ends once, whichever stage has waited for the parts of its snapshot.
func TestWhatIsGoneEndsInOneStage(t *testing.T) {
	for name, delays := range map[string][3]time.Duration{
		"the second waited longer": {0, 2 * time.Millisecond, 0},
		"the first waited longer":  {2 * time.Millisecond, 0, 0},
		"equally long":             {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTwoStages(t)
				s.feed(t, snapshot(10, "- 0 hw.id=GPU-a::0 gpu.sharing=mps", "- 0 hw.id=GPU-a::1 gpu.sharing=mps"))
				time.Sleep(10 * time.Second)
				for i, delay := range delays {
					s.between = delay
					s.feed(t, snapshot(20+i, "- 0 hw.id=GPU-b"))
					time.Sleep(ownership.Together - time.Millisecond - delay)
				}
				time.Sleep(time.Second)
				s.feed(t, snapshot(30, "- 0 hw.id=GPU-b"))
				assert.Equal(t, []string{"hw.id=GPU-b"}, s.live(names.GPUAllocation.Name))
				assert.Equal(t, 1, s.second.tracked())
			})
		})
	}
}

// An end that never comes, for there was no room for its series in the first stage, keeps
// no room in the second.
func TestTheSecondStageForgetsWhatIsSilent(t *testing.T) {
	b := start(t, noService, func(c *Config) { c.OnlyEndSeries = true })
	b.feed(parse(snapshot(10, "- 0 hw.id=GPU-a", "- 0 hw.id=GPU-b")))
	silent := int(ownership.MaxSilence / time.Second)
	for more, want := range []int{2, 1} {
		in := snapshot(10+silent+more, "- 0 hw.id=GPU-b")
		b.expect(in, in)
		assert.Equal(t, want, b.tracked(), more)
	}
}
