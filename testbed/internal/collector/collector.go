// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector runs the otelcol-gpu binary for the demo and for end-to-end
// tests: as a process of its own, on ports that can be moved.
package collector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
)

// stopTimeout is how long a collector may take to finish what is in flight.
const stopTimeout = 30 * time.Second

// Options are what to run.
type Options struct {
	Binary  string
	Configs []string // files or yaml:… texts, merged in order
	Env     []string // NAME=value, beside this process's own
	LogPath string   // stdout and stderr of the process
	Ports   Ports
}

// Collector is a running otelcol-gpu. Stop must be called.
type Collector struct {
	Ports   Ports
	LogPath string

	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{}
	err    error // why it exited; read after exited is closed
}

// Start starts the collector; it does not wait until it is ready.
func Start(o Options) (*Collector, error) {
	if _, err := os.Stat(o.Binary); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	c := &Collector{Ports: o.Ports, LogPath: o.LogPath, exited: make(chan struct{})}
	var err error
	if c.log, err = os.Create(o.LogPath); err != nil {
		return nil, err
	}
	var args []string
	for _, config := range o.Configs {
		args = append(args, "--config", config)
	}
	c.cmd = exec.Command(o.Binary, args...)
	// What outlives a restart is beside the log, unless Env sets another place.
	c.cmd.Env = append(append(os.Environ(), "STATE_DIRECTORY="+StateOf(o.LogPath)), o.Env...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	err = child.Start(c.cmd, func(err error) {
		c.err = err
		close(c.exited)
	})
	if err != nil {
		_ = c.log.Close()
		return nil, err
	}
	return c, nil
}

// StateOf is where a collector with this log keeps what outlives a restart.
func StateOf(logPath string) string { return strings.TrimSuffix(logPath, ".log") + "-state" }

// PID is the process id.
func (c *Collector) PID() int { return c.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (c *Collector) Exited() <-chan struct{} { return c.exited }

// WaitReady returns when the collector's health check answers, and with an error
// when the process ends or three minutes have passed.
func (c *Collector) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if c.healthy(ctx) {
			return nil
		}
		select {
		case <-c.exited:
			return c.Died()
		case <-ctx.Done():
			return fmt.Errorf("the collector is not healthy, see %s: %w", c.LogPath, ctx.Err())
		case <-tick.C:
		}
	}
}

func (c *Collector) healthy(ctx context.Context) bool {
	resp, err := get(ctx, "http://"+Address(c.Ports.Health)+"/")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Died returns why the collector exited, from the end of its log.
func (c *Collector) Died() error {
	reason := "status 0"
	if c.err != nil {
		reason = c.err.Error()
	}
	return fmt.Errorf("the collector exited (%s); the end of %s:\n%s", reason, c.LogPath, tail(c.LogPath, 12))
}

func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if lines = append(lines, "  "+scanner.Text()); len(lines) > n {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// Stop asks the collector to end, and insists after a while. A process that had
// ended by itself is no error here: Died reports it.
func (c *Collector) Stop() error {
	defer c.log.Close()
	select {
	case <-c.exited:
		return nil
	default:
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return c.err
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("the collector did not stop within %v and was killed", stopTimeout)
	}
}

// Metrics reads the collector's Prometheus exporter.
func (c *Collector) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return Scrape(ctx, "http://"+Address(c.Ports.Prometheus)+"/metrics")
}

// OwnMetrics reads the collector's metrics about itself.
func (c *Collector) OwnMetrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return Scrape(ctx, "http://"+Address(c.Ports.Own)+"/metrics")
}

// Scrape reads a Prometheus text page.
func Scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(url + " answers " + resp.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(io.LimitReader(resp.Body, 64<<20))
}

// Label is the value of a label, "" where there is none.
func Label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Value is the value of a gauge, counter or untyped sample.
func Value(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	default:
		return m.GetUntyped().GetValue()
	}
}

func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}
