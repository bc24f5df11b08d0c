// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func every(from, to, step int64, f func(at int64)) {
	for at := from; at < to; at += step {
		f(at)
	}
}

// A node without a kubelet: the owner is the service of the telemetry, and what it does not
// name is unknown. The account begins with the first telemetry.
func TestWithoutKubernetes(t *testing.T) {
	s := newStory(t, nil)
	host := func(id string, more ...attrs) attrs {
		return device("", id, h100, append([]attrs{{"host.name": "box"}}, more...)...)
	}
	every(t0, t0+hour+45*second, 15*second, func(at int64) {
		b := newBatch()
		b.busy(host(gpu(0), attrs{"service.name": "train"}), at, .5).busy(host(gpu(1)), at, .5)
		// A board in instances: one of them is the service's.
		b.busy(host(gpu(2)), at, .5).busy(host(gpu(2)+"/1", instanceOf(gpu(2), "3g.40gb"), attrs{"service.name": "train"}), at, .5)
		b.busy(host(gpu(2)+"/2", instanceOf(gpu(2), "2g.20gb")), at, .5)
		// One of which the exporter's labels name pods, by replica.
		b.busy(host(gpu(3)), at, .5).busy(host(gpu(3)+"::0", pod("a")), at, .5).busy(host(gpu(3)+"::1", pod("b")), at, .5)
		s.read(at, b)
	})
	want := map[string]float64{"train": 3600 * 10 / 7., "(unknown)": 3600 * 9 / 7., "(stranded)": 3600 * 2 / 7., "a": 1800, "b": 1800}
	for name, seconds := range s.rows() {
		assert.InDelta(t, want[name], seconds, .002, name)
		delete(want, name)
	}
	assert.Empty(t, want)
	assert.Zero(t, s.Counts())

	// A kubelet appears: from then on it decides.
	every(t0+hour+45*second, t0+2*hour, 15*second, func(at int64) {
		s.read(at, newBatch().busy(host(gpu(1)), at, .5).holds("box", at, pod("c"), gpu(1), 1))
	})
	assert.InDelta(t, 3600-60, s.rows()["c"], 30)
}

// What gpu.allocation comes to late is not taken for a node without Kubernetes.
func TestKubernetesThatIsLate(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().busy(device("n", gpu(0), h100), at, .5)
		if at > t0+45*second {
			b.holds("n", at, pod("a"), gpu(0), 1)
		}
		s.read(at, b)
	})
	assert.Equal(t, map[string]float64{"a": 510}, s.rows())
}

func TestDevicesThatAreGone(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).busy(device("n", gpu(0), h100), at, .5))
	})
	nothing := func(at int64) batch {
		return newBatch().point(on("n"), names.GPUAllocation, at, nil, attrs{"k8s.node.name": "n"}).busy(device("n", gpu(0), h100), at, .5)
	}
	every(t0+10*minute, t0+20*minute, 15*second, func(at int64) { s.read(at, nothing(at)) })
	assert.Equal(t, map[string]float64{"a": 600}, s.rows(), "the account was closed at once")
	assert.Zero(t, s.ledger.Boards())

	// The end of a series alone ends nothing.
	every(t0+20*minute, t0+30*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("b"), gpu(0), 1)
		_, point := held(gpu(0), 1)
		s.read(at, b.point(on("n", pod("a")), names.GPUAllocation, at, nil, point))
	})
	assert.Equal(t, map[string]float64{"a": 600, "b": 570}, s.rows())
}

func TestNodesThatTakeNoPods(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+40*minute+30*second, 15*second, func(at int64) {
		b := newBatch().free("n", at, gpu(0)).holds("n", at, pod("a"), gpu(1), 1)
		minutes := (at - t0) / minute
		flag := func(is bool) int {
			if is {
				return 1
			}
			return 0
		}
		b.point(on("n"), names.GPUNodeSchedulable, at, flag(minutes < 10 || minutes >= 20), attrs{"k8s.node.name": "n"})
		b.point(on("n"), names.GPUNodeMIGReconfiguring, at, flag(minutes >= 15 && minutes < 30), attrs{"k8s.node.name": "n"})
		s.read(at, b)
	})
	got := s.rows()
	assert.InDelta(t, 20*60, got["(unavailable)"], 15)
	assert.InDelta(t, 20*60, got["(free)"], 15)
	assert.Equal(t, 40*60., got["a"])
}

func TestTimesThatCannotBe(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(0), 1)
		b.holds("n", at+maxAhead+1, pod("b"), gpu(0), 1).holds("n", at-maxAge-1, pod("b"), gpu(0), 1).holds("n", 0, pod("b"), gpu(0), 1)
		b.info("n", at+day, attrs{"host.type": "later"}).busy(device("n", gpu(0), h100), at+hour, .5)
		s.read(at, b)
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Equal(t, Counts{Future: 3 * 40, Old: 2 * 40}, s.Counts())
	assert.Empty(t, s.total("a").Key.HostType)
}

