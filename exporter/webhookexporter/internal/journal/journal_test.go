// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// disk takes what is set, fails, or hangs.
type disk struct {
	storage.Client
	mu     sync.Mutex
	values map[string]string
	hang   chan struct{}
	err    error
	tries  int
}

func (d *disk) set(err error, hang chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.hang = err, hang
}

// has is how often it was tried, and what it holds.
func (d *disk) has() (tries int, values map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tries, maps.Clone(d.values)
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.err != nil {
		return d.err
	}
	for _, op := range ops {
		d.values[op.Key] = string(op.Value)
	}
	return nil
}

func newDisk(t *testing.T) (*disk, *Journal, func(key, value string)) {
	d := &disk{Client: storage.NewNopClient(), values: map[string]string{}}
	j := New(d, func(string, error) {}, func() {})
	t.Cleanup(func() { require.NoError(t, j.Close(context.Background())) })
	return d, j, func(key, value string) {
		j.Want(func(set func(string, []byte)) { set(key, []byte(value)) })
	}
}

// What failed to be written does not undo what came after it.
func TestTheLatestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, j, write := newDisk(t)
		hang := make(chan struct{})
		d.set(nil, hang)
		write("a", "old")
		write("b", "only")
		synctest.Wait()
		write("a", "new")
		assert.False(t, j.Holds("b"), "it is being written")
		d.set(errors.New("bad sector"), nil)
		close(hang)
		synctest.Wait()
		assert.False(t, j.Holds("b"))
		require.ErrorContains(t, j.Flush(), "bad sector")
		d.set(nil, nil)
		time.Sleep(FirstRest)
		synctest.Wait()
		require.NoError(t, j.Flush())
		assert.True(t, j.Holds("b"))
		_, values := d.has()
		assert.Equal(t, map[string]string{"a": "new", "b": "only"}, values)
	})
}

// While the storage fails nothing waits for it, and it is not tried for each
// that is wanted.
func TestAFailingStorageIsTriedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, j, write := newDisk(t)
		d.set(errors.New("full"), nil)
		start := time.Now()
		for range 1000 {
			write("a", "x")
			require.Error(t, j.Flush())
		}
		assert.Equal(t, start, time.Now())
		tries, _ := d.has()
		assert.Equal(t, 1, tries)
		time.Sleep(time.Minute)
		synctest.Wait()
		tries, _ = d.has()
		assert.Equal(t, 1+4+4, tries, "after 1, 3, 7 and 15 s, then every 10 s")
		d.set(nil, nil)
		time.Sleep(LastRest)
		synctest.Wait()
		require.NoError(t, j.Flush())
	})
}

// A storage that answers while its slowness is being reported has recovered
// after that, not before.
func TestARecoveryIsReportedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, reports := make(chan struct{}), []string{}
		d := &disk{Client: storage.NewNopClient(), values: map[string]string{}, hang: hang}
		j := New(d, func(string, error) {
			close(hang)
			synctest.Wait()
			reports = append(reports, "failed")
		}, func() { reports = append(reports, "recovered") })
		j.Want(func(set func(string, []byte)) { set("a", []byte("x")) })
		require.ErrorIs(t, j.Flush(), ErrSlow)
		synctest.Wait()
		assert.Equal(t, []string{"failed", "recovered"}, reports)
		require.NoError(t, j.Flush())
		require.NoError(t, j.Close(t.Context()))
	})
}

func TestAClosedJournal(t *testing.T) {
	j := New(storage.NewNopClient(), nil, nil)
	require.NoError(t, j.Close(t.Context()))
	require.ErrorIs(t, j.Flush(), ErrClosed)
}
