// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func at(second int) time.Time { return t0.Add(time.Duration(second) * time.Second) }

func TestStates(t *testing.T) {
	is := func(second int, state string, value float64) StatePoint {
		return StatePoint{"chat", "a", state, at(second), value, false}
	}
	ended := func(second int, state string) StatePoint {
		return StatePoint{"chat", "a", state, at(second), 0, true}
	}
	for name, tt := range map[string]struct {
		batches [][]StatePoint
		finds   int
	}{
		"a state that was left":                       {[][]StatePoint{{is(1, "warming", 1)}, {is(2, "reporting", 1), is(2, "warming", 0)}}, 0},
		"the 0 was in a batch that was refused":       {[][]StatePoint{{is(1, "warming", 1)}, {is(3, "reporting", 1)}}, 1},
		"and sent again":                              {[][]StatePoint{{is(1, "warming", 1)}, {is(2, "warming", 0), is(3, "reporting", 1)}}, 0},
		"a restart does not know what it was":         {[][]StatePoint{{is(1, "reporting", 1)}, {is(9, "warming", 1)}}, 1},
		"a restart says what it is not":               {[][]StatePoint{{is(1, "reporting", 1)}, {is(9, "warming", 1), is(9, "reporting", 0)}}, 0},
		"a series that ended":                         {[][]StatePoint{{is(1, "reporting", 1)}, {ended(2, "reporting")}, {is(3, "warming", 1)}}, 0},
		"longer ago than stores look back":            {[][]StatePoint{{is(1, "reporting", 1)}, {is(400, "warming", 1)}}, 0},
		"a batch that comes late changes nothing":     {[][]StatePoint{{is(2, "reporting", 1), is(2, "warming", 0)}, {is(1, "warming", 1)}}, 0},
		"of another service there is no word to keep": {[][]StatePoint{{is(1, "reporting", 1)}, {{"other", "a", "warming", at(2), 1, false}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var s States
			found := 0
			for _, b := range tt.batches {
				found += len(s.Observe(b))
			}
			assert.Equal(t, tt.finds, found)
		})
	}
}

func TestOldXIDs(t *testing.T) {
	reported := []XID{{"GPU-1", "79", at(10)}, {"GPU-1", "79", at(100)}}
	for name, tt := range map[string]struct {
		raised XID
		finds  int
	}{
		"at once":                     {XID{"GPU-1", "79", at(12)}, 0},
		"the second":                  {XID{"GPU-1", "79", at(101)}, 0},
		"once more, minutes later":    {XID{"GPU-1", "79", at(400)}, 1},
		"before the second":           {XID{"GPU-1", "79", at(90)}, 1},
		"a code that nobody injected": {XID{"GPU-1", "31", at(400)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, OldXIDs([]XID{tt.raised}, reported, time.Minute), tt.finds)
		})
	}
}

func TestNotFrozen(t *testing.T) {
	for name, tt := range map[string]struct {
		frozen Frozen
		known  bool
	}{
		"the agent saw pages that differ":             {Frozen{From: at(10), Agent: at(1)}, true},
		"the agent is younger than the pages":         {Frozen{From: at(10), Agent: at(15)}, false},
		"the agent before said so":                    {Frozen{From: at(10), Agent: at(25)}, true},
		"the pages change again":                      {Frozen{From: at(10), To: at(18), Agent: at(15)}, true},
		"the pages changed again only after the word": {Frozen{From: at(10), To: at(30), Agent: at(15)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.known, (&NotFrozen{"a", at(20)}).Known(tt.frozen))
		})
	}
}
