// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/problems"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// lookInterval is how often the disk is looked at where nothing arrives.
const lookInterval = 10 * time.Second

// health knows what the store cannot keep, and reports it: once in the log when
// it begins and once when it is over, and as the component's status.
type health struct {
	*problems.Tracker
	directory string
	logger    *zap.Logger
	now       func() time.Time

	mu   sync.Mutex // orders reports of the status
	host component.Host
	bad  string // the status that was reported last; empty is OK
}

// raise notes a problem of n samples or entries.
func (h *health) raise(source problems.Source, p store.Problem) {
	if !h.Raise(source, h.now(), p) {
		return
	}
	fields := []zap.Field{zap.String("part", string(p.Part)), zap.String("reason", string(p.Reason)), zap.String("meaning", p.Detail), zap.Int64("refused", p.Refused)}
	if !p.Fault() {
		message := "samples are not stored; extension_gpu_store_samples_refused counts them"
		if p.Part == store.UsageRows {
			message = "rows of usage are not stored; extension_gpu_store_log_failures counts them"
		}
		h.logger.Warn(message, fields...)
		return
	}
	h.logger.Error("the store does not keep what arrives", append(fields, zap.String("directory", h.directory))...)
	h.report()
}

// over logs problems that have ended.
func (h *health) over(ended []store.Problem) {
	for i := range ended {
		p := &ended[i]
		if p.Fault() {
			h.logger.Info("the store keeps what arrives again", zap.String("part", string(p.Part)), zap.String("reason", string(p.Reason)),
				zap.Int64("refused", p.Refused), zap.Duration("lasted", p.Ended.Sub(p.Since)))
		}
	}
	if len(ended) > 0 {
		h.report()
	}
}

// start begins to report the status to a host.
func (h *health) start(host component.Host) {
	h.mu.Lock()
	h.host = host
	h.mu.Unlock()
	h.report()
}

// stop ends that: the Collector reports the rest itself.
func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = nil
}

// report reports the status, if it changed.
func (h *health) report() {
	h.mu.Lock()
	defer h.mu.Unlock()
	bad := ""
	for _, p := range h.All() {
		if p.Fault() && p.Ended.IsZero() {
			bad = fmt.Sprintf("%s are not stored: %s, since %s", p.Part, p.Reason, p.Since.UTC().Format(time.RFC3339))
			break
		}
	}
	if h.host == nil || bad == h.bad {
		return
	}
	h.bad = bad
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if bad != "" {
		event = componentstatus.NewRecoverableErrorEvent(errors.New(bad))
	}
	componentstatus.ReportStatus(h.host, event)
}

// written notes that a part was written: whatever kept it from that is over.
func (h *health) written(part store.Part) {
	h.over(h.End(h.now(), part, problems.Look, problems.Write))
}

// failed notes that n entries or samples of a part were not written.
func (h *health) failed(part store.Part, n int, err error) {
	reason := diskfault.Cause(err)
	if errors.Is(err, journal.ErrBusy) {
		reason = store.DiskSlow
	}
	h.raise(problems.Write, store.Problem{Part: part, Reason: reason, Refused: int64(n), Detail: err.Error()})
}

// refused notes what an engine refused without an error.
func (h *health) refused(why store.Refusal, n int, detail string) {
	source := problems.Content
	if why == store.DiskFull || why == store.StorageLimit {
		source = problems.Look
	}
	h.raise(source, store.Problem{Part: store.Samples, Reason: why, Refused: int64(n), Detail: detail})
}

// refusedRows notes rows of usage that were not taken.
func (h *health) refusedRows(why store.Refusal, n int, err error) {
	h.raise(problems.Content, store.Problem{Part: store.UsageRows, Reason: why, Refused: int64(n), Detail: err.Error()})
}

// look looks at the disk, also where nothing arrives.
func (g *gpuStore) look() {
	if e, ok := g.engine.(*embedded.Engine); ok {
		if why := e.Refusal(); why != "" {
			g.health.refused(why, 0, g.meaningOf(why))
		} else {
			g.health.over(g.health.End(g.now(), store.Samples, problems.Look))
		}
	}
	g.log.retry(g.now())
	g.health.over(g.health.Settle(g.now()))
}

// watch looks again and again.
func (g *gpuStore) watch(ended <-chan struct{}) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			g.look()
		}
	}
}
