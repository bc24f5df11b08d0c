// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package health makes one status of a component of what fails in its parts.
package health // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/health"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// Report is the status of a component: a recoverable error while one of its
// parts fails.
type Report struct {
	Host component.Host

	mu       sync.Mutex
	problems map[string]error // by part
}

// Set sets what is wrong with a part; nil if nothing is. The part that works
// again does not hide another that still fails.
func (r *Report) Set(part string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.problems)
	if err == nil {
		delete(r.problems, part)
	} else {
		if r.problems == nil {
			r.problems = map[string]error{}
		}
		r.problems[part] = err
	}
	if len(r.problems) == 0 {
		if before > 0 {
			componentstatus.ReportStatus(r.Host, componentstatus.NewEvent(componentstatus.StatusOK))
		}
		return
	}
	var errs []error
	for _, part := range slices.Sorted(maps.Keys(r.problems)) {
		errs = append(errs, fmt.Errorf("%s: %w", part, r.problems[part]))
	}
	componentstatus.ReportStatus(r.Host, componentstatus.NewRecoverableErrorEvent(errors.Join(errs...)))
}
