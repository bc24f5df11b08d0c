// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package mixin is what Grafana and Prometheus are given: dashboards, recording
// rules, alerts and their runbooks. They are written here in Go and generated
// into dashboards/, rules/ and ../docs/runbooks/, so that a name is written once:
// in internal/queries, from which the console asks too.
package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/markdown"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

//go:generate go run ./cmd/mixin

// Elsewhere reports whether a file of Folders is generated elsewhere: the runbooks of
// the reasons against a board, which gpu_events writes.
func Elsewhere(path string) bool {
	return strings.HasPrefix(path, "../docs/runbooks/health-")
}

// Folders hold generated files and nothing else; relative to mixin/.
var Folders = []string{"dashboards", "rules", "../docs/runbooks"}

// Files are the generated files, by their path relative to mixin/.
func Files() (map[string][]byte, error) {
	files, err := ruleFiles()
	if err != nil {
		return nil, err
	}
	for _, board := range dashboards() {
		built, err := board.build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", board.uid, err)
		}
		text, err := json.MarshalIndent(built, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", board.uid, err)
		}
		files["dashboards/"+board.uid+".json"] = append(text, '\n')
	}
	return files, nil
}

// ruleFile is a file of rules as Prometheus reads it.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []rule `yaml:"rules"`
}

type rule struct {
	Record        string            `yaml:"record,omitempty"`
	Alert         string            `yaml:"alert,omitempty"`
	Expr          string            `yaml:"expr"`
	For           string            `yaml:"for,omitempty"`
	KeepFiringFor string            `yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations,omitempty"`
}

// runbooks is where the runbooks can be read.
const runbooks = "https://github.com/otelcol-gpu/otelcol-gpu/blob/main/docs/runbooks/"

// Severities: page someone, look today, no notification.
const (
	critical = "critical"
	warning  = "warning"
	info     = "info"
)

// alert is one alert and its runbook.
type alert struct {
	name     string
	expr     string
	wait     string // for how long it must be so
	severity string
	cause    bool   // of a state of a board: see options
	state    bool   // it is the state of a board
	event    string // of gpu_events, for the same condition
	summary  string // one line, with labels
	meaning  string // what is the case
	bound    string // appended to that in the alert, not in the runbook
	check    []string
	do       []string
}

// group is alerts that belong together.
type group struct {
	name   string
	alerts []alert
}

func (a alert) rule(o options) rule {
	labels := map[string]string{"severity": o.severityOf(a)}
	if a.event != "" {
		labels["gpu_event"] = a.event
	}
	return rule{
		Alert: a.name, Expr: a.expr, For: a.wait, Labels: labels,
		Annotations: map[string]string{"summary": a.summary, "description": a.meaning + a.bound, "runbook_url": runbooks + a.name + ".md"},
	}
}

// runbook is the page of an alert, which refers to the rule in a file of the folder rules.
func (a alert) runbook(file string, o options) []byte {
	var b strings.Builder
	b.WriteString("# " + a.name + "\n\n")
	markdown.Wrap(&b, "", a.meaning)
	severity := "Severity: " + o.severityOf(a) + "."
	if a.wait != "" {
		severity += " Fires after " + a.wait + "."
	}
	severity += o.otherwise(a)
	if a.event != "" {
		severity += " Webhooks receive the event `" + a.event + "` for it, sooner and with more detail."
	}
	b.WriteString("\n")
	markdown.Wrap(&b, "", severity)
	b.WriteString("\nExpression: `" + a.name + "` in [mixin/" + file + "](../../mixin/" + file + ").\n")
	for _, part := range []struct {
		title string
		lines []string
	}{{"What to check", a.check}, {"What to do", a.do}} {
		b.WriteString("\n## " + part.title + "\n\n")
		for i, line := range part.lines {
			markdown.Wrap(&b, strconv.Itoa(i+1)+". ", line)
		}
	}
	return []byte(b.String())
}

// index lists the runbooks.
func index(groups []group, o options) []byte {
	var b strings.Builder
	b.WriteString("# Runbooks\n\nOne page for each alert of [mixin/rules](../../mixin/rules): what it means, what to check, what to\n" +
		"do. The last column is the event that `gpu_events` raises for the same condition.\n")
	for _, g := range groups {
		b.WriteString("\n## " + g.name + "\n\n| alert | severity | event |\n|---|---|---|\n")
		for _, a := range g.alerts {
			event := ""
			if a.event != "" {
				event = "`" + a.event + "`"
			}
			b.WriteString("| [" + a.name + "](" + a.name + ".md) | " + o.severityOf(a) + " | " + event + " |\n")
		}
	}
	b.WriteString("\n## Reasons against a board\n\nOf the metric `gpu_health_reason`, the event `gpu.health` and the alerts about the health of a\n" +
		"board: [docs/health.md](../health.md).\n\n| reason | state | action |\n|---|---|---|\n")
	for _, r := range names.HealthReasons() {
		b.WriteString("| [" + r.Name + "](" + r.Runbook() + ") | " + r.State + " | " + r.Action + " |\n")
	}
	b.WriteString("| [count](health-count.md), of a node | " + health.Failed.String() + " | " + health.CheckMechanics.String() + " |\n")
	return []byte(b.String())
}

// ruleFiles are the rules and the runbooks of the alerts.
func ruleFiles() (map[string][]byte, error) {
	promised, err := readObjectives(objectivesYAML)
	if err != nil {
		return nil, fmt.Errorf("objectives.yaml: %w", err)
	}
	o, err := readOptions(optionsYAML)
	if err != nil {
		return nil, err
	}
	inference := inferenceAlerts(promised)
	files := map[string][]byte{"../docs/runbooks/README.md": index(append(alerts(o), inference...), o)}
	for file, groups := range map[string][]group{"rules/alerts.yaml": alerts(o), "rules/alerts-inference.yaml": inference} {
		var out ruleFile
		for _, g := range groups {
			rules := ruleGroup{Name: g.name}
			for _, a := range g.alerts {
				rules.Rules = append(rules.Rules, a.rule(o))
				files["../docs/runbooks/"+a.name+".md"] = a.runbook(file, o)
			}
			out.Groups = append(out.Groups, rules)
		}
		text, err := asYAML(out)
		if err != nil {
			return nil, err
		}
		files[file] = text
	}
	text, err := asYAML(recording(promised))
	if err != nil {
		return nil, err
	}
	files["rules/recording.yaml"] = text
	return files, nil
}

func asYAML(f ruleFile) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Generated by make generate from mixin/. Rules for Prometheus, Mimir and Thanos.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
