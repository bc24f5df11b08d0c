// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// diagnosis is what gpuctl doctor reports.
type diagnosis struct {
	Status  string
	Results []finding
	code    int
	text    string
}

type finding struct{ Check, Subject, Status, Seen, Remedy string }

// of are the findings of a check, of these statuses if any are named.
func (d *diagnosis) of(check string, statuses ...string) []finding {
	return slices.DeleteFunc(slices.Clone(d.Results), func(f finding) bool {
		return f.Check != check || len(statuses) > 0 && !slices.Contains(statuses, f.Status)
	})
}

// doctor runs gpuctl doctor -o json.
func doctor(t *testing.T, env []string, args ...string) *diagnosis {
	t.Helper()
	return diagnose(t, exec.CommandContext(t.Context(), binary(t, "gpuctl"), append([]string{"doctor", "-o", "json"}, args...)...), env)
}

func diagnose(t *testing.T, cmd *exec.Cmd, env []string) *diagnosis {
	t.Helper()
	var stderr strings.Builder
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	d := &diagnosis{code: cmd.ProcessState.ExitCode(), text: string(out) + stderr.String()}
	require.NoError(t, json.Unmarshal(out, d), d.text)
	return d
}

// configs are the --config of a collector on these ports.
func configs(t *testing.T, ports collector.Ports, overlay m, files ...string) []string {
	t.Helper()
	var args []string
	for _, file := range files {
		args = append(args, "--config", file)
	}
	for _, over := range []m{ports.Overlay(), overlay} {
		text, err := json.Marshal(over)
		require.NoError(t, err)
		args = append(args, "--config", "yaml:"+string(text))
	}
	return args
}

// One machine on its way from well over three faults: what is wrong is reported, and
// nothing else is.
func TestDoctorOnOneMachine(t *testing.T) {
	t.Parallel()
	f, s, endpoints := fleet(t, gpusim.Config{Nodes: []gpusim.Node{{
		Name: "n1", Version: "4.6", Model: "H100", Devices: 2, Fields: "all", With: []string{"DCGM_EXP_GPU_HEALTH_STATUS"},
		Pods: []gpusim.Pod{{Namespace: "ml", Name: "chat-0", Container: "main", Devices: []string{"0"}, Load: "inference"}},
	}}})
	overlay := m{
		"receivers":  m{"dcgm": m{"collection_interval": "1s", "frozen_after": 2, "exporter_interval": "1s"}},
		"processors": m{"gpu_summary": quick},
	}
	env := []string{"DCGM_EXPORTER_ENDPOINT=" + endpoints[0]}
	c := start(t, overlay, env, config("standalone.yaml"))
	env = append(env, "STATE_DIRECTORY="+collector.StateOf(c.LogPath))
	args := configs(t, c.Ports, overlay, config("standalone.yaml"))
	until := func(what string, ok func(*diagnosis) bool) *diagnosis {
		t.Helper()
		var d *diagnosis
		require.Eventually(t, func() bool {
			d = doctor(t, env, args...)
			return ok(d)
		}, patience, time.Second, what)
		return d
	}

	// Devices are known an interval before services.
	well := until("all is well", func(d *diagnosis) bool {
		faults := slices.DeleteFunc(slices.Clone(d.Results), func(f finding) bool { return f.Status == "ok" || f.Status == "skipped" })
		return d.code == 0 && len(d.of("console", "ok")) >= 3 && len(faults) == 0
	})
	assert.Contains(t, well.of("exporter", "ok")[0].Seen, "2 GPUs")
	assert.Len(t, well.of("kubernetes", "skipped"), 1, "nothing asks Kubernetes")

	fault := func(kind gpusim.Kind) (end func()) {
		t.Helper()
		fault, err := f.StartFault(gpusim.Fault{Node: "n1", Kind: kind})
		require.NoError(t, err)
		s.Reconcile()
		return func() {
			_, err := f.EndFault(fault.ID)
			require.NoError(t, err)
			s.Reconcile()
		}
	}
	end := fault(gpusim.ExporterDown)
	down := until("the exporter is down, of which the collector's own counters tell too", func(d *diagnosis) bool {
		return len(d.of("exporter", "fail")) == 1 && strings.Contains(fmt.Sprint(d.of("console", "fail")), "1 down") && len(d.of("telemetry", "warn", "fail")) > 0
	})
	assert.Equal(t, 1, down.code)
	assert.Equal(t, "nothing listens there", down.of("exporter", "fail")[0].Seen)
	assert.Empty(t, down.of("collector", "fail"))
	end()

	end = fault(gpusim.ExporterFrozen)
	frozen := until("the exporter is frozen", func(d *diagnosis) bool {
		return strings.Contains(fmt.Sprint(d.of("console", "fail")), "1 frozen")
	})
	assert.Empty(t, frozen.of("exporter", "fail"), "it answers")
	watched := doctor(t, env, append(args, "exporter", "--watch", "3s")...)
	assert.Contains(t, fmt.Sprint(watched.of("exporter", "warn")), "stood still")
	end()
	watched = doctor(t, env, append(args, "exporter", "--watch", "3s")...)
	assert.Contains(t, fmt.Sprint(watched.of("exporter", "ok")), "values moved")

	end = fault(gpusim.FieldsRenamed)
	renamed := until("the exporter's fields have other names", func(d *diagnosis) bool {
		return strings.Contains(fmt.Sprint(d.of("console", "fail")), "1 with fields that are not known") && strings.Contains(fmt.Sprint(d.of("telemetry", "warn")), "fields of exporters' pages that are not known")
	})
	assert.Equal(t, 1, renamed.code)
	assert.Contains(t, renamed.of("exporter", "fail")[0].Seen, "the exporter's fields are not known")
	assert.Contains(t, renamed.of("exporter", "fail")[0].Seen, "DCGM_FI_DEV_GPU_UTIL_V2 (hw.gpu.utilization (general)? It is like DCGM_FI_DEV_GPU_UTIL)")
	end()
	until("they are known again", func(d *diagnosis) bool {
		return len(d.of("exporter", "fail")) == 0 && len(d.of("console", "fail")) == 0
	})

	end = fault(gpusim.ClockSkew)
	skewed := doctor(t, env, append(args, "exporter")...)
	// What is sure of two minutes, less what the answer took.
	assert.Regexp(t, `(1m[45]\ds|2m0s) ahead of ours`, fmt.Sprint(skewed.of("exporter", "warn")))
	assert.Zero(t, skewed.code, "a warning is no failure")
	end()
}

