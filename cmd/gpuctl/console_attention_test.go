// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

var fault = consoleapi.Reason{Kind: consoleapi.XID, Severity: consoleapi.SeverityError, Label: "XID 79", Text: "GPU 0 of gpu-1 fell off\x1b[2J the bus."}

// TestAttention: whatever is wrong is named where it is.
func TestAttention(t *testing.T) {
	c := fleet()
	throttled := consoleapi.Reason{Kind: consoleapi.Throttled, Severity: consoleapi.SeverityWarn, Label: "throttled: hw thermal"}
	c.services[1].Reasons, c.services[1].Attention = []consoleapi.Reason{fault, throttled, fault}, []consoleapi.Attention{consoleapi.XID, consoleapi.Throttled}
	c.pods["chat"][0].Devices[1].Reasons = []consoleapi.Reason{fault}
	c.nodes[0].Reasons, c.nodes[0].State = []consoleapi.Reason{fault, throttled}, consoleapi.NodeDegraded
	c.nodes[0].Devices[0].Reasons = []consoleapi.Reason{throttled}
	c.summary = consoleapi.FleetSummary{Reasons: []consoleapi.Reason{fault}, ReasonsTotal: 3}
	url := begin(t, c)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"services"}, "c1 ml chat xid 50% 40.0/80.0 GiB 1024 W 2/2 +1 warming 2 2 0 7s XID 79; throttled: hw thermal error: GPU 0 of gpu-1 fell off[2J the bus. and 2 more"},
		{[]string{"ps", "--service", "chat"}, "3/1: XID 79"},
		{[]string{"nodes"}, "c1 gpu-1 degraded,cordoned ok, 5 of 11 checks up 2 1 1 0 0 0 7s XID 79; throttled: hw thermal"},
		{[]string{"nodes", "--devices"}, "61 C 0 - throttled: hw thermal"},
		{[]string{"top"}, "and 2 more"},
	} {
		_, out, _ := ask(append(test.args, "--endpoint", url)...)
		assert.Contains(t, strings.Join(strings.Fields(out), " "), test.want)
	}
	_, out, _ := ask("services", "-q", "chat", "--endpoint", url)
	assert.NotContains(t, out, "fell off", "only what was asked for")
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*console)
		services int
		ps       int
		nodes    int
	}{
		"well": {func(*console) {}, exitOK, exitOK, exitOK},
		"partial": {func(c *console) {
			c.services[1].Reasons = []consoleapi.Reason{fault}
		}, exitFailed, exitFailed, exitOK},
		"a device of a pod":  {func(c *console) { c.pods["chat"][0].Devices[1].Reasons = []consoleapi.Reason{fault} }, exitOK, exitFailed, exitOK},
		"a device of a node": {func(c *console) { c.nodes[0].Reasons = []consoleapi.Reason{fault} }, exitOK, exitOK, exitFailed},
		"elsewhere in the fleet": {func(c *console) {
			c.summary = consoleapi.FleetSummary{Reasons: []consoleapi.Reason{fault}, ReasonsTotal: 1}
		}, exitFailed, exitOK, exitOK},
		"pods":    {func(c *console) { c.pods["chat"][0].State = consoleapi.PodDegraded }, exitOK, exitFailed, exitOK},
		"node":    {func(c *console) { c.nodes[0].State = consoleapi.NodeExporterDown }, exitOK, exitOK, exitFailed},
		"device":  {func(c *console) { c.nodes[0].Counts.Lost = 1 }, exitOK, exitOK, exitFailed},
		"stale":   {func(c *console) { c.freshness = consoleapi.Told{DataAge: ref(600.0), Stale: true} }, exitFailed, exitFailed, exitFailed},
		"no data": {func(c *console) { *c = console{} }, exitFailed, exitFailed, exitFailed},
		"a store that refuses": {func(c *console) {
			c.status.Store.Problems = []consoleapi.StoreProblem{{Part: "samples", Reason: "max_series", Detail: "raise it"}}
		}, exitFailed, exitFailed, exitFailed},
		"a status that is not known": {func(c *console) { c.noStatus = true }, exitFailed, exitFailed, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet()
			test.change(c)
			url := begin(t, c)
			for command, want := range map[string]int{"services": test.services, "ps": test.ps, "nodes": test.nodes} {
				code, _, _ := ask(command, "--endpoint", url, "--check")
				assert.Equal(t, want, code, command)
				code, _, _ = ask(command, "--endpoint", url)
				assert.Equal(t, exitOK, code, command)
			}
		})
	}
}

