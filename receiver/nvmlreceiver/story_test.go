// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/lifecycle"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

const board = "0000:17:00.0"

// quiet is a receiver that is not started, what it logs, and how often it has replaced helpers
// or refused values.
func quiet(t *testing.T, container bool) (r *nvmlReceiver, logs *observer.ObservedLogs, counted func(name string) int64) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { _ = telemetry.Shutdown(context.WithoutCancel(t.Context())) })
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	own, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	require.NoError(t, err)
	t.Cleanup(own.Shutdown)
	cfg := createDefaultConfig().(*Config)
	cfg.RootPath = t.TempDir()
	r, err = newReceiver(set, cfg, own, consumertest.NewNop())
	require.NoError(t, err)
	r.log.container = container
	return r, logs, func(name string) (n int64) {
		m, err := telemetry.GetMetric("otelcol_nvml_receiver_" + name)
		if err != nil {
			return 0 // nothing was counted yet
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			n += p.Value
		}
		return n
	}
}

// TestUnknownError: a helper gives way after three scrapes in which all boards return 999,
// and the line of the second one that does has what to do.
func TestUnknownError(t *testing.T) {
	for name, hint := range map[string]string{"container": "systemctl daemon-reload", "host": "run nvidia-smi on the host"} {
		t.Run(name, func(t *testing.T) {
			r, logs, counted := quiet(t, name == "container")
			plan := lifecycle.Plan{Read: []string{board}}
			for n, step := range []struct {
				returned int
				log      string
				restarts int64
			}{
				{nvmlproto.Unknown, "another helper is started", 0},
				{nvmlproto.Unknown, "", 0},
				{nvmlproto.Unknown, "", 1},
				{nvmlproto.Unknown, "", 1},
				{nvmlproto.Unknown, "", 1},
				{nvmlproto.Unknown, hint, 2},
				{nvmlproto.Unknown, "", 2},
				{nvmlproto.Success, "the driver gives GPU metrics again", 2},
				{nvmlproto.Unknown, "", 2}, // its line is not ten minutes old
				{nvmlproto.Unknown, "", 2},
				{nvmlproto.Unknown, "", 3},
			} {
				answer := helper.Answer{
					System: nvmlproto.System{Library: "l", Boards: 1},
					Boards: []nvmlproto.Board{{Thread: board, Return: step.returned}},
				}
				cause, err := r.answered(&plan, &answer, &nvml.Scrape{Time: time.Now()})
				r.log.outcome(cause, err, 1)
				text := ""
				for _, e := range logs.TakeAll() {
					text += fmt.Sprintln(e.Message, e.ContextMap())
				}
				assert.Equal(t, step.log == "", text == "", "scrape %d: %s", n+1, text)
				assert.Contains(t, text, step.log, "scrape %d", n+1)
				assert.Equal(t, step.restarts, counted("helper_restarts"), "scrape %d", n+1)
			}
		})
	}
}

// TestUnknownErrorOfInit: the next helper, to which nvmlInit returns 999, has it logged.
func TestUnknownErrorOfInit(t *testing.T) {
	r, logs, _ := quiet(t, true)
	answer := helper.Answer{System: nvmlproto.System{Library: "l", Return: nvmlproto.Unknown}}
	cause, err := r.answered(&lifecycle.Plan{}, &answer, &nvml.Scrape{Time: time.Now()})
	r.log.outcome(cause, err, 0)
	assert.Equal(t, nvmlproto.CauseUnknownError, cause)
	require.Equal(t, 1, logs.Len())
	assert.Contains(t, logs.All()[0].ContextMap()["remedy"], "systemctl daemon-reload")
}

// TestSilentEvents: a board for which waiting for events neither begins nor fails is counted
// once by helper, and is no longer one whose XIDs the driver reports.
func TestSilentEvents(t *testing.T) {
	r, logs, counted := quiet(t, false)
	other := "0000:65:00.0"
	uuids := map[string]string{board: "GPU-be839661-c0f5-7452-284b-b875666df60c", other: "GPU-5d1a9661-c0f5-7452-284b-b875666df60d"}
	r.faults.event(&nvmlproto.Event{Thread: board, Ready: true})
	start := time.Now()
	filled := func(at time.Duration) map[string]nvml.XIDs {
		s := nvml.Scrape{Time: start.Add(at)}
		for thread, uuid := range uuids {
			s.Boards = append(s.Boards, nvmlproto.Board{Thread: thread, UUID: uuid})
		}
		r.faults.fill(&s, r.mapping)
		return s.XIDs
	}
	for n, step := range []struct {
		at      time.Duration
		started bool // another helper was
		watched bool
		refused int64
	}{
		{0, false, true, 0}, {silentFor, false, true, 1}, {time.Hour, false, true, 1},
		{time.Hour, true, true, 1}, {time.Hour + silentFor - 1, false, true, 1}, {time.Hour + silentFor, false, false, 3},
	} {
		if step.started {
			r.faults.started()
		}
		got := filled(step.at)
		_, watched := got[uuids[board]]
		assert.Equal(t, step.watched, watched, "step %d", n)
		assert.NotContains(t, got, uuids[other], "step %d", n)
		assert.Equal(t, step.refused, counted("values_refused"), "step %d", n)
	}
	assert.Equal(t, 1, logs.FilterMessageSnippet("events of the driver do not begin").Len())
	r.faults.event(&nvmlproto.Event{Thread: board, Ready: true})
	assert.Contains(t, filled(2*time.Hour), uuids[board], "it began after all")
}
