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
	stateKey    = "state"
	readingsKey = "readings"
	// closeWithin is how long the storage may take to close.
	closeWithin = 5 * time.Second
)

// errSilent is the error of a write that has not returned.
var errSilent = fmt.Errorf("storage: it does not answer for %s: see that its disk or server does", answerWithin)

// store keeps the state in a storage extension. What is stored begins with the currency,
// since the ledger's prices have none.
type store struct {
	client   storage.Client
	currency []byte
	writes   lone
}

// write stores a state, and what gauges reported; nil: none is read.
func (s *store) write(ctx context.Context, state, readings []byte) error {
	return s.writes.run(ctx, errSilent, func() error {
		if readings != nil {
			if err := s.client.Set(ctx, readingsKey, readings); err != nil {
				return err
			}
		}
		return s.client.Set(ctx, stateKey, append(s.currency[:len(s.currency):len(s.currency)], state...))
	})
}

func (s *store) close(ctx context.Context) error {
	if s.writes.pending != nil {
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

// readings returns what gauges reported before the restart.
func (s *store) readings(ctx context.Context) ([]byte, error) {
	return (&durable.Value[struct{}]{Client: s.client, Key: readingsKey, Name: "the prices of gpu_cost"}).Read(ctx)
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
