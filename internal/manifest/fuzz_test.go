// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run that fails only because Go did not stop in time is repeated once; what else
// fails is a failure, and its lines are at the end.
func TestScriptFuzz(t *testing.T) {
	const (
		elapsed = "fuzz: elapsed: 5s, execs: 12 (2/sec), new interesting: 0 (total: 3)\n"
		end     = "FAIL\nexit status 1\nFAIL\texample.com/spool\t5.1s\n"
		expired = elapsed + "--- FAIL: FuzzDecodeStored (5.10s)\n    context deadline exceeded\n" + end
		crashed = elapsed + "--- FAIL: FuzzDecodeStored (5.10s)\n    --- FAIL: FuzzDecodeStored (0.00s)\n" +
			"        x_test.go:9: context deadline exceeded\n    \n" +
			"    Failing input written to testdata/fuzz/FuzzDecodeStored/582528ddfad69eb5\n" + end
		passed  = elapsed + "PASS\nok  \texample.com/spool\t5.1s\n"
		unbuilt = "FAIL\texample.com/spool [build failed]\nFAIL\n"
	)
	for name, tt := range map[string]struct {
		runs  []string // what they print
		ended string
		last  string
	}{
		"clean":                   {[]string{passed}, "5s | 12 | clean", "failed: 0, repeated (golang/go#75804): 0"},
		"not stopped":             {[]string{expired, passed}, "5s | 12 | clean", "failed: 0, repeated (golang/go#75804): 1"},
		"never stopped":           {[]string{expired, expired}, "5s | 12 | **failed**", "failed: 1, repeated (golang/go#75804): 1"},
		"an input fails":          {[]string{crashed}, "5s | 12 | **failed**", "failed: 1, repeated (golang/go#75804): 0"},
		"an input fails, then":    {[]string{expired, crashed}, "5s | 12 | **failed**", "failed: 1, repeated (golang/go#75804): 1"},
		"an input, and a timeout": {[]string{crashed + expired}, "5s | 12 | **failed**", "failed: 1, repeated (golang/go#75804): 0"},
		"another test":            {[]string{"--- FAIL: FuzzOther (5.10s)\n    context deadline exceeded\n" + end}, "0s | 0 | **failed**", "failed: 1, repeated (golang/go#75804): 0"},
		"not built":               {[]string{unbuilt}, "0s | 0 | **failed**", "failed: 1, repeated (golang/go#75804): 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for i, text := range append(tt.runs, "one run more than expected") {
				require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint("run", i)), []byte(text), 0o600))
			}
			fake := `#!/bin/sh
[ "$1" = test ] || { echo go1.26.8; exit; }
cd "$RUNS" || exit
for run in run*; do
  cat "$run"
  mv "$run" "done-$run"
  exec grep -q ^PASS "done-$run"
done
`
			require.NoError(t, os.WriteFile(filepath.Join(folder, "go"), []byte(fake), 0o700))
			report := filepath.Join(folder, "report.md")
			script := filepath.Join(root, "scripts", "fuzz")
			require.FileExists(t, script) // so that Go keeps no result of another one
			cmd := exec.CommandContext(t.Context(), script, "5s", report)
			cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "RUNS="+folder, "ONLY=FuzzDecodeStored")
			out, err := cmd.CombinedOutput()
			final := tt.runs[len(tt.runs)-1]
			clean := final == passed
			assert.Equal(t, clean, err == nil, string(out))
			tail := "fuzz tests run for 5s each: 1, " + tt.last + "\n"
			if !clean {
				tail = "=== exporter/webhookexporter/internal/spool FuzzDecodeStored failed, its last lines:\n" + final + tail
			}
			assert.True(t, strings.HasSuffix(string(out), tail), string(out))
			text, err := os.ReadFile(report)
			require.NoError(t, err)
			assert.Contains(t, string(text), "| "+tt.ended+" |\n")
			assert.FileExists(t, filepath.Join(folder, fmt.Sprint("done-run", len(tt.runs)-1)))
			assert.NoFileExists(t, filepath.Join(folder, fmt.Sprint("done-run", len(tt.runs))))
		})
	}
}
