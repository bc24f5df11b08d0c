// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	accounts "github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// notifier is a process that tells receivers of what it is handed. After a kill
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
	w       *world
	configs func(collector.Ports) []string
	env     []string

	directory string
	ports     collector.Ports
	lives     int
	running   *collector.Collector
	stopped   time.Time
}

// newShipped is a collector on the configurations that users have.
func newShipped(w *world, h *hooks) *gpu {
	// The first receiver is that of webhooks.yaml.
	receivers := m{}
	for _, one := range h.list[1:] {
		receivers[one.name] = m{"url": one.url, "timeout": hookTimeout.String()}
	}
	more := overlay(m{
		"exporters": m{"webhook": m{"receivers": receivers, "allow_cidrs": []string{"127.0.0.0/8"}}},
		// There are no devices, and the events are these.
		"service": m{"pipelines": m{"metrics": m{"receivers": []string{"otlp"}}, "logs/events": m{"receivers": []string{"gpu_events", "otlp"}}}},
	})
	h.list[0].name = "default"
	return &gpu{w: w, env: []string{"WEBHOOK_URL=" + h.list[0].url}, configs: func(ports collector.Ports) []string {
		return []string{w.config("standalone.yaml"), w.config("webhooks.yaml"), overlay(ports.Overlay()), more}
	}}
}

// newAlone is a collector with nothing but the exporter, which keeps nothing.
func newAlone(w *world, h *hooks) *gpu {
	receivers := m{}
	for _, one := range h.list {
		receivers[one.name] = m{"url": one.url, "timeout": hookTimeout.String()}
	}
	config := overlay(m{
		"exporters":  m{"webhook": m{"receivers": receivers, "allow_cidrs": []string{"127.0.0.0/8"}}},
		"extensions": m{"health_check": m{}},
		"service": m{
			"extensions": []string{"health_check"},
			"pipelines":  m{"logs": m{"receivers": []string{"otlp"}, "exporters": []string{"webhook"}}},
		},
	})
	return &gpu{w: w, configs: func(ports collector.Ports) []string { return []string{config, overlay(moved(ports, "receivers"))} }}
}

