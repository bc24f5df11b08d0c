// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// What promtool check rules checks, and that every alert has a runbook that
// exists, a severity, and texts.
func TestRuleFiles(t *testing.T) {
	for _, file := range judge.Files(t, root) {
		groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
		require.Empty(t, errs, file)
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					assert.Regexp(t, `^[a-z_]+:[a-z0-9_]+(:[a-z0-9]+)?$`, r.Record)
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

// about chooses groups of rules by their names.
type about func(group string) bool

func everything(string) bool { return true }

// inference are the groups that read what engines and applications report, devices those
// that do not: neither evaluates what a scenario of the other has no series for.
func inference(group string) bool {
	return group == "otelcol-gpu.inference" || group == "otelcol-gpu.applications"
}
func devices(group string) bool { return group != "otelcol-gpu.inference" }
func ofScheduling(group string) bool {
	return group == "otelcol-gpu.scheduling" || group == "otelcol-gpu.queues"
}
func ofTraining(group string) bool    { return group == "otelcol-gpu.training" }
func ofCollectives(group string) bool { return group == "otelcol-gpu.collectives" }

func newJudge(t *testing.T, db storage.Storage, engine *promql.Engine, of about) *judge.Judge {
	t.Helper()
	return judge.New(t, db, engine, judge.Files(t, root), of)
}
