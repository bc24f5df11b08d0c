// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var errFull = errors.New("disk is full")

// disk logs what is done with it, and fails for a while.
type disk struct {
	storage.Client
	began time.Time
	full  [2]time.Duration // from, to
	hangs time.Duration    // after which every call waits for until
	until chan struct{}    // nil: none does
	log   []string
}

func (d *disk) wait() {
	if d.until != nil && time.Since(d.began) >= d.hangs {
		<-d.until
	}
}

func (d *disk) err() error {
	if at := time.Since(d.began); d.full[0] <= at && at < d.full[1] {
		return errFull
	}
	return nil
}

func (d *disk) add(format string, a ...any) {
	d.log = append(d.log, fmt.Sprintf("%v ", time.Since(d.began))+fmt.Sprintf(format, a...))
}

func (d *disk) Get(context.Context, string) ([]byte, error) {
	d.wait()
	return []byte("stored"), d.err()
}

func (d *disk) Set(_ context.Context, key string, value []byte) error {
	d.wait()
	if err := d.err(); err != nil {
		return err
	}
	d.add("%s=%s", key, value)
	return nil
}

func (d *disk) Close(context.Context) error {
	d.add("closed")
	return nil
}

func TestAValueIsWrittenWhenItChanged(t *testing.T) {
	for _, tt := range []struct {
		name     string
		periodic bool
		full     [2]time.Duration
		changes  map[int]int // second: the state from then on
		end      int         // second of Close
		want     []string
		err      error
	}{
		{name: "nothing", end: 3, want: []string{"3s closed"}},
		{name: "once", changes: map[int]int{1: 7}, end: 3, want: []string{"1s k=7", "3s closed"}},
		{name: "changes within Every are one write", changes: map[int]int{1: 7, 2: 8, 3: 9}, end: 20, want: []string{"1s k=7", "6s k=9", "20s closed"}},
		{name: "the last is written at the end", changes: map[int]int{1: 7, 2: 8}, end: 3, want: []string{"1s k=7", "3s k=8", "3s closed"}},
		{
			name: "retried until it is written", changes: map[int]int{1: 7}, end: 50,
			full: [2]time.Duration{0, 25 * time.Second},
			want: []string{"1s failed first=true", "11s failed first=false", "21s failed first=false", "31s k=7", "31s recovered", "50s closed"},
		},
		{
			name: "a newer one replaces what was not written", changes: map[int]int{1: 7, 2: 8}, end: 20,
			full: [2]time.Duration{0, 5 * time.Second},
			want: []string{"1s failed first=true", "11s k=8", "11s recovered", "20s closed"},
		},
		{
			name: "not encoded", changes: map[int]int{1: -1, 15: 2}, end: 30,
			want: []string{"1s failed first=true", "11s failed first=false", "21s k=2", "21s recovered", "30s closed"},
		},
		{
			name: "full at the end", changes: map[int]int{1: 7}, end: 3, err: errFull,
			full: [2]time.Duration{0, time.Hour},
			want: []string{"1s failed first=true", "3s failed first=false", "3s closed"},
		},
		{name: "periodic", periodic: true, changes: map[int]int{1: 7}, end: 11, want: []string{"5s k=7", "10s k=7", "11s k=7", "11s closed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{began: time.Now(), full: tt.full}
				v := &Value[int]{
					Client: d, Key: "k", Name: "the state", Every: 5 * time.Second, Retry: 10 * time.Second, Periodic: tt.periodic,
					Encode: func(n *int) ([]byte, error) {
						if *n < 0 {
							return nil, errors.New("negative")
						}
						return fmt.Append(nil, *n), nil
					},
					Failed:    func(first bool, _ error) { d.add("failed first=%v", first) },
					Recovered: func() { d.add("recovered") },
				}
				var state atomic.Pointer[int]
				v.Start(func() *int {
					if tt.periodic {
						return state.Load()
					}
					return state.Swap(nil)
				})
				for second := range tt.end {
					if n, changed := tt.changes[second]; changed {
						state.Store(&n)
						v.Wake()
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
				require.ErrorIs(t, v.Close(t.Context()), tt.err)
				require.Equal(t, tt.want, d.log)
			})
		})
	}
}

func TestAValueThatCannotBeReadIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{began: time.Now()}
		v := &Value[int]{Client: d, Name: "the pods seen"}
		text, err := v.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, "stored", string(text))
		require.Empty(t, d.log)
		d.full[1] = time.Hour
		_, err = v.Read(t.Context())
		require.ErrorIs(t, err, errFull)
		require.ErrorContains(t, err, "storage: the pods seen cannot be read: ")
		require.Equal(t, []string{"0s closed"}, d.log)
	})
}

// A storage that heeds no context ends in no hang, at the start and at the end.
func TestAStorageThatHangsIsLeftBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		wake, over bool
		hangs      time.Duration // from then on
		want       error
		closed     bool // once it answers
		within     time.Duration
	}{
		"at the start":               {hangs: 0, want: errSilent, within: readWithin},
		"in a write":                 {hangs: 1, wake: true, want: errLeftBehind, within: closeWithin},
		"in the last write":          {hangs: 2 * time.Second, closed: true, want: errLeftBehind, within: closeWithin},
		"not, and the time was over": {hangs: time.Hour, over: true, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := &disk{began: time.Now(), hangs: tt.hangs, until: make(chan struct{})}
				v := &Value[int]{Client: d, Key: "k", Every: time.Second, Encode: func(*int) ([]byte, error) { return nil, nil }, Failed: func(bool, error) {}}
				if tt.hangs > 0 {
					_, err := v.Read(ctx)
					require.NoError(t, err)
					v.Start(func() *int { return new(int) })
					time.Sleep(2 * time.Second)
					if tt.wake {
						v.Wake()
						synctest.Wait()
					}
				}
				if tt.over {
					cancel()
				}
				began, end := time.Now(), v.Close
				if tt.hangs == 0 {
					end = func(ctx context.Context) error { _, err := v.Read(ctx); return err }
				}
				require.ErrorIs(t, end(ctx), tt.want)
				require.LessOrEqual(t, time.Since(began), tt.within+time.Second)
				close(d.until)
				synctest.Wait()
				require.Equal(t, tt.closed, strings.HasSuffix(strings.Join(d.log, ""), "closed"), "later there may be another writer")
			})
		})
	}
}
