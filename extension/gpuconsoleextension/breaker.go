// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// breaker leaves a store alone that failed several requests in a row. It counts
// requests, each of several queries, so that one that tries can find out.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	until   atomic.Int64 // when it tries again, in nanoseconds since 1970
	last    atomic.Pointer[error]
}

func newBreaker(c CircuitBreakerConfig, logger *zap.Logger) *breaker {
	b := &breaker{}
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      c.OpenFor,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return int(n.ConsecutiveFailures) >= c.Failures },
		IsSuccessful: func(err error) bool { return err == nil || !storesFault(err) },
		IsExcluded:   func(err error) bool { return err != nil && store.KindOf(err) == store.Canceled },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				b.until.Store(time.Now().Add(c.OpenFor).UnixNano())
				if from == gobreaker.StateClosed {
					logger.Warn("the store failed several requests in a row and is not queried for a while", zap.Duration("open_for", c.OpenFor))
				}
			case gobreaker.StateClosed:
				logger.Info("the store answers again")
			}
		},
	})
	return b
}

// do reads from the store, unless that is left alone.
func (b *breaker) do(read func() error) error {
	_, err := b.circuit.Execute(func() (struct{}, error) {
		err := read()
		if err != nil && storesFault(err) {
			b.last.Store(&err)
		}
		return struct{}{}, err
	})
	if !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests) {
		return err
	}
	wait := max(time.Second, time.Until(time.Unix(0, b.until.Load())).Round(time.Second))
	f := fail(http.StatusBadGateway, consoleapi.CircuitOpen, "The store failed several times and is left alone for a moment.",
		fmt.Sprintf("It is asked again in %v.", wait))
	if last := b.last.Load(); last != nil {
		f.body.Detail += " " + sentence((*last).Error())
	}
	f.retryAfter = wait
	return f
}

// open reports whether the store is left alone.
func (b *breaker) open() bool { return b.circuit.State() == gobreaker.StateOpen }