func (g *gpu) start(ctx context.Context) (err error) {
	if g.directory == "" {
		if g.directory, err = g.w.folder("webhooks"); err != nil {
			return err
		}
		if g.ports, err = collector.FreePorts(); err != nil {
			return err
		}
	}
	g.lives++
	g.running, err = collector.Start(collector.Options{
		Binary: g.w.bin("otelcol-gpu"), Configs: g.configs(g.ports), Ports: g.ports,
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
	if out, err := exec.CommandContext(ctx, g.w.bin("gpuctl"), "audit", "verify", path).CombinedOutput(); err != nil {
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

// grouping is how Alertmanager puts alerts together.
type grouping m

var (
	// "..." is all labels.
	ungrouped = grouping{"group_by": []string{"..."}, "group_wait": "0s"}
	grouped   = grouping{"group_by": []string{"alertname"}} // and its default waits
)

// alertmanager is Alertmanager, alone: not a cluster.
type alertmanager struct {
	w        *world
	hooks    *hooks
	grouping grouping
	recorder bool

	directory string
	address   string
	lives     int
	cmd       *exec.Cmd
	exited    chan struct{}
	log       *os.File
}

func newAlertmanager(w *world, h *hooks, g grouping) *alertmanager {
	return &alertmanager{w: w, hooks: h, grouping: g}
}

// configure writes the configuration.
func (a *alertmanager) configure() (err error) {
	if a.directory, err = a.w.folder("alertmanager"); err != nil {
		return err
	}
	ports, err := collector.Free(1)
	if err != nil {
		return err
	}
	a.address = fmt.Sprintf("%s:%d", collector.Loopback, ports[0])
	var configs []m
	for _, one := range a.hooks.list {
		configs = append(configs, m{"url": one.url, "timeout": hookTimeout.String(), "send_resolved": false})
	}
	route := m{"receiver": "all"}
	for key, value := range a.grouping {
		route[key] = value
	}
	config := m{"route": route, "receivers": []m{{"name": "all", "webhook_configs": configs}}}
	if a.recorder {
		config["event_recorder"] = m{"file_outputs": []m{{"path": a.events()}}}
	}
	text, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		return err
	}
	return os.WriteFile(a.file(), text, 0o600)
}

func (a *alertmanager) file() string   { return filepath.Join(a.directory, "alertmanager.yml") }
func (a *alertmanager) events() string { return filepath.Join(a.directory, "events.jsonl") }
func (a *alertmanager) logOf(life int) string {
	return filepath.Join(a.directory, fmt.Sprintf("alertmanager-%d.log", life))
}

func (a *alertmanager) start(ctx context.Context) error {
	binary, err := a.w.alertmanager(ctx)
	if err != nil {
		return err
	}
	if a.directory == "" {
		if err := a.configure(); err != nil {
			return err
		}
	}
	a.lives++
	if a.log, err = os.Create(a.logOf(a.lives)); err != nil {
		return err
	}
	args := []string{"--config.file", a.file(), "--storage.path", filepath.Join(a.directory, "data"), "--web.listen-address", a.address, "--cluster.listen-address="}
	if a.recorder {
		args = append(args, "--enable-feature=event-recorder")
	}
	a.cmd = exec.Command(binary, args...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	exited := make(chan struct{})
	a.exited = exited
	if err := child.Start(a.cmd, func(error) { close(exited) }); err != nil {
		return errors.Join(err, a.log.Close())
	}
	if err := ready(ctx, "http://"+a.address+"/-/ready"); err != nil {
		return errors.Join(fmt.Errorf("%w; see %s", err, a.log.Name()), a.stop())
	}
	return nil
}

func (a *alertmanager) kill() error {
	if err := a.cmd.Process.Kill(); err != nil {
		return err
	}
	<-a.exited
	return a.log.Close()
}

func (a *alertmanager) stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-a.exited:
	case <-time.After(15 * time.Second):
		_ = a.cmd.Process.Kill()
		<-a.exited
	}
	return a.log.Close()
}

func (a *alertmanager) pid() int { return a.cmd.Process.Pid }

func (a *alertmanager) post(ctx context.Context, notices []notice) error {
	var alerts []m
	for _, n := range notices {
		alerts = append(alerts, m{
			"labels":      m{"alertname": n.name, idLabel: n.id, "severity": "error", "k8s_cluster_name": clusterName, "k8s_node_name": nodeName},
			"annotations": m{"summary": sentence},
			"startsAt":    n.at.Format(time.RFC3339Nano),
		})
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		return err
	}
	return submit(ctx, "http://"+a.address+"/api/v2/alerts", "application/json", body)
}

// receipts are the successes that the event recorder wrote, and what the log
// says was given up.
func (a *alertmanager) receipts(context.Context) ([]receipt, error) {
	all, err := scanned(a.events(), a.recorded)
	if err != nil {
		return nil, err
	}
	for life := 1; life <= a.lives; life++ {
		more, err := scanned(a.logOf(life), func(line []byte) ([]receipt, error) { return a.logged(line, life == a.lives) })
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// scanned reads a file that may not be there, line by line.
func scanned(path string, read func([]byte) ([]receipt, error)) (all []receipt, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		more, err := read(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, more...)
	}
	return all, lines.Err()
}

// recorded reads a line of the event recorder. What a kill left of a line tells
// nothing.
func (a *alertmanager) recorded(line []byte) (all []receipt, err error) {
	var event struct {
		Data struct {
			Notification struct {
				Alerts []struct {
					Details struct {
						Labels struct {
							Labels []struct{ Key, Value string }
						}
					}
				}
				Integration struct {
					Index int `json:",string"` // left out where it is 0
				}
			}
		}
	}
	if !json.Valid(line) {
		return nil, nil
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return nil, err
	}
	sent := event.Data.Notification
	for _, one := range sent.Alerts {
		for _, label := range one.Details.Labels.Labels {
			if label.Key != idLabel {
				continue
			}
			name, err := a.hookAt(sent.Integration.Index)
			if err != nil {
				return nil, err
			}
			// It writes successes alone, and this is what they are answered here.
			all = append(all, receipt{hook: name, id: label.Value, attempt: true, status: http.StatusNoContent})
		}
	}
	return all, nil
}

var (
	groupID     = regexp.MustCompile(idLabel + `=\\?"([^"\\]+)`)
	integration = regexp.MustCompile(`webhook\[(\d+)\]`)
)

// logged reads a line of the log: it says which group it gave up at which
// receivers, and which it will try again. What it would try again is in its
// memory: of a life that was killed that means nothing.
func (a *alertmanager) logged(line []byte, lastLife bool) (all []receipt, err error) {
	one := receipt{
		gaveUp: bytes.Contains(line, []byte("Notify for alerts failed")),
		waits:  lastLife && bytes.Contains(line, []byte("will retry later")),
	}
	if !one.gaveUp && !one.waits {
		return nil, nil
	}
	for _, id := range groupID.FindAllSubmatch(line, -1) {
		for _, index := range integration.FindAllSubmatch(line, -1) {
			i, err := strconv.Atoi(string(index[1]))
			if err != nil {
				return nil, err
			}
			if one.hook, err = a.hookAt(i); err != nil {
				return nil, err
			}
			one.id = string(id[1])
			all = append(all, one)
		}
	}
	return all, nil
}

// hookAt is the name of the receiver that an integration posts to.
func (a *alertmanager) hookAt(i int) (string, error) {
	if i < 0 || i >= len(a.hooks.list) {
		return "", fmt.Errorf("there is no integration %d", i)
	}
	return a.hooks.list[i].name, nil
}
