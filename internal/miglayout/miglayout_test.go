// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package miglayout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	gpu   = "GPU-be839661-c0f5-7452-284b-b875666df60c"
	other = "GPU-5d1a9661-c0f5-7452-284b-b875666df60d"
	mig   = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"
	small = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c12"
)

var start = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func board(uuid string, instances ...nvmlproto.Instance) nvmlproto.Board {
	return nvmlproto.Board{UUID: uuid, Instances: instances}
}

func instance(gi int, name string, compute ...nvmlproto.Compute) nvmlproto.Instance {
	return nvmlproto.Instance{GI: gi, Name: name, Compute: compute}
}

func TestLayoutOfAScrape(t *testing.T) {
	lost := board(other, instance(1, "", nvmlproto.Compute{UUID: small}))
	lost.Lost = true
	for name, c := range map[string]struct {
		boards []nvmlproto.Board
		want   map[string]Instance // by UUID; the zero one: not in it
	}{
		"two compute instances of one instance": {
			[]nvmlproto.Board{board(gpu, instance(7, "NVIDIA A100 MIG 1c.3g.20gb", nvmlproto.Compute{CI: 0, UUID: mig}, nvmlproto.Compute{CI: 1, UUID: small}))},
			map[string]Instance{
				mig:   {UUID: mig, GPU: gpu, GI: 7, Profile: "3g.20gb"},
				small: {UUID: small, GPU: gpu, GI: 7, CI: 1, Profile: "3g.20gb"},
			},
		},
		"a UUID of two boards": {
			[]nvmlproto.Board{board(gpu, instance(1, "", nvmlproto.Compute{UUID: mig})), board(other, instance(2, "", nvmlproto.Compute{UUID: mig}))},
			map[string]Instance{mig: {}},
		},
		"a lost board":  {[]nvmlproto.Board{lost}, map[string]Instance{small: {}}},
		"no valid UUID": {[]nvmlproto.Board{board(gpu, instance(1, "", nvmlproto.Compute{UUID: "MIG-1"})), board("GPU-1", instance(1, "", nvmlproto.Compute{UUID: mig}))}, map[string]Instance{"MIG-1": {}, mig: {}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Of(start, time.Second, c.boards)
			for uuid, want := range c.want {
				got, ok := l.Resolve(uuid)
				assert.Equal(t, want, got)
				assert.Equal(t, want != Instance{}, ok)
				if ok {
					assert.Equal(t, gpu+"/7", got.HwID())
				}
			}
		})
	}
	_, ok := (*Layout)(nil).Resolve(mig)
	assert.False(t, ok)
}

func TestALayoutIsUsedForThreeIntervals(t *testing.T) {
	t.Cleanup(func() { Publish(nil) })
	assert.Nil(t, Current(start))
	l := New(start, 15*time.Second, nil)
	Publish(l)
	assert.Same(t, l, Current(start.Add(45*time.Second)))
	assert.Nil(t, Current(start.Add(46*time.Second)))
	Publish(nil)
	assert.Nil(t, Current(start))
}

func TestReconfiguring(t *testing.T) {
	t.Cleanup(func() { SetReconfiguring("n1", start, false) })
	SetReconfiguring("n1", start, true)
	SetReconfiguring("n1", start.Add(time.Minute), true)
	since, is := Reconfiguring("n1")
	assert.True(t, is)
	assert.Equal(t, start, since, "that of the first report")
	_, is = Reconfiguring("n2")
	assert.False(t, is)
	SetReconfiguring("n1", start.Add(time.Hour), false)
	_, is = Reconfiguring("n1")
	assert.False(t, is)
}
