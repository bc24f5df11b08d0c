// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// notes writes what a reader of an answer has to know first: what the store cannot
// keep, how old the answer is, and why there is nothing to show. It reports whether
// something is wrong with the store.
func notes(ctx context.Context, c *consoleClient, w io.Writer, f consoleapi.Freshness) bool {
	var status consoleapi.StatusAnswer
	if err := c.get(ctx, "status", nil, &status); err != nil {
		fmt.Fprintf(w, "Whether the store keeps what arrives is not known: %v\n", err)
		fresh(w, f)
		return true
	}
	for _, p := range status.Store.Problems {
		text := fmt.Sprintf("%s are not stored: %s, since %s", name(p.Part), name(p.Reason), p.Since.Local().Format(time.DateTime))
		if p.Ended != nil {
			text = fmt.Sprintf("%s were not stored: %s, from %s to %s", name(p.Part), name(p.Reason), p.Since.Local().Format(time.DateTime), p.Ended.Local().Format(time.DateTime))
		}
		if p.Refused > 0 {
			text += fmt.Sprintf(", %d refused", p.Refused)
		}
		fmt.Fprintf(w, "STORE: %s; %s.\n", text, safetext.Strip(p.Detail, 1000))
	}
	text := nothing(&status)
	if f.DataAge != nil || text == "" {
		fresh(w, f)
	}
	if text != "" && (f.DataAge == nil || status.State == consoleapi.NotStored) {
		fmt.Fprintln(w, text)
	}
	return len(status.Store.Problems) > 0
}

// nothing is why there is no service to show, and the next step; empty if there
// are services, or the cause is not known.
func nothing(status *consoleapi.StatusAnswer) string {
	t := status.Telemetry
	switch status.State {
	case consoleapi.NotEnabled:
		return "Nothing has ever arrived in the store. Next: gpuctl doctor"
	case consoleapi.NotStored:
		return "What arrives cannot be stored, so exporters and nodes that seem silent may report all the same. Next: gpuctl doctor state telemetry"
	case consoleapi.NoServices:
		what := "Exporters report, and no device of theirs does."
		next := "gpuctl nodes"
		if t.Devices != nil && *t.Devices > 0 {
			what, next = "1 device reports, and no service is known to have it.", "gpuctl nodes --devices"
			if *t.Devices > 1 {
				what = fmt.Sprintf("%d devices report, and no service is known to have one.", *t.Devices)
			}
		}
		return what + " Next: " + next + " shows what there is; if pods do have GPUs, gpuctl doctor kubelet exporter"
	default:
		return ""
	}
}
