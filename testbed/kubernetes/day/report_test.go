// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"os"

	"github.com/stretchr/testify/assert"
)

// report reports a figure: to the log, and to the file that DAY_REPORT names, for
// the command to print.
func (w *world) report(line string) {
	w.t.Log(line)
	path := os.Getenv("DAY_REPORT")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if !assert.NoError(w.t, err) {
		return
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	assert.NoError(w.t, err)
}
