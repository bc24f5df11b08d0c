// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/storedstate"
)

// eventSink is where a gateway would be: it keeps the content of events.
type eventSink struct {
	mu     sync.Mutex
	events []string // name and body
}

func (s *eventSink) take(_ context.Context, ld plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				s.events = append(s.events, r.EventName()+": "+r.Body().AsString())
			}
		}
	}
	return nil
}

func (s *eventSink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.events...)
}

// An event that the agent raised while its endpoint was down is delivered, although
// the agent was killed before it was back: connector and queue keep it on disk. It
// names the pod's service as Kubernetes does.
func TestAnEventSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	sim, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	api, _ := nodeA(t)
	free, err := collector.Free(1)
	require.NoError(t, err)
	address := net.JoinHostPort(collector.Loopback, strconv.Itoa(free[0])) // nothing listens there
	dir := t.TempDir()
	run := func(name string) *collector.Collector {
		ports, err := collector.FreePorts()
		require.NoError(t, err)
		overlay := ports.Overlay()
		delete(overlay, "exporters")
		receivers := overlay["receivers"].(m)
		receivers["gpu_allocation"] = m{"socket": filepath.Join(dir, "kubelet.sock")}
		receivers["dcgm"] = m{"kubernetes": nil, "endpoints": endpoints[:1], "collection_interval": "1s"}
		text, err := json.Marshal(overlay)
		require.NoError(t, err)
		c, err := collector.Start(collector.Options{
			Binary: binary(t, "otelcol-gpu"), Configs: []string{config("agent.yaml"), "yaml:" + string(text)},
			Env:     append(agentEnv(t, api, address), "STATE_DIRECTORY="+filepath.Join(dir, "state")),
			LogPath: filepath.Join(dir, name+".log"), Ports: ports,
		})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = c.Stop()
			if t.Failed() {
				t.Log(log(t, c))
			}
		})
		return c
	}
	agent := run("killed")
	emitted := func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["otelcol_gpu_events_emitted"], "event", "gpu.xid")) == 1
	}
	ownEventually(t, agent, "the GPUs are known", func(f map[string]*dto.MetricFamily) bool {
		devices := find(f["otelcol_gpu_events_subjects"], "kind", "device")
		return len(devices) == 1 && collector.Value(devices[0]) == 4
	})
	_, err = sim.StartFault(gpusim.Fault{Node: "gpu-node-a", Kind: gpusim.XID, Device: "0", Code: 79})
	require.NoError(t, err)
	ownEventually(t, agent, "the event was handed on", emitted)
	require.Eventually(t, func() bool { // the state has it too
		has, err := storedstate.Has(t, filepath.Join(dir, "state", "connector_*"), regexp.MustCompile(`"(last_xid|code)":79\b`))
		require.NoError(t, err)
		return has
	}, patience, 50*time.Millisecond)
	require.NoError(t, syscall.Kill(agent.PID(), syscall.SIGKILL))
	<-agent.Exited()

	agent = run("again")
	require.NoError(t, agent.WaitReady(t.Context()))
	sink := &eventSink{}
	gateway, err := otlp.Serve(address, otlp.Handler{Logs: sink.take})
	require.NoError(t, err)
	t.Cleanup(gateway.Close)
	require.Eventually(t, func() bool { return len(sink.all()) >= 2 }, patience, 50*time.Millisecond, "both events")
	scrapes := func(f map[string]*dto.MetricFamily) (n float64) {
		for _, sample := range f["otelcol_dcgm_receiver_scrapes"].GetMetric() {
			n += collector.Value(sample)
		}
		return n
	}
	before := 0.
	ownEventually(t, agent, "some scrapes", func(f map[string]*dto.MetricFamily) bool { before = scrapes(f); return before > 0 })
	ownEventually(t, agent, "more scrapes, each of which could raise it again", func(f map[string]*dto.MetricFamily) bool { return scrapes(f) >= before+3 })
	all := sink.all()
	require.Len(t, all, 2, "the code, and what it means for the board: %v", all)
	slices.Sort(all) // they may leave in two requests, side by side
	assert.Contains(t, all[0], "gpu.health: GPU 0 on gpu-node-a (GPU-")
	assert.Contains(t, all[0], " is failed (xid_restart). Drain the node, then reboot it.")
	assert.Contains(t, all[1], "gpu.xid: GPU 0 on gpu-node-a (GPU-")
	assert.Contains(t, all[1], "Drain the node and power it off and on")
	for _, event := range all {
		assert.Contains(t, event, "pod llama-6b8d5c9f7d-k2x9p of service llama-70b in namespace inference when this was raised.")
	}
}

// What applications log is no event here, whatever they call it.
func TestWhatApplicationsLogIsNoEvent(t *testing.T) {
	t.Parallel()
	c := start(t, m{"exporters": m{"debug/events": m{"verbosity": "detailed"}}}, nil, config("standalone.yaml"), fromAgents)
	record := func(name, body string, attributes ...string) m {
		r := m{"timeUnixNano": "1", "eventName": name, "body": m{"stringValue": body}}
		var kvs []m
		for _, k := range attributes {
			kvs = append(kvs, m{"key": k, "value": m{"stringValue": "018f"}})
		}
		r["attributes"] = kvs
		return r
	}
	body, err := json.Marshal(m{"resourceLogs": []m{{"scopeLogs": []m{{"logRecords": []m{
		record("", "a line of a log"),
		record("gen_ai.user.message", "what somebody asked a model"),
		record("gpu.upload.finished", "an application's own"),
		record("gpu.xid", "from an agent", "gpu.event.id"),
	}}}}}})
	require.NoError(t, err)
	url := fmt.Sprintf("http://%s:%d/v1/logs", collector.Loopback, c.Ports.OTLPHTTP)
	require.NoError(t, c.WaitReady(t.Context()))
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Eventually(t, func() bool { return strings.Contains(log(t, c), "from an agent") }, patience, 50*time.Millisecond)
	for _, text := range []string{"a line of a log", "what somebody asked", "an application's own"} {
		assert.NotContains(t, log(t, c), text)
	}
}