func TestDoctorOnExporters(t *testing.T) {
	t.Parallel()
	no := false
	_, _, endpoints := fleet(t, gpusim.Config{Nodes: []gpusim.Node{
		{Name: "n1", Version: "4.6", Model: "H100", Devices: 1, Fields: "default", Profiling: &no},
		{Name: "n2", Version: "4.6", Model: "H100", Devices: 1, Fields: "all", Kubernetes: &no},
	}})
	d := doctor(t, nil, "exporter", "--exporter", endpoints[0])
	assert.Zero(t, d.code)
	fields := d.of("exporter", "warn")[0]
	for _, field := range []string{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"} {
		assert.Contains(t, fields.Seen, field)
		assert.Contains(t, fields.Remedy, "\n"+field+", gauge, ", "the line to add")
	}
	assert.Contains(t, fields.Seen, "card SM")
	assert.NotContains(t, fields.Seen, "card utilization")

	d = doctor(t, nil, "exporter", "--exporter", endpoints[1])
	assert.Contains(t, fmt.Sprint(d.of("exporter", "warn")), "no pod labels")

	html := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>log in</html>") }))
	d = doctor(t, nil, "exporter", "--exporter", html+"/?token=hush")
	assert.Equal(t, 1, d.code)
	assert.Contains(t, d.of("exporter", "fail")[0].Remedy, "HTML")
	assert.NotContains(t, d.text, "hush")
}

