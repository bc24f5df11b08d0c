// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

type silent struct {
	storage.Client
	until chan struct{}
}

func (s silent) Get(context.Context, string) ([]byte, error) {
	<-s.until
	return nil, nil
}

// A storage that heeds no context ends in no hang, at the start and at the end.
func TestAStorageThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until, open, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		close(closed)
		defer close(until)
		began := time.Now()
		_, err := Get(t.Context(), silent{until: until}, "key")
		require.ErrorIs(t, err, ErrSilent)
		require.LessOrEqual(t, time.Since(began), ReadWithin+time.Second)

		over, cancel := context.WithCancel(t.Context())
		cancel()
		hangs := func(context.Context) error { <-until; return nil }
		fails := errors.New("full")
		for _, tt := range []struct {
			done chan struct{}
			last func(context.Context) error
			want error
		}{
			{closed, func(ctx context.Context) error { return ctx.Err() }, nil},
			{closed, func(context.Context) error { return fails }, fails},
			{closed, hangs, errLeftBehind},
			{open, func(context.Context) error { t.Error("another may write now"); return nil }, errLeftBehind},
		} {
			began := time.Now()
			require.ErrorIs(t, Close(over, tt.done, tt.last), tt.want)
			require.LessOrEqual(t, time.Since(began), CloseWithin+time.Second)
		}
	})
}
