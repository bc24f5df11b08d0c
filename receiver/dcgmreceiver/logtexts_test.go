// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

var updateTexts = flag.Bool("update-log-texts", false, "write testdata/logtexts.txt: after an intended change alone")

// TestLogTexts lists what the receiver logs: users search their logs for it. The messages
// are those of the shared machinery, without those that only other vendors' exporters have
// a remedy for.
func TestLogTexts(t *testing.T) {
	var lines []string
	sources, err := filepath.Glob("../../internal/scrape/*.go")
	require.NoError(t, err)
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`logger\.(Info|Warn|Error)\("([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(source, "_test.go") && !slices.Contains(othersMessages, m[2]) {
				lines = append(lines, strings.ToLower(m[1])+": "+m[2])
			}
		}
	}
	slices.Sort(lines)
	e := &dcgm.Exporter
	for _, o := range []fetch.Outcome{
		fetch.OK, fetch.Connect, fetch.TLS, fetch.Timeout, fetch.Redirect, fetch.CutOff, fetch.TooLarge, fetch.Parse, fetch.Empty, e.Other(), fetch.NoValue, fetch.NoDevice,
	} {
		lines = append(lines, fmt.Sprintf("%s: %s", o, e.Remedy(o, nil)))
	}
	for _, code := range []int{400, 401, 403, 404, 418, 429, 500, 503} {
		err := &fetch.StatusError{Code: code, Text: "text"}
		lines = append(lines, fmt.Sprintf("%s %d: %s", fetch.Failed(err), code, e.Remedy(fetch.Failed(err), err)))
	}
	for _, text := range []string{"server gave HTTP response to HTTPS client", `malformed HTTP response "\x15\x03`} {
		lines = append(lines, "tls: "+e.Remedy(fetch.TLS, errors.New(text)))
	}
	for _, over := range []devicemap.Over{devicemap.OverLines, devicemap.OverOwners, devicemap.OverUnmapped, nvidia.OverXIDCodes, dcgm.Vendor.OverDevices()} {
		lines = append(lines, fmt.Sprintf("%s: %s", over, e.OverRemedy(over)))
	}
	lines = append(lines, "text: "+e.TextLine, "line: "+e.Line, "repeated: "+e.Repeated, "long: "+e.Long)
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "logtexts.txt")
	if *updateTexts {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// othersMessages need a remedy that DCGM's exporter does not have, or a source of pages
// other than an exporter.
var othersMessages = []string{
	"rows of the page do not identify their device, they are left out",
	"the page has no rows of some devices that the exporter counts",
	"the page has rows of all devices that the exporter counts again",
}
