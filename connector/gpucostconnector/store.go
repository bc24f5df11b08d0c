// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

const (
	stateKey = "state"
	// writeWithin is how long a flush waits for a write.
	writeWithin = 10 * time.Second
	// closeWithin is how long the storage may take to close.
	closeWithin = 5 * time.Second
)

// errSilent is the error of a write that has not returned.
var errSilent = fmt.Errorf("storage: it does not answer for %s: see that its disk or server does", writeWithin)

// store keeps the state in a storage extension. What is stored begins with the currency,
// since the ledger's prices have none.
type store struct {
	client   storage.Client
	currency []byte
	pending  chan error // has the result of a write that has not returned; nil: none
}

// write stores a state. There is one write at a time: one that does not return, which few
// storages do for a context, is waited for by the next call.
func (s *store) write(ctx context.Context, state []byte) error {
	if err := s.wait(ctx); s.pending != nil {
		return err
	}
	done := make(chan error, 1)
	s.pending = done
	go func() {
		done <- s.client.Set(ctx, stateKey, append(s.currency[:len(s.currency):len(s.currency)], state...))
	}()
	return s.wait(ctx)
}

// wait waits for a write, and returns its error or that it has not returned.
func (s *store) wait(ctx context.Context) error {
	if s.pending == nil {
		return nil
	}
	select {
	case err := <-s.pending:
		s.pending = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(writeWithin):
		return errSilent
	}
}

func (s *store) close(ctx context.Context) error {
	if s.pending != nil {
		return errSilent // it is left behind: later there may be another writer
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	late := fmt.Errorf("storage: it does not close within %s", closeWithin)
	return durable.Within(closeWithin+time.Second, late, func() error {
		defer cancel()
		return s.client.Close(ctx)
	})
}

// openStore opens the storage of a configuration and reads what is stored, nil if that is
// nothing. What cannot be read now is an error, since it must not be overwritten.
func openStore(ctx context.Context, host component.Host, cfg *Config, id component.ID) (s *store, state []byte, damaged, err error) {
	client, damaged, err := durable.Open(ctx, host, component.KindConnector, *cfg.Storage, id)
	if err != nil {
		return nil, nil, nil, err
	}
	state, err = (&durable.Value[struct{}]{Client: client, Key: stateKey, Name: "the state of gpu_cost"}).Read(ctx)
	return &store{client: client, currency: []byte(cfg.Currency)}, state, damaged, err
}

// decode continues the accounts of a state.
func (s *store) decode(state []byte, accounting ledger.Config) (*ledger.Ledger, error) {
	encoded, same := bytes.CutPrefix(state, s.currency)
	if !same {
		if n := len(s.currency); len(state) > n && prices.IsCurrency(string(state[:n])) {
			return nil, fmt.Errorf("its amounts are in %s, and currency is %s now: nothing is converted", state[:n], s.currency)
		}
		return nil, ledger.ErrState
	}
	return ledger.Restore(accounting, encoded)
}