// nodes --check is about a failed GPU, and about a degraded one where it is asked for.
func TestCheckOfHealth(t *testing.T) {
	health := func(severity consoleapi.Severity) []consoleapi.Reason {
		return []consoleapi.Reason{{Kind: consoleapi.Unhealthy, Severity: severity, Label: "fabric"}}
	}
	was := func(s consoleapi.HealthState) []consoleapi.HealthReason {
		return []consoleapi.HealthReason{{Name: "fabric", State: s}}
	}
	for name, test := range map[string]struct {
		state                                consoleapi.HealthState
		reasons                              []consoleapi.Reason
		last                                 []consoleapi.HealthReason
		failed, predicted, degraded, unknown int
	}{
		"ok":                     {consoleapi.HealthOK, nil, nil, exitOK, exitOK, exitOK, exitOK},
		"degraded":               {consoleapi.HealthDegraded, health("warn"), nil, exitOK, exitOK, exitFailed, exitFailed},
		"predicted":              {consoleapi.HealthPredictedFailure, health("warn"), nil, exitOK, exitFailed, exitFailed, exitFailed},
		"failed":                 {consoleapi.HealthFailed, health("error"), was("failed"), exitFailed, exitFailed, exitFailed, exitFailed},
		"unknown":                {consoleapi.HealthUnknown, nil, nil, exitOK, exitOK, exitOK, exitFailed},
		"unknown, was degraded":  {consoleapi.HealthUnknown, health("warn"), was("degraded"), exitOK, exitOK, exitFailed, exitFailed},
		"unknown, was predicted": {consoleapi.HealthUnknown, health("warn"), was("predicted_failure"), exitOK, exitFailed, exitFailed, exitFailed},
		"unknown, was failed":    {consoleapi.HealthUnknown, health("error"), was("failed"), exitFailed, exitFailed, exitFailed, exitFailed},
		"an older console":       {"", nil, nil, exitOK, exitOK, exitOK, exitFailed},
		"a throttled one":        {consoleapi.HealthDegraded, []consoleapi.Reason{{Kind: consoleapi.Throttled, Severity: "warn"}}, nil, exitFailed, exitFailed, exitFailed, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet()
			c.nodes[0].Health.State, c.nodes[0].Health.Reasons, c.nodes[0].Reasons = test.state, test.last, test.reasons
			if len(test.reasons) > 0 {
				c.nodes[0].State = consoleapi.NodeDegraded
			}
			url := begin(t, c)
			for check, want := range map[string]int{
				"--check": test.failed, "--check=failed": test.failed, "--check=predicted_failure": test.predicted, "--check=degraded": test.degraded, "--check=unknown": test.unknown,
			} {
				code, _, _ := ask("nodes", check, "--endpoint", url)
				assert.Equal(t, want, code, check)
			}
			code, _, errOut := ask("nodes", "--check=perfect", "--endpoint", url)
			assert.Equal(t, exitUsage, code)
			assert.Contains(t, errOut, "--check=perfect is not failed")
		})
	}
}

func TestWhatTheStoreCannotKeepStandsFirst(t *testing.T) {
	since := time.Date(2026, 11, 22, 14, 30, 0, 0, time.UTC)
	full := consoleapi.StoreProblem{Part: "samples", Reason: "disk_full", Since: since, Refused: 14906, Detail: "make\x1b[31m room"}
	emptied := full
	emptied.Ended = ref(since.Add(time.Minute))
	for name, test := range map[string]struct {
		status  consoleapi.StatusAnswer
		message []string
		code    int
	}{
		"well":                 {consoleapi.StatusAnswer{State: consoleapi.Ready}, nil, exitOK},
		"full, data current":   {consoleapi.StatusAnswer{State: consoleapi.Ready, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{full}}}, []string{"STORE: samples are not stored: disk_full, since ", "14906 refused; make", "room."}, exitFailed},
		"full, nothing is":     {consoleapi.StatusAnswer{State: consoleapi.NotStored, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{full}}}, []string{"disk_full", "may report all the same"}, exitFailed},
		"emptied a moment ago": {consoleapi.StatusAnswer{State: consoleapi.NotStored, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{emptied}}}, []string{"were not stored"}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet()
			c.status, c.strays = test.status, nil
			url := begin(t, c)
			for _, command := range []string{"services", "nodes"} {
				for _, output := range []string{"table", "json"} {
					code, _, errOut := ask(command, "--check", "--endpoint", url, "-o", output)
					assert.Equal(t, test.code, code)
					assert.NotContains(t, errOut, "\x1b")
					for _, text := range test.message {
						assert.Contains(t, errOut, text)
					}
					if test.message == nil {
						assert.Empty(t, errOut)
					}
				}
			}
		})
	}
}

func TestWithoutServicesTheNextStepIsNamed(t *testing.T) {
	for state, test := range map[consoleapi.State]struct {
		devices int
		message string
	}{
		consoleapi.NotEnabled: {0, "Nothing has ever arrived in the store. Next: gpuctl doctor"},
		consoleapi.NoServices: {18, "18 devices report, and no service is known to have one. Next: gpuctl nodes --devices"},
		consoleapi.Ready:      {1, "There is no data."},
	} {
		c := &console{status: consoleapi.StatusAnswer{State: state, Telemetry: consoleapi.Telemetry{Devices: &test.devices}}}
		_, _, errOut := ask("services", "--endpoint", begin(t, c))
		assert.Contains(t, errOut, test.message)
		if state != consoleapi.Ready {
			assert.NotContains(t, errOut, "There is no data")
		}
	}
}
