// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFleet(t *testing.T, cfg Config) (*Fleet, *pagetest.Clock) {
	t.Helper()
	c := pagetest.NewClock()
	fl, err := New(cfg, c.Now)
	require.NoError(t, err)
	return fl, c
}

// page parses the page of a node at a time since the start.
func page(t *testing.T, fl *Fleet, node string, at time.Duration) pagetest.Page {
	t.Helper()
	b, err := fl.Page(node, fl.Start().Add(at))
	require.NoError(t, err)
	return pagetest.Parse(t, b)
}

// oneNode is a fleet of one node, called n.
func oneNode(n Node) Config {
	n.Name = "n"
	return Config{Seed: 7, Nodes: []Node{n}}
}
