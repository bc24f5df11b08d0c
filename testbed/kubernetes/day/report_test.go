// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"os"
	"strings"

	"github.com/stretchr/testify/assert"
)

// report reports a figure, and what was found wrong in it: to the log, and to the file
// that DAY_REPORT names, which the command prints last.
func (w *world) report(figure string, findings ...string) {
	text := strings.Join(append([]string{figure}, findings...), "\n")
	w.t.Log(text)
	path := os.Getenv("DAY_REPORT")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if !assert.NoError(w.t, err) {
		return
	}
	defer f.Close()
	_, err = f.WriteString(text + "\n")
	assert.NoError(w.t, err)
}
