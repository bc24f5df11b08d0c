// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package judge evaluates the shipped rules with Prometheus' own code, at times that a
// test chooses.
package judge

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Files are the files with rules of the repository with its root at this path.
func Files(t testing.TB, root string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "mixin", "rules", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	return found
}

// NewEngine returns Prometheus' engine with its defaults.
func NewEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
}

// Judge is Prometheus' rule manager over a storage.
type Judge struct {
	Groups []*rules.Group
}

// New returns a Judge of those groups in the files that are chosen by their names.
func New(t testing.TB, db storage.Storage, engine *promql.Engine, files []string, chosen func(group string) bool) *Judge {
	t.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		Appendable: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(),
		Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(15*time.Second, labels.EmptyLabels(), "", nil, false, files...)
	require.Empty(t, errs)
	j := &Judge{Groups: slices.DeleteFunc(slices.Collect(maps.Values(loaded)), func(g *rules.Group) bool { return !chosen(g.Name()) })}
	// What is recorded comes first.
	slices.SortFunc(j.Groups, func(a, b *rules.Group) int { return strings.Compare(b.File(), a.File()) })
	return j
}

// At evaluates everything at a time and returns the names of alerts that fire.
func (j *Judge) At(t testing.TB, at time.Time) map[string]bool {
	t.Helper()
	firing := map[string]bool{}
	for _, g := range j.Groups {
		if at.Unix()%int64(g.Interval().Seconds()) == 0 {
			g.Eval(t.Context(), at)
		}
		for _, r := range g.Rules() {
			require.NoError(t, r.LastError(), r.Name())
			alert, ok := r.(*rules.AlertingRule)
			if !ok {
				continue
			}
			for _, a := range alert.ActiveAlerts() {
				if a.State == rules.StateFiring {
					firing[r.Name()] = true
					for _, text := range []string{a.Annotations.Get("summary"), a.Annotations.Get("description")} {
						assert.NotContains(t, text, "<error expanding template", r.Name())
						assert.NotContains(t, text, "<no value>", r.Name())
					}
				}
			}
		}
	}
	return firing
}

// Named returns the names of values that begin with one of the prefixes.
func Named(values map[string]float64, prefixes ...string) (found []string) {
	for name := range values {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			found = append(found, name)
		}
	}
	return found
}
