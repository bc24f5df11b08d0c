// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
)

// What nvml publishes is used with the next poll, for three of its intervals.
func TestMIGLayoutOfThisProcess(t *testing.T) {
	t.Cleanup(func() { miglayout.Publish(nil) })
	s := &script{node: node{Devices: map[string][]string{gpuName: {migC}}, Pods: []pod{holds("ml", "a", gpuName, migC)}}}
	story(t, s, func(t *testing.T, r *run) {
		unresolved := "ml/a/main node-a/" + migC + " 1 nvidia.com/gpu none false"
		resolved := "ml/a/main " + gpuC + "/7 1 nvidia.com/gpu none true"
		last := func() []string {
			got := r.taken()
			require.NotEmpty(t, got)
			return lines(got[len(got)-1].md)
		}
		assert.Equal(t, []string{unresolved}, last())
		until(r, 2)
		miglayout.Publish(miglayout.New(time.Now(), 15*time.Second, []miglayout.Instance{{UUID: migC, GPU: gpuC, GI: 7}}))
		until(r, 5)
		assert.Equal(t, []string{resolved}, last())
		until(r, 46)
		assert.Equal(t, []string{resolved}, last())
		until(r, 50)
		assert.Equal(t, []string{unresolved}, last(), "nvml has read nothing for 48 s")
	})
}

// That the layout is being changed is known to this process as soon as the API server has it.
func TestMIGIsBeingReconfigured(t *testing.T) {
	a := k8sfake.New(t)
	pending := nodeOf(false, "nvidia.com/mig.config.state", "pending")
	a.Set("nodes", pending)
	r := kubeRun(t, oneOfTwo(), a, func(c *Config) { c.CollectionInterval = time.Minute })
	is := func(want bool) func() bool {
		return func() bool {
			_, is := miglayout.Reconfiguring("node-a")
			return is == want
		}
	}
	r.start()
	require.Eventually(t, is(true), long, 10*time.Millisecond)
	require.Eventually(t, func() bool { return a.Watching("nodes") > 0 }, long, 10*time.Millisecond)
	done := nodeOf(false, "nvidia.com/mig.config.state", "success")
	done.ResourceVersion = "2"
	a.Send("nodes", "MODIFIED", done)
	require.Eventually(t, is(false), long, 10*time.Millisecond)
	again := nodeOf(false, "nvidia.com/mig.config.state", "rebooting")
	again.ResourceVersion = "3"
	a.Send("nodes", "MODIFIED", again)
	require.Eventually(t, is(true), long, 10*time.Millisecond)
	r.stop()
	assert.True(t, is(false)(), "a receiver that has ended knows nothing")
}
