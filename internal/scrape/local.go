// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// ErrAbsent is what Local.Page returns where the machine has nothing to read.
var ErrAbsent = errors.New("there is nothing to read")

// Local is a source of pages on this machine, in the place of an exporter: there are no
// endpoints, and no discovery.
type Local struct {
	// Name stands for the exporter's URL in logs and own metrics, and for its address.
	Name string
	// Page writes a page into memory, or into more, and returns it. Of a machine for which
	// it has returned nothing but ErrAbsent, nothing is emitted, counted or logged.
	Page func(ctx context.Context, memory []byte) ([]byte, error)
}

func (l *Local) location(job string) location {
	return location{url: l.Name, name: l.Name, job: job, instance: l.Name, exporter: devicemap.Exporter{Address: l.Name}}
}