func TestDoctorOnTheKubelet(t *testing.T) {
	t.Parallel()
	// Where the user without rights can find it: t.TempDir is our own alone.
	dir, err := os.MkdirTemp("", "doctor-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	folder := filepath.Join(dir, "pod-resources")
	require.NoError(t, os.Mkdir(folder, 0o750))
	socket := filepath.Join(folder, "kubelet.sock")
	k := kubelet.New(kubelet.Options{QPS: -1})
	require.NoError(t, k.Serve(socket))
	t.Cleanup(k.Stop)
	k.SetDevices("nvidia.com/gpu", kubelet.Devices("GPU-1", "GPU-2"))
	_, err = k.Allocate(kubelet.Pod{Namespace: "ml", Name: "chat-0"}, "main", "nvidia.com/gpu", 1)
	require.NoError(t, err)
	agent := func(socket string) []string {
		return []string{"kubelet", "--config", config("agent.yaml"), "--config", "yaml:receivers::gpu_allocation::socket: " + socket}
	}
	env := []string{"K8S_NODE_NAME=n1", "GATEWAY_ENDPOINT=localhost:1"}

	d := doctor(t, env, agent(socket)...)
	assert.Zero(t, d.code, d.text)
	assert.Contains(t, fmt.Sprint(d.of("kubelet", "ok")), "1 pods, which hold 1 devices")
	assert.Contains(t, fmt.Sprint(d.of("kubelet", "ok")), "2 devices of device plugins")

	d = doctor(t, env, agent(filepath.Join(dir, "none.sock"))...)
	assert.Equal(t, 1, d.code)
	assert.Contains(t, d.of("kubelet", "fail")[0].Seen, "no such socket")

	k.SetFaults(kubelet.Faults{Errors: map[string]error{kubelet.GetAllocatableResources: kubelet.Unimplemented(kubelet.GetAllocatableResources)}})
	d = doctor(t, env, agent(socket)...)
	assert.Equal(t, "GetAllocatableResources", d.of("kubelet", "fail")[0].Subject)
	k.SetFaults(kubelet.Faults{})

	cmd := asOtherUser(t, dir)
	if cmd == nil {
		t.Log("the user without rights needs root")
		return
	}
	text, err := os.ReadFile(config("agent.yaml"))
	require.NoError(t, err)
	readable := filepath.Join(dir, "agent.yaml")
	require.NoError(t, os.WriteFile(readable, text, 0o644))
	cmd.Args = append(cmd.Args, "doctor", "-o", "json", "kubelet", "--config", readable, "--config", "yaml:receivers::gpu_allocation::socket: "+socket)
	d = diagnose(t, cmd, env)
	assert.Contains(t, d.of("kubelet", "fail")[0].Seen, "user 65534 may not use it")
	assert.Contains(t, d.of("kubelet", "fail")[0].Remedy, "runAsUser: 0")
}

// A gateway with a token, and agents with the right and with a wrong one.
func TestDoctorOnTheGateway(t *testing.T) {
	t.Parallel()
	overlay := m{
		"receivers":  m{"otlp": m{"protocols": m{"grpc": m{"auth": m{"authenticator": "bearertokenauth/in"}}}}},
		"extensions": m{"bearertokenauth/in": m{"token": "the-right-token"}},
		"service":    m{"extensions": []string{"health_check", "request_limit", "file_storage/state", "gpu_store", "gpu_console", "bearertokenauth/in"}},
	}
	c := start(t, overlay, []string{"DCGM_EXPORTER_ENDPOINT=http://localhost:1/metrics"}, config("standalone.yaml"), fromAgents)
	env := []string{"K8S_NODE_NAME=n1", "GATEWAY_INSECURE=true", fmt.Sprintf("GATEWAY_ENDPOINT=%s:%d", collector.Loopback, c.Ports.OTLPGRPC)}
	agent := func(token string) *diagnosis {
		over, err := json.Marshal(m{
			"exporters":  m{"otlp_grpc": m{"auth": m{"authenticator": "bearertokenauth/out"}}, "otlp_grpc/events": m{"auth": m{"authenticator": "bearertokenauth/out"}}},
			"extensions": m{"bearertokenauth/out": m{"token": token}},
			"service":    m{"extensions": []string{"health_check", "file_storage/state", "bearertokenauth/out"}},
		})
		require.NoError(t, err)
		return doctor(t, env, "gateway", "--config", config("agent.yaml"), "--config", "yaml:"+string(over))
	}
	right := agent("the-right-token")
	assert.Zero(t, right.code, right.text)
	assert.Len(t, right.of("gateway", "warn"), 2, "the token travels unencrypted")
	wrong := agent("a-wrong-token")
	assert.Equal(t, 1, wrong.code)
	assert.Len(t, wrong.of("gateway", "fail"), 2)
	assert.Contains(t, wrong.of("gateway", "fail")[0].Remedy, "token is not the gateway's")
	assert.NotContains(t, right.text+wrong.text, "-token\"", "no token is shown")
	assert.NotContains(t, wrong.text, "a-wrong-token")
}

func TestDoctorOnWebhooks(t *testing.T) {
	t.Parallel()
	hook := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("doctor tells a receiver nothing") }))
	env := []string{"WEBHOOK_URL=" + hook + "/services/hush"}
	args := []string{"webhook", "--config", config("standalone.yaml"), "--config", config("webhooks.yaml")}
	d := doctor(t, env, args...)
	assert.Equal(t, 1, d.code)
	assert.Contains(t, d.of("webhook", "fail")[0].Seen, "ssrf_blocked")
	assert.Contains(t, d.of("webhook", "fail")[0].Remedy, "allow_cidrs")
	assert.NotContains(t, d.text, "hush")

	d = doctor(t, env, append(args, "--config", "yaml:exporters::webhook::allow_cidrs: [127.0.0.0/8]")...)
	assert.Zero(t, d.code, d.text)
	assert.Equal(t, "reached: http://127.0.0.1", d.of("webhook", "ok")[0].Seen)
}
