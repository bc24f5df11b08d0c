// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
)

const (
	stateKey = "state"
	// closeWithin is how long the storage may take to close.
	closeWithin = 5 * time.Second
)

// store keeps the state in a storage extension. What is stored begins with the currency,
// since the ledger's prices have none.
type store struct {
	client   storage.Client
	currency []byte
}

func (s *store) write(ctx context.Context, state []byte) error {
	return s.client.Set(ctx, stateKey, append(s.currency[:len(s.currency):len(s.currency)], state...))
}

func (s *store) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	late := fmt.Errorf("storage: it does not close within %s", closeWithin)
	return durable.Within(closeWithin+time.Second, late, func() error {
		defer cancel()
		return s.client.Close(ctx)
	})
}

// restore opens the storage and continues with what is stored. What is invalid is logged and
// replaced; what cannot be read now is an error, since it must not be overwritten.
func (c *gpuCost) restore(ctx context.Context, host component.Host, accounting ledger.Config) ([]ledger.Total, error) {
	client, damaged, err := durable.Open(ctx, host, component.KindConnector, *c.cfg.Storage, c.set.ID)
	if err != nil {
		return nil, err
	}
	if damaged != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		c.set.Logger.Error("storage file is damaged, using a second one: counters may begin again at 0; remove the damaged file", zap.Error(damaged))
	}
	stored, err := (&durable.Value[struct{}]{Client: client, Key: stateKey, Name: "the state of gpu_cost"}).Read(ctx)
	if err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		return nil, err
	}
	c.store = &store{client: client, currency: []byte(c.cfg.Currency)}
	if len(stored) == 0 {
		return nil, nil
	}
	l, err := c.decode(stored, accounting)
	if err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		c.set.Logger.Error("stored state cannot be used, starting with an empty one: counters begin again at 0, with a new start time", zap.Error(err))
		return nil, nil
	}
	c.ledger = l
	return l.Totals(), nil
}

func (c *gpuCost) decode(stored []byte, accounting ledger.Config) (*ledger.Ledger, error) {
	state, same := bytes.CutPrefix(stored, c.store.currency)
	if !same {
		if n := len(c.store.currency); len(stored) > n && isCurrency(stored[:n]) {
			return nil, fmt.Errorf("its amounts are in %s, and currency is %s now: nothing is converted", stored[:n], c.cfg.Currency)
		}
		return nil, errors.New("it is damaged")
	}
	return ledger.Restore(accounting, state)
}

func isCurrency(text []byte) bool {
	return len(bytes.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) == 0
}
