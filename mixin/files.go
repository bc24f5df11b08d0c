// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package mixin is what Grafana and Prometheus are given: dashboards, recording
// rules, alerts and their runbooks. They are written here in Go and generated
// into dashboards/, rules/ and ../docs/runbooks/, so that a name is written once:
// in internal/queries, from which the console asks too.
package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"encoding/json"
	"fmt"
	"strings"
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
