// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// maxConditions bounds what a receiver's conditions remembers. Beyond it a
// clearing is sent although its raising was not: harmless, where the reverse
// is not.
const maxConditions = 10_000

// Filter selects the events that an endpoint wants.
type Filter struct {
	patterns    []string
	MinSeverity plog.SeverityNumber
}

func NewFilter(key string, patterns []string, minSeverity string) (Filter, error) {
	var errs []error
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			errs = append(errs, fmt.Errorf("%s::events[%d]: %q is not a pattern; write an event's name, with * for any part, as in gpu.service.*", key, i, p))
			continue
		}
		if remedy := mistaken(p); remedy != "" {
			errs = append(errs, fmt.Errorf("%s::events[%d]: %q matches no event: %s", key, i, p, remedy))
		}
	}
	severity, ok := eventrecord.ParseSeverity(minSeverity)
	if !ok && minSeverity != "" {
		errs = append(errs, fmt.Errorf("%s::min_severity: %q is not one of trace, debug, info, warn, error, fatal", key, minSeverity))
	}
	return Filter{patterns: patterns, MinSeverity: severity}, errors.Join(errs...)
}

// mistaken returns what to do about a pattern on GPU events that matches none of
// them. Patterns on other events are not judged: who sends those is not known.
func mistaken(pattern string) (remedy string) {
	spelled := strings.ReplaceAll(strings.ToLower(pattern), ":", ".")
	if !strings.HasPrefix(spelled, "gpu.") || matchesEvent(pattern) {
		return ""
	}
	if matchesEvent(spelled) {
		return fmt.Sprintf("write %s", spelled)
	}
	known := names.Events()
	candidates := slices.Clone(known)
	for _, name := range known {
		if strings.HasSuffix(name, strings.TrimPrefix(spelled, "gpu")) {
			return fmt.Sprintf("did you mean %s?", name)
		}
		if parts := strings.Split(name, "."); len(parts) > 2 {
			candidates = append(candidates, parts[0]+"."+parts[1]+".*")
		}
	}
	if near := configkeys.Nearest(spelled, candidates); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "there are " + strings.Join(known, ", ")
}

func matchesEvent(pattern string) bool {
	return slices.ContainsFunc(names.Events(), func(name string) bool {
		ok, _ := path.Match(pattern, name) // checked by newFilter
		return ok
	})
}

// Matches reports whether the receiver wants events of this name.
func (f *Filter) Matches(name string) bool {
	if len(f.patterns) == 0 {
		return true
	}
	for _, p := range f.patterns {
		if ok, _ := path.Match(p, name); ok { // checked by newFilter
			return true
		}
	}
	return false
}

// Conditions remembers, by event key, whether a receiver with min_severity was
// sent a condition that is still raised. A clearing is an info event, so
// min_severity alone would withhold every one of them, and a receiver that was
// sent an error would never learn that it is over: a clearing follows its
// raising instead. A clearing of which nothing is known (after a restart) is
// sent.
//
// Safe for concurrent use.
type Conditions struct {
	mu   sync.Mutex
	sent map[string]bool
}

// Withholds reports whether the event is not for a receiver with this
// min_severity.
func (c *Conditions) Withholds(minSeverity, severity plog.SeverityNumber, state, key string) bool {
	if minSeverity == plog.SeverityNumberUnspecified {
		return false
	}
	low := severity < minSeverity
	if key == "" || state != names.EventRaised && state != names.EventCleared {
		return low
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, known := c.sent[key]
	if state == names.EventCleared {
		delete(c.sent, key)
		return known && !sent
	}
	if known || len(c.sent) < maxConditions {
		if c.sent == nil {
			c.sent = map[string]bool{}
		}
		c.sent[key] = sent || !low
	}
	return low
}
