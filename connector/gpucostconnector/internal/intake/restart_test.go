// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

var machine = prices.RuleConfig{Match: map[string]string{"host.type": "gpu-h100-*"}, InstanceHour: "23.60", GPUs: 2}

// restart continues with what was stored.
func (s *story) restart(now int64) {
	restored, err := ledger.Restore(ledgerConfig(s.prices), s.ledger.Encode())
	require.NoError(s.t, err)
	s.Intake = New(s.cfg, restored, time.UnixMilli(now))
}

// After a restart owners are reported before devices and nodes are described again: what
// they are is known from before, so that no time of them is without a price.
func TestRestart(t *testing.T) {
	s := newStory(t, nil, machine)
	board := gpu(1)
	owners := func(at int64) batch {
		return newBatch().holds("n", at, pod("a"), gpu(0), 1).holds("n", at, pod("b"), board+"/1", 1)
	}
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := owners(at).info("n", at, attrs{"host.type": "gpu-h100-sxm", "cloud.region": "eu-north1"})
		b.busy(device("n", gpu(0), h100), at, .5).busy(device("n", board+"/1", h100, instanceOf(board, "3g.40gb")), at, .5)
		s.read(at, b)
	})
	s.restart(t0 + 20*minute)
	every(t0+20*minute, t0+30*minute+30*second, 15*second, func(at int64) { s.read(at, owners(at)) })

	assert.Equal(t, map[string]float64{"a": 1800, "b": 771.429, "(stranded)": 1028.571}, s.rows())
	a := s.total("a")
	assert.Equal(t, prices.Rate{Nano: 11_800_000_000, Per: 1}, a.Key.Rate)
	assert.Equal(t, ledger.Class{Cluster: "c", Model: h100, HostType: "gpu-h100-sxm", Region: "eu-north1"}, a.Key.Class)
	assert.Equal(t, "3g.40gb", s.total("b").Key.Profile)
}

// A node without a kubelet is one after a restart too.
func TestRestartWithoutKubernetes(t *testing.T) {
	s := newStory(t, nil)
	page := func(at int64) batch {
		return newBatch().busy(device("", gpu(0), h100, attrs{"host.name": "box", "service.name": "train"}), at, .5).
			busy(device("", gpu(1), h100, attrs{"host.name": "box"}), at, .5)
	}
	every(t0, t0+10*minute, 15*second, func(at int64) { s.read(at, page(at)) })
	s.restart(t0 + 20*minute)
	every(t0+20*minute, t0+30*minute+45*second, 15*second, func(at int64) { s.read(at, page(at)) })
	assert.Equal(t, map[string]float64{"train": 1800, "(unknown)": 1800}, s.rows())
}
