// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package known

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type disk map[string][]byte

func (d disk) set(key string, value []byte) {
	if value == nil {
		delete(d, key)
		return
	}
	d[key] = value
}

func (d disk) read(keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = d[key]
	}
	return values, nil
}

// take takes ids first to last, each in a batch of its own, and returns how many
// were new.
func take(k *IDs, d disk, first, last int) (fresh int) {
	for i := first; i <= last; i++ {
		b := k.Begin()
		if b.Take(fmt.Sprint(i)) {
			fresh++
		}
		b.Write(d.set)
		b.End()
	}
	return fresh
}

// Known are the last ids, as many as there is room for, now and after restarts
// with the same room, with less and with more.
func TestTheLastIDsAreKnown(t *testing.T) {
	d := disk{}
	k := New(10)
	assert.Equal(t, 25, take(k, d, 1, 25))
	for _, size := range []int{10, 4, 4, 30} {
		again := New(size)
		damaged, err := again.Load(d.read)
		require.NoError(t, err)
		assert.Zero(t, damaged)
		n := min(size, 10)
		if size == 30 {
			n = 4
		}
		assert.Zero(t, take(again, d, 26-n, 25), "size %d", size)
		assert.Equal(t, 1, take(again, d, 25-n, 25-n), "size %d", size)
		b := again.Begin() // the last are the last again
		for i := 1; i < n; i++ {
			assert.False(t, b.Take(fmt.Sprint(26-n+i)), "size %d", size)
		}
		b.End()
		assert.Equal(t, n, take(again, d, 100*size, 100*size+n-1))
		for i := 26 - n; i <= 25; i++ { // for the next round
			b := again.Begin()
			b.Take(fmt.Sprint(i))
			b.Write(d.set)
			b.End()
		}
		assert.LessOrEqual(t, len(d), size+1)
	}
}

func TestDamageCostsOneID(t *testing.T) {
	d := disk{}
	take(New(10), d, 1, 8)
	d[placeKey(2)] = []byte(`{`)
	d[placeKey(3)] = []byte(`{"number":3,"id":"00"}`)
	d[placeKey(4)] = d[placeKey(5)]
	k := New(10)
	damaged, err := k.Load(d.read)
	require.NoError(t, err)
	assert.Equal(t, 3, damaged)
	assert.Equal(t, 3, take(k, d, 1, 8))

	for _, size := range []string{"-1", "99999999999", "{"} {
		damaged, err := New(10).Load(disk{sizeKey: []byte(size)}.read)
		require.NoError(t, err)
		assert.Equal(t, 1, damaged)
	}
	_, err = New(10).Load(func([]string) ([][]byte, error) { return nil, errors.New("no disk") })
	assert.Error(t, err)
}

// An id twice in one batch is known the second time, and its batch does not wait
// for itself.
func TestTwiceInABatch(t *testing.T) {
	b := New(10).Begin()
	assert.True(t, b.Take("a"))
	assert.False(t, b.Take("a"))
	b.End()
}
