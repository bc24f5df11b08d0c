// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

type host struct{ events []*componentstatus.Event }

func (*host) GetExtensions() map[component.ID]component.Component { return nil }
func (h *host) Report(e *componentstatus.Event)                   { h.events = append(h.events, e) }

// A part that works again does not hide another that still fails.
func TestPartsShareAStatus(t *testing.T) {
	h := &host{}
	r := Report{Host: h}
	last := func() string {
		e := h.events[len(h.events)-1]
		if e.Err() == nil {
			return e.Status().String()
		}
		return e.Status().String() + ": " + e.Err().Error()
	}
	r.Set("audit", nil)
	assert.Empty(t, h.events)
	r.Set("storage", errors.New("full"))
	r.Set("audit", errors.New("full too"))
	assert.Equal(t, "StatusRecoverableError: audit: full too\nstorage: full", last())
	r.Set("audit", nil)
	assert.Equal(t, "StatusRecoverableError: storage: full", last())
	r.Set("storage", nil)
	assert.Equal(t, "StatusOK", last())
}
