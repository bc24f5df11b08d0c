// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

func TestServicesWide(t *testing.T) {
	c := fleet()
	c.services[1].Inference = &consoleapi.Inference{
		Engines: []string{"vllm"}, TimeToFirstToken: ref(0.2404), OutputTokens: ref(2400.4), Waiting: ref(0.0), Running: ref(41.0), KVCache: ref(0.634),
	}
	url := begin(t, c)
	code, out, errOut := ask("services", "-o", "wide", "--endpoint", url)
	require.Equal(t, exitOK, code, errOut)
	rows := lines(out)
	for i, want := range []string{
		"CLUSTER NAMESPACE SERVICE STATE UTIL MEMORY/POD POWER PODS DEVICES BUSY IDLE AGE TTFT-P95 TOKENS/S WAITING/RUNNING KV-CACHE ATTENTION",
		"- ml evil[2J idle_devices - - - -/- - - - - - - - - 4 idle-held",
		"c1 ml chat ok 50% 40.0/80.0 GiB 1024 W 2/2 +1 warming 2 2 0 7s 240 ms 2400 0/41 63% -",
	} {
		assert.Equal(t, want, strings.Join(strings.Fields(rows[i]), " "))
	}
	for i, page := range c.asked[:2] {
		assert.Contains(t, page, "inference=true", i)
	}

	_, out, _ = ask("services", "-o", "json", "--endpoint", url)
	var services consoleapi.ServicesAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &services))
	assert.Nil(t, services.Services[0].Inference)
	assert.Equal(t, c.services[1].Inference, services.Services[1].Inference)

	c.asked = nil
	_, out, _ = ask("services", "--endpoint", url)
	assert.NotContains(t, out, "TTFT")
	assert.NotContains(t, strings.Join(c.asked, " "), "inference", "it is read only where it is shown")
	code, _, errOut = ask("nodes", "-o", "wide", "--endpoint", url)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "-o wide is not table or json")
}

func TestInferenceCells(t *testing.T) {
	assert.Equal(t, []string{none, none, none, none}, inferenceCells(nil))
	assert.Equal(t, []string{"0 ms", "0", "-/0", "0%"}, inferenceCells(&consoleapi.Inference{TimeToFirstToken: ref(0.0), OutputTokens: ref(0.0), Running: ref(0.0), KVCache: ref(0.0)}))
	assert.Equal(t, []string{"1.0 s", "1.3", "2/-", none}, inferenceCells(&consoleapi.Inference{TimeToFirstToken: ref(0.9996), OutputTokens: ref(1.26), Waiting: ref(2.0)}))
}
