// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestFilter(t *testing.T) {
	tests := []struct {
		patterns []string
		name     string
		want     bool
	}{
		{nil, "gpu.xid", true},
		{[]string{"gpu.xid"}, "gpu.xid", true},
		{[]string{"gpu.xid"}, "gpu.xid.other", false},
		{[]string{"gpu.service.*"}, "gpu.service.partial", true},
		{[]string{"gpu.service.*"}, "gpu.service", false},
		{[]string{"gpu.service.*"}, "gpu.node.lost", false},
		{[]string{"gpu.*"}, "gpu.service.partial", true},
		{[]string{"*"}, "anything", true},
		{[]string{"*.lost"}, "gpu.node.lost", true},
		{[]string{"gpu.node.lost", "gpu.xi?"}, "gpu.xid", true},
	}
	for _, tt := range tests {
		f, err := NewFilter("receivers::ops", tt.patterns, "")
		require.NoError(t, err)
		assert.Equal(t, tt.want, f.Matches(tt.name), "%v on %q", tt.patterns, tt.name)
	}
}

// A clearing is an info event and follows its raising.
func TestMinSeverity(t *testing.T) {
	const info, warn, fault = plog.SeverityNumberInfo, plog.SeverityNumberWarn, plog.SeverityNumberError
	type step struct {
		severity plog.SeverityNumber
		state    string
		key      string
		sent     bool
	}
	tests := []struct {
		name  string
		min   string
		steps []step
	}{
		{"no minimum", "", []step{{info, names.EventRaised, "k", true}, {info, names.EventCleared, "k", true}}},
		{"raised, so cleared", "error", []step{{fault, names.EventRaised, "k", true}, {info, names.EventCleared, "k", true}}},
		{"not raised, so not cleared", "error", []step{{warn, names.EventRaised, "k", false}, {info, names.EventCleared, "k", false}}},
		{"equal is enough", "warn", []step{{warn, names.EventRaised, "k", true}}},
		{"keys apart", "error", []step{{fault, names.EventRaised, "a", true}, {warn, names.EventRaised, "b", false}, {info, names.EventCleared, "b", false}, {info, names.EventCleared, "a", true}}},
		{"it grew worse", "error", []step{{warn, names.EventRaised, "k", false}, {fault, names.EventRaised, "k", true}, {info, names.EventCleared, "k", true}}},
		{"it grew better", "error", []step{{fault, names.EventRaised, "k", true}, {warn, names.EventRaised, "k", false}, {info, names.EventCleared, "k", true}}},
		{"a second turn", "error", []step{{fault, names.EventRaised, "k", true}, {info, names.EventCleared, "k", true}, {warn, names.EventRaised, "k", false}, {info, names.EventCleared, "k", false}}},
		{"raised before a restart", "error", []step{{info, names.EventCleared, "k", true}}},
		{"neither raised nor cleared", "error", []step{{info, "", "k", false}, {fault, "", "k", true}}},
		{"no key", "error", []step{{info, names.EventCleared, "", false}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewFilter("receivers::ops", nil, tt.min)
			require.NoError(t, err)
			var c Conditions
			for i, s := range tt.steps {
				assert.Equal(t, s.sent, !c.Withholds(f.MinSeverity, s.severity, s.state, s.key), "step %d", i)
			}
			assert.LessOrEqual(t, len(c.sent), 1, "what is over is forgotten")
		})
	}
}

func TestConditionsAreBounded(t *testing.T) {
	var c Conditions
	for i := range maxConditions + 10 {
		c.Withholds(plog.SeverityNumberError, plog.SeverityNumberWarn, names.EventRaised, time.Duration(i).String())
	}
	assert.Len(t, c.sent, maxConditions)
}
