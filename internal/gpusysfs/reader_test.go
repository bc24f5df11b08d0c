// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"context"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree is a file system that can be replaced, counts how often it is read, and blocks on demand.
type tree struct {
	files atomic.Pointer[fstest.MapFS]
	reads atomic.Int64
	block atomic.Pointer[chan struct{}]
}

func (f *tree) Open(name string) (fs.File, error) {
	if name == "bus/pci/devices" {
		f.reads.Add(1)
		if gate := f.block.Load(); gate != nil {
			<-*gate
		}
	}
	return f.files.Load().Open(name)
}

func (f *tree) set(boards ...sysfstest.Board) {
	files := fstest.MapFS{}
	for name, content := range sysfstest.Files(boards...) {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	f.files.Store(&files)
}

func run(t *testing.T, story func(t *testing.T, r *Reader, f *tree)) {
	synctest.Test(t, func(t *testing.T) {
		f := &tree{}
		f.set(board("0000:19:00.0", 1))
		r := NewFS("/sys", f)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		synctest.Wait()
		story(t, r, f)
		cancel()
		<-done
	})
}

func TestReadsOnDemand(t *testing.T) {
	run(t, func(t *testing.T, r *Reader, f *tree) {
		time.Sleep(time.Hour)
		require.Zero(t, f.reads.Load(), "nothing is read before it is asked for")
		require.Nil(t, r.Snapshot())
		synctest.Wait()
		require.NotNil(t, r.Snapshot().ByPCI("0000:19:00.0"))
		<-r.Changed()
		time.Sleep(59 * time.Second)
		require.EqualValues(t, 1, f.reads.Load())
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 2, f.reads.Load(), "every minute")

		f.set(board("0000:1a:00.0", 2))
		for range 40 { // ten seconds
			r.Ask()
			time.Sleep(250 * time.Millisecond)
		}
		require.EqualValues(t, 4, f.reads.Load(), "at most every five seconds")
		require.NotNil(t, r.Snapshot().ByPCI("0000:1a:00.0"))
		<-r.Changed()
		select {
		case <-r.Changed():
			t.Error("the last reading changed nothing")
		default:
		}
	})
}

func TestSince(t *testing.T) {
	run(t, func(t *testing.T, r *Reader, f *tree) {
		began := time.Now()
		s := r.Since(t.Context(), began)
		require.NotNil(t, s)
		assert.Same(t, s, r.Since(t.Context(), began), "it is there")
		s = r.Since(t.Context(), began.Add(1))
		assert.Equal(t, began.Add(soonest), s.At)

		gate := make(chan struct{})
		f.block.Store(&gate)
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		assert.Nil(t, r.Since(ctx, time.Now().Add(1)))
		f.block.Store(nil)
		close(gate)
	})
}

// A file that blocks leaves what is known as it is; it is reported, and delays no end.
func TestBlocked(t *testing.T) {
	run(t, func(t *testing.T, r *Reader, f *tree) {
		require.NotNil(t, r.Since(t.Context(), time.Time{}))
		blocks := make(chan struct{})
		f.block.Store(&blocks)
		time.Sleep(time.Minute + 11*time.Second)
		require.Equal(t, []Problem{{Cause: Blocked, Of: OfBoards, Count: 1}}, r.Snapshot().Problems)
		require.NotNil(t, r.Snapshot().ByPCI("0000:19:00.0"))
		time.Sleep(time.Hour)
		require.EqualValues(t, 2, f.reads.Load(), "one reading at a time")
		close(blocks)
		f.block.Store(nil)
		synctest.Wait()
		require.Empty(t, r.Snapshot().Problems)
	})
}
