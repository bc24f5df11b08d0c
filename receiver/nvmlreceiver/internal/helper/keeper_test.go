// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// What the driver reports reaches a helper that is ending and the next one: it counts once.
func TestEventsOfTwoHelpers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var codes []uint64
		var mu sync.Mutex
		opts := options
		opts.Event = func(e *nvmlproto.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, x := range e.XID {
				codes = append(codes, x.Code)
			}
		}
		var started []*fake
		k := &Keeper{Opts: opts, Start: func() (*Child, error) {
			f := newFake(t)
			f.hangs.Store(true)
			started = append(started, f)
			go f.hello()
			return f.child, nil
		}}
		start := func() *fake {
			k.Stop(time.Now())
			_, _, err := k.Ready(time.Now())
			require.NoError(t, err)
			synctest.Wait()
			return started[len(started)-1]
		}
		report := func(f *fake, thread string, code uint64) {
			f.write(nvmlproto.Frame{Event: &nvmlproto.Event{Thread: thread, Ready: code == 0, XID: []nvmlproto.XID{{Code: code, N: 1}}}})
			synctest.Wait()
		}
		first := start()
		report(first, a, 0)
		report(first, a, 1)
		second := start()
		report(first, a, 2) // the next one does not wait yet
		report(second, a, 0)
		report(first, a, 3)
		report(second, a, 3)
		report(first, b, 4) // this board is waited for by the first alone
		assert.Equal(t, []uint64{0, 1, 2, 0, 3, 4}, codes)
		first.end(nil)
		second.hangs.Store(false)
		k.Close(t.Context())
	})
}
