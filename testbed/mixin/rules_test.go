// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files are those with rules.
func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "mixin", "rules", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	return found
}

// What promtool check rules checks, and that every alert has a runbook that
// exists, a severity, and texts.
func TestRuleFiles(t *testing.T) {
	for _, file := range files(t) {
		groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
		require.Empty(t, errs, file)
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					assert.Regexp(t, `^[a-z_]+:[a-z_]+:[a-z0-9]+$`, r.Record)
					continue
				}
				assert.Contains(t, []string{"critical", "warning", "info", "none"}, r.Labels["severity"], r.Alert)
				assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
				assert.NotEmpty(t, r.Annotations["description"], r.Alert)
				at, ours := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/otelcol-gpu/otelcol-gpu/blob/main/")
				assert.True(t, ours, r.Alert)
				text, err := os.ReadFile(filepath.Join(root, at))
				require.NoError(t, err, r.Alert)
				assert.Contains(t, string(text), "## What to check\n\n1. ", r.Alert)
				assert.Contains(t, string(text), "## What to do\n\n1. ", r.Alert)
			}
		}
	}
}

// judge is Prometheus' rule manager over a storage.
type judge struct {
	groups []*rules.Group
}

// about chooses groups of rules by their names.
type about func(group string) bool

func everything(string) bool { return true }

// inference are the groups that read what engines and applications report, devices those
// that do not: neither evaluates what a scenario of the other has no series for.
func inference(group string) bool {
	return group == "otelcol-gpu.inference" || group == "otelcol-gpu.applications"
}
func devices(group string) bool { return group != "otelcol-gpu.inference" }

func newJudge(t *testing.T, db storage.Storage, engine *promql.Engine, of about) *judge {
	t.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		Appendable: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(),
		Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(15*time.Second, labels.EmptyLabels(), "", nil, false, files(t)...)
	require.Empty(t, errs)
	j := &judge{groups: slices.DeleteFunc(slices.Collect(maps.Values(loaded)), func(g *rules.Group) bool { return !of(g.Name()) })}
	// What is recorded comes first.
	slices.SortFunc(j.groups, func(a, b *rules.Group) int { return strings.Compare(b.File(), a.File()) })
	return j
}

// at evaluates everything at a time and returns the names of alerts that fire.
func (j *judge) at(t *testing.T, at time.Time) map[string]bool {
	t.Helper()
	firing := map[string]bool{}
	for _, g := range j.groups {
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