func TestValuesThatCannotBe(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute+30*second, 15*second, func(at int64) {
		b := newBatch()
		for n, v := range []float64{math.NaN(), 1.5, -.1, .5, .5} {
			b.holds("n", at, pod(fmt.Sprint("p", n)), gpu(n), 1)
			of := device("n", gpu(n), h100)
			task := "general"
			if n == 4 {
				task = "encoder"
			}
			b.point(of, names.GPUUtilization, at, v, attrs{"hw.gpu.task": task})
			joules := float64(at-t0) * .3
			if n == 1 {
				joules = float64(at-t0) * 10 // 10 kW
			}
			b.burnt(of, at, joules).point(of, names.GPUPowerLimit, at, 700., attrs{"gpu.power.limit.kind": "enforced"})
		}
		s.read(at, b)
	})
	for n, want := range []float64{0, 0, 0, 300, 0} {
		total := s.total(fmt.Sprint("p", n))
		assert.Equal(t, want, float64(total.Used)/1000, n)
		assert.Equal(t, total.Time-2*total.Used, total.Unmeasured, n)
		joules := int64(180_000_000)
		if n == 1 {
			joules = 0
		}
		assert.InDelta(t, joules, total.Energy[ledger.OfBoard], 10_000_000, n)
	}
	assert.InDelta(t, 600_000, s.ledger.Counts().EnergyGap, 30_000)
	assert.Equal(t, int64(3*42), s.Counts().Invalid)
}

// Power is read where there is no counter of energy.
func TestPower(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		of := device("n", gpu(0), h100)
		part := device("n", gpu(0)+"/1", h100, instanceOf(gpu(0), "7g.80gb"))
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).point(of, names.HwPower, at, 300., nil).point(part, names.HwPower, at, 300., nil))
	})
	assert.InDelta(t, 300*1000*570, s.total("a").Energy[ledger.Integrated], 300*1000*15)
}

// Exporters are scraped once a minute, and a board has no counter of its energy: what it used and
// what it burnt are there, but for the first intervals.
func TestExportersThatAreScrapedOnceAMinute(t *testing.T) {
	s := newStory(t, nil)
	board := device("n", gpu(1), h100)
	every(t0, t0+hour+2*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(1), 1)
		if at%minute == 0 {
			b.busy(board, at, .8).point(board, names.HwPower, at, 300., attrs{"hw.id": gpu(1)})
		}
		s.read(at, b)
	})
	a := s.total("a")
	assert.LessOrEqual(t, a.Unmeasured, minute)
	assert.InDelta(t, .8*float64(a.Time), a.Used, float64(minute))
	assert.InDelta(t, 300*a.Time, a.Energy[ledger.Integrated], 300*float64(4*minute))
}

// Where nothing adds a service to gpu.allocation, telemetry of the pod has it. That comes after
// the first points, and is the owner's from its beginning.
func TestServiceOfTelemetry(t *testing.T) {
	whole := pod("a")
	delete(whole, "k8s.container.name") // as of a device that several containers have
	for name, named := range map[string]attrs{"container": pod("a"), "pod": whole} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			owner := pod("a")
			delete(owner, "service.name")
			every(t0, t0+10*minute, 15*second, func(at int64) {
				s.read(at, newBatch().holds("n", at, owner, gpu(0), 1))
				s.read(at+5*second, newBatch().busy(device("n", gpu(0), h100, named), at+5*second, .5))
			})
			assert.Equal(t, map[string]float64{"a": 570}, s.rows())
		})
	}
}

// A pod has one service, whichever of its points lack it for a while.
func TestServiceThatIsMissingForAWhile(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		owner := pod("a")
		if at/minute%2 == 1 { // an agent that has just been started
			for _, key := range []string{"service.name", "k8s.pod.uid", "k8s.namespace.label.team"} {
				delete(owner, key)
			}
		}
		s.read(at, newBatch().holds("n", at, owner, gpu(0), 1))
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Equal(t, "team-a", s.total("a").Key.Tenant)
}

func TestBoardsAreReadOnce(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(0), 1)
		s.read(at, b)
		s.read(at+second, b)
		s.read(at+2*second, newBatch().holds("n", at-second, pod("a"), gpu(0), 1))
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Positive(t, s.ledger.Counts().Late)
}

// The clock of the gateway is two days ahead for five minutes: its points are too old then, and
// the gap belongs to the owner.
func TestClockOfTheGatewayThatIsAhead(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+2*hour, 15*second, func(at int64) {
		now := at
		if at >= t0+hour && at < t0+hour+5*minute {
			now += 2 * day
		}
		s.read(now, newBatch().holds("n", at, pod("a"), gpu(1), 1))
		if at%minute == 0 {
			s.Expire(time.UnixMilli(now))
			s.ledger.Expire(now)
		}
	})
	assert.Equal(t, map[string]float64{"a": 7170}, s.rows())
}

func TestExpire(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).busy(device("", gpu(1), h100, attrs{"host.name": "box"}), at, .5))
	})
	another := func(at int64) { s.read(at, newBatch().free("other", at, gpu(2))) }
	s.Expire(time.UnixMilli(t0 + 3*day))
	require.Len(t, s.boards, 2, "a clock that is ahead, or no points at all")
	another(t0 + 2*hour)
	s.Expire(time.UnixMilli(t0 + 2*hour))
	require.Zero(t, s.owners.count)
	require.Empty(t, s.owners.named)
	require.Len(t, s.boards, 3)
	another(t0 + 2*day)
	s.Expire(time.UnixMilli(t0 + 2*day))
	require.Len(t, s.boards, 1)
	require.Len(t, s.nodes, 1)
}
