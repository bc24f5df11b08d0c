// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDoctorCommand(t *testing.T) {
	t.Chdir(".") // that of a collector on this machine is taken, and given back here
	page := `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="",modelName="H100"} 1` + "\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }))
	t.Cleanup(s.Close)
	run := func(args ...string) (code int, out, err string) {
		var stdout, stderr bytes.Buffer
		code = newRoot().execute(t.Context(), streams{nil, &stdout, &stderr}, append([]string{"doctor"}, args...))
		return code, stdout.String(), stderr.String()
	}

	code, out, _ := run("exporter", "--exporter", s.URL)
	assert.Equal(t, exitOK, code, "a warning is no failure")
	assert.Regexp(t, `(?m)^ok +exporter +127\.0\.0\.1:\d+ +1 GPU \(H100\), by its labels of dcgm-exporter 2.x or 3.0, 1 rows$`, out)
	assert.Regexp(t, `(?m)^warn: exporter, fields of 127\.0\.0\.1:\d+$`, out)
	assert.Contains(t, out, "\n    DCGM_FI_PROF_SM_ACTIVE, gauge, ")
	assert.Regexp(t, `(?m)^warn: exporter, health of 127\.0\.0\.1:\d+$`, out)
	assert.Regexp(t, `0 of \d+ checks of the health of its GPUs have their fields; without: .*remap_pending \(DCGM_FI_DEV_ROW_REMAP_PENDING\)`, out)
	assert.Regexp(t, `(?m)^3 ok, 2 warn, 0 fail, 1 skipped$`, out)

	code, out, _ = run("exporter", "--exporter", s.URL, "-o", "json")
	assert.Equal(t, exitOK, code)
	var report struct {
		Status  string
		Results []struct{ Check, Status, Seen string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.Equal(t, "warn", report.Status)
	assert.Len(t, report.Results, 6)

	s.Close()
	code, out, _ = run("exporter", "--exporter", s.URL)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "nothing listens there")

	for _, args := range [][]string{
		{"everything"}, {"-o", "xml"}, {"--timeout", "0s"}, {"--watch", "1h"}, {"--exporter", "localhost"}, {"--role", "boss"}, {"--token-file", "/none"}, {"--nonsense"},
	} {
		code, _, stderr := run(args...)
		assert.Equal(t, exitUsage, code, args)
		assert.NotEmpty(t, stderr, args)
	}
}
