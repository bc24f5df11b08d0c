// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

func TestPermanent(t *testing.T) {
	now, never := errors.New("queue is full"), consumererror.NewPermanent(errors.New("no"))
	assert.False(t, Permanent(now))
	assert.True(t, Permanent(never))
	assert.True(t, Permanent(errors.Join(never, never)))
	assert.False(t, Permanent(errors.Join(never, now)), "one of them may take it later")
}

func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		assert.ErrorIs(t, Ended(ctx, done), context.DeadlineExceeded)
		assert.Equal(t, 11*time.Second, time.Since(began))
		time.AfterFunc(time.Second/2, func() { close(done) })
		assert.NoError(t, Ended(ctx, done), "within the second after it")
	})
}
