// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	accounts "github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// notifier is a process that sends to receivers what it is handed. After a kill
// it is started again on the same files.
type notifier interface {
	start(context.Context) error
	kill() error
	stop() error
	pid() int
	post(context.Context, []notice) error // nil: it was taken
	receipts(context.Context) ([]receipt, error)
}

// poster posts what is handed over.
var poster = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// submit posts a body, and is nil where the answer is whole and 200.
func submit(ctx context.Context, url, contentType string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	answer, err := poster.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	return nil
}

// texts that an event and an alert have alike.
const (
	idLabel     = "event_id"
	clusterName = "production"
	nodeName    = "gpu-node-1"
	sentence    = "XID 79 on GPU 3 of node gpu-node-1 of cluster production: GPU has fallen off the bus."
)

// gpu is otelcol-gpu.
type gpu struct {
	w       *frame.World
	configs func(collector.Ports) []string
	env     []string

	directory string
	ports     collector.Ports
	lives     int
	running   *collector.Collector
	stopped   time.Time
}

// newShipped is a collector on the configurations that users have.
func newShipped(w *frame.World, h *hooks) *gpu {
	// The first receiver is that of webhooks.yaml.
	receivers := m{}
	for _, one := range h.list[1:] {
		receivers[one.name] = m{"url": one.url, "timeout": hookTimeout.String()}
	}
	more := frame.Overlay(m{
		"exporters": m{"webhook": m{"receivers": receivers, "allow_cidrs": []string{"127.0.0.0/8"}}},
		// There are no devices, and the events are these.
		"service": m{"pipelines": m{"metrics": m{"receivers": []string{"otlp"}}, "logs/events": m{"receivers": []string{"gpu_events", "otlp"}}}},
	})
	h.list[0].name = "default"
	return &gpu{w: w, env: []string{"WEBHOOK_URL=" + h.list[0].url}, configs: func(ports collector.Ports) []string {
		return []string{w.Config("standalone.yaml"), w.Config("webhooks.yaml"), frame.Overlay(ports.Overlay()), more}
	}}
}

// newAlone is a collector with nothing but the exporter, which keeps nothing.
func newAlone(w *frame.World, h *hooks) *gpu {
	receivers := m{}
	for _, one := range h.list {
		receivers[one.name] = m{"url": one.url, "timeout": hookTimeout.String()}
	}
	config := frame.Overlay(m{
		"exporters":  m{"webhook": m{"receivers": receivers, "allow_cidrs": []string{"127.0.0.0/8"}}},
		"extensions": m{"health_check": m{}},
		"service": m{
			"extensions": []string{"health_check"},
			"pipelines":  m{"logs": m{"receivers": []string{"otlp"}, "exporters": []string{"webhook"}}},
		},
	})
	return &gpu{w: w, configs: func(ports collector.Ports) []string {
		return []string{config, frame.Overlay(frame.Moved(ports, "receivers"))}
	}}
}

func (g *gpu) start(ctx context.Context) (err error) {
	if g.directory == "" {
		if g.directory, err = g.w.Folder("webhooks"); err != nil {
			return err
		}
		if g.ports, err = collector.FreePorts(); err != nil {
			return err
		}
	}
	g.lives++
	g.running, err = collector.Start(collector.Options{
		Binary: g.w.Bin("otelcol-gpu"), Configs: g.configs(g.ports), Ports: g.ports,
		LogPath: filepath.Join(g.directory, fmt.Sprintf("collector-%d.log", g.lives)),
		Env:     append([]string{"STATE_DIRECTORY=" + g.state()}, g.env...),
	})
	if err != nil {
		return err
	}
	if err := g.running.WaitReady(ctx); err != nil {
		return errors.Join(err, g.running.Stop())
	}
	return nil
}

func (g *gpu) state() string { return filepath.Join(g.directory, "state") }

func (g *gpu) kill() error {
	if err := syscall.Kill(g.pid(), syscall.SIGKILL); err != nil {
		return err
	}
	<-g.running.Exited()
	return g.running.Stop() // closes its log
}

func (g *gpu) stop() error {
	g.stopped = time.Now()
	return g.running.Stop()
}

func (g *gpu) pid() int { return g.running.PID() }

func (g *gpu) post(ctx context.Context, notices []notice) error {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	resource.Resource().Attributes().PutStr("k8s.cluster.name", clusterName)
	resource.Resource().Attributes().PutStr("k8s.node.name", nodeName)
	records := resource.ScopeLogs().AppendEmpty().LogRecords()
	for _, n := range notices {
		r := records.AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(n.at))
		r.SetEventName(n.name)
		r.SetSeverityNumber(plog.SeverityNumberError)
		r.Body().SetStr(sentence)
		r.Attributes().PutStr("gpu.event.id", n.id)
		r.Attributes().PutStr("gpu.event.key", n.name+"/"+n.id)
		r.Attributes().PutStr("gpu.event.state", "raised")
	}
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		return err
	}
	return submit(ctx, fmt.Sprintf("http://%s:%d/v1/logs", collector.Loopback, g.ports.OTLPHTTP), "application/x-protobuf", body)
}

// receipts are the audit records, if gpuctl finds their chain whole.
func (g *gpu) receipts(ctx context.Context) ([]receipt, error) {
	path := filepath.Join(g.state(), "audit.jsonl")
	if out, err := exec.CommandContext(ctx, g.w.Bin("gpuctl"), "audit", "verify", path).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gpuctl audit verify: %w: %s", err, out)
	}
	records, _, err := accounts.ReadAudit(path)
	if err != nil {
		return nil, err
	}
	var all []receipt
	for _, r := range records {
		for _, id := range r.EventIDs {
			all = append(all, receipt{
				hook: r.Receiver, id: id, attempt: r.Attempt > 0, status: r.Status,
				gaveUp: r.Outcome != "succeeded" && r.NextAttempt.IsZero(),
				// One that was due earlier would have been made.
				waits: r.NextAttempt.After(g.stopped.Add(-hookTimeout)),
			})
		}
	}
	return all, nil
}
