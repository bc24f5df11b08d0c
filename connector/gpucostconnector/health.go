// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// unstoredFor is how long the state may be unstored until the component's status is an
// error. A write that hangs counts as one that fails.
const unstoredFor = 10 * time.Minute

// health is the component's status, by what becomes of writes of the state.
type health struct {
	mu     sync.Mutex
	host   component.Host // nil: not running
	logger *zap.Logger
	since  time.Time   // the first write that is not done; zero: the last one is
	alarm  *time.Timer // unstoredFor after it
	bad    bool        // the status is an error
}

func (h *health) start(host component.Host, logger *zap.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host, h.logger = host, logger
}

// writing notes that a write begins.
func (h *health) writing(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since, h.alarm = now, time.AfterFunc(unstoredFor, h.raise)
	}
}

// written notes that a write is done. again: others had failed for long before.
func (h *health) written() (again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return false
	}
	h.alarm.Stop()
	h.since, again, h.bad = time.Time{}, h.bad, false
	if again && h.host != nil {
		componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
	return again
}

func (h *health) raise() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() || h.host == nil {
		return
	}
	h.bad = true
	err := fmt.Errorf("the state of gpu_cost is not stored since %s: what is emitted stands still; see that the disk of its storage has room and answers", h.since.UTC().Format(time.RFC3339))
	h.logger.Error("state is not stored", zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(err))
}

// stop ends reports: the Collector reports the rest itself.
func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = nil
	if h.alarm != nil {
		h.alarm.Stop()
	}
}
