// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func TestListIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := List(t.Context(), time.Minute, func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, metav1.ListOptions{})
		assert.Equal(t, ResultTimeout, ResultOf(err))
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

func TestWatchesThatDoNotBegin(t *testing.T) {
	late := watch.NewFake()
	refused := errors.New("refused")
	for name, tt := range map[string]struct {
		begin func(context.Context) (watch.Interface, error)
		want  error
		after time.Duration
	}{
		"no answer": {func(ctx context.Context) (watch.Interface, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, context.DeadlineExceeded, AnswerTimeout},
		"an answer too late": {func(ctx context.Context) (watch.Interface, error) {
			<-ctx.Done()
			return late, nil
		}, context.DeadlineExceeded, AnswerTimeout},
		"closed": {func(context.Context) (watch.Interface, error) { return watch.NewEmptyWatch(), nil }, io.ErrUnexpectedEOF, 0},
		"failed": {func(context.Context) (watch.Interface, error) { return nil, refused }, refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var asked context.Context
				w, err := Watch(t.Context(), func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					asked = ctx
					return tt.begin(ctx)
				}, metav1.ListOptions{}, func() { t.Error("it never began") })
				assert.ErrorIs(t, err, tt.want)
				assert.Nil(t, w)
				assert.Equal(t, tt.after, time.Since(start))
				assert.Error(t, asked.Err(), "the request is let go")
			})
		})
	}
	assert.True(t, late.IsStopped())
}

func TestWatchEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, ended := watch.NewFake(), 0
		var asked context.Context
		w, err := Watch(t.Context(), func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			asked = ctx
			assert.Equal(t, "7", o.ResourceVersion)
			return fake, nil
		}, metav1.ListOptions{ResourceVersion: "7"}, func() { ended++ })
		require.NoError(t, err)
		time.Sleep(2 * AnswerTimeout)
		require.NoError(t, asked.Err(), "a watch that began lasts")
		assert.Zero(t, ended)
		w.Stop()
		w.Stop()
		assert.Equal(t, 1, ended)
		assert.True(t, fake.IsStopped())
		assert.Error(t, asked.Err())
	})
}
