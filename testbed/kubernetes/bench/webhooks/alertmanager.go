// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// grouping is how Alertmanager puts alerts together.
type grouping m

var (
	// "..." is all labels.
	ungrouped = grouping{"group_by": []string{"..."}, "group_wait": "0s"}
	grouped   = grouping{"group_by": []string{"alertname"}} // and its default waits
)

// alertmanager is Alertmanager, alone: not a cluster.
type alertmanager struct {
	w        *frame.World
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

func newAlertmanager(w *frame.World, h *hooks, g grouping) *alertmanager {
	return &alertmanager{w: w, hooks: h, grouping: g}
}

// configure writes the configuration.
func (a *alertmanager) configure() (err error) {
	if a.directory, err = a.w.Folder("alertmanager"); err != nil {
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
	binary, err := alertmanagerPath(ctx, a.w)
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
	if err := frame.Ready(ctx, "http://"+a.address+"/-/ready"); err != nil {
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
// reports was given up.
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

// recorded reads a line of the event recorder. What a kill left of a line reports
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

// logged reads a line of the log: it reports which group it gave up at which
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
