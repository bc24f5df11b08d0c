// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

// emit maps a scrape and hands it to the next component. The metrics are lost if that
// refuses them: the next scrape is newer.
func (r *nvmlReceiver) emit(s *nvml.Scrape, outcome nvmlproto.Cause, err error) {
	r.faults.fill(s, r.mapping)
	result := r.mapping.Map(s)
	r.log.mapped(&result)
	r.log.outcome(outcome, err, result.Devices)
	ctx := context.Background()
	r.log.own.NvmlReceiverDevices.Add(ctx, int64(result.Devices-r.devices))
	r.devices = result.Devices
	points := result.Metrics.DataPointCount()
	if points == 0 {
		return
	}
	ctx = r.obs.StartMetricsOp(ctx) // a shutdown waits for it
	err = r.next.ConsumeMetrics(ctx, result.Metrics)
	r.obs.EndMetricsOp(ctx, "nvml", points, err)
	r.log.delivered(err)
}

// stuckNow are the boards of the helper with calls that do not return.
func (r *nvmlReceiver) stuckNow() []helper.Late {
	if p := r.keeper.Running(); p != nil {
		return p.Stuck()
	}
	return nil
}

// countStuck updates the number of boards that are stuck.
func (r *nvmlReceiver) countStuck() {
	stuck := len(r.stuckNow())
	r.log.own.NvmlReceiverStuck.Add(context.Background(), int64(stuck-r.stuck))
	r.stuck = stuck
}
