// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"fmt"
	"net"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Outputs are what collectors send to.
type Outputs struct {
	Recorder *judge.Recorder
	Webhooks []*delivery.Receiver
	clogged  net.Listener // a backend that takes nothing
	events   int          // of a run, about
}

// OpenOutputs starts them for a run of some duration. Close ends them, also after an
// error.
func OpenOutputs(seed uint64, duration time.Duration) (o *Outputs, err error) {
	o = &Outputs{events: 200 + int(duration/(2*time.Second))}
	if o.Recorder, err = judge.Record(); err != nil {
		return o, err
	}
	if o.Webhooks, err = webhooks(seed, 7, max(30, int(duration/(4*time.Second)))); err != nil {
		return o, err
	}
	// Connections wait for a server to accept them.
	o.clogged, err = net.Listen("tcp", collector.Address(0))
	return o, err
}

// Close ends all servers.
func (o *Outputs) Close() {
	for _, r := range o.Webhooks {
		r.Close()
	}
	if o.Recorder.Server != nil {
		o.Recorder.Close()
	}
	if o.clogged != nil {
		_ = o.clogged.Close()
	}
}

// webhooks starts n receivers of so many events, each of which misbehaves in its own way.
func webhooks(seed uint64, n, events int) ([]*delivery.Receiver, error) {
	ports, err := collector.Free(n)
	if err != nil {
		return nil, err
	}
	var out []*delivery.Receiver
	for i := range n {
		r, err := delivery.Listen(seed, i, events, ports[i])
		if err != nil {
			for _, r := range out {
				r.Close()
			}
			return nil, fmt.Errorf("webhook receiver %d: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}
