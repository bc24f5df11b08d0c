// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sharedcomponent

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

var errPort, errDisk = errors.New("port in use"), errors.New("disk is full")

// counted fails, and counts its calls.
type counted struct{ starts, stops int }

func (c *counted) Start(context.Context, component.Host) error { c.starts++; return errPort }
func (c *counted) Shutdown(context.Context) error              { c.stops++; return errDisk }

func TestShared(t *testing.T) {
	var m Map[*counted]
	create := func() (*counted, error) { return new(counted), nil }
	type config struct{ _ int }
	cfg := new(config)
	one, err := m.Get(cfg, create)
	require.NoError(t, err)
	same, err := m.Get(cfg, create)
	require.NoError(t, err)
	require.Same(t, one, same)
	other, err := m.Get(new(config), create)
	require.NoError(t, err)
	require.NotSame(t, one, other)

	for range 2 {
		require.ErrorIs(t, one.Start(t.Context(), nil), errPort, "every output fails that has none")
	}
	require.ErrorIs(t, one.Shutdown(t.Context()), errDisk)
	again, err := m.Get(cfg, create)
	require.NoError(t, err)
	require.NotSame(t, one, again)
	require.NoError(t, one.Shutdown(t.Context()), "it is down")
	assert.Equal(t, counted{starts: 1, stops: 1}, *one.Component)
	same, err = m.Get(cfg, create)
	require.NoError(t, err)
	assert.Same(t, again, same, "the end of the old one does not end the new one")
}

func TestSharedThatCannotBeCreated(t *testing.T) {
	var m Map[*counted]
	_, err := m.Get(1, func() (*counted, error) { return nil, errPort })
	require.ErrorIs(t, err, errPort)
	_, err = m.Get(1, func() (*counted, error) { return new(counted), nil })
	require.NoError(t, err)
}
