// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// collector is the running otelcol-gpu.
type collector struct {
	cmd     *exec.Cmd
	health  string // URL
	logPath string
	log     *os.File
	exited  chan struct{}
	err     error // why it exited; read after exited is closed
}

func (d *demo) startCollector() (*collector, error) {
	binary := filepath.Join(d.root, "bin", "otelcol-gpu")
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	args := []string{"--config", filepath.Join(d.root, "config", "standalone.yaml")}
	env := os.Environ()
	if d.exporter == "" {
		args = append(args, "--config", filepath.Join(d.root, "config", "demo.yaml"))
	} else {
		env = append(env, "DCGM_EXPORTER_ENDPOINT="+d.exporter)
	}
	if d.moved {
		overlay, err := d.ports.overlay(d.targets)
		if err != nil {
			return nil, err
		}
		args = append(args, "--config", "yaml:"+overlay)
	}
	c := &collector{health: fmt.Sprintf("http://localhost:%d/", d.ports.health), logPath: filepath.Join(d.root, "bin", d.logName()), exited: make(chan struct{})}
	var err error
	if c.log, err = os.Create(c.logPath); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(binary, args...)
	c.cmd.Env = env
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	// A process group of its own: Ctrl-C is for us, and we stop it in order.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		_ = c.log.Close()
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// logName keeps logs apart when several demos run from one folder.
func (d *demo) logName() string {
	if d.moved {
		return fmt.Sprintf("collector-%d.log", d.ports.prometheus)
	}
	return "collector.log"
}

// waitReady returns when the collector's health check answers.
func (c *collector) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.health, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.exited:
			return c.died()
		case <-ctx.Done():
			return fmt.Errorf("the collector is not healthy: see %s: %w", c.logPath, ctx.Err())
		case <-tick.C:
		}
	}
}

// died says why the collector exited: the end of its log does.
func (c *collector) died() error {
	return fmt.Errorf("the collector exited (%w); the end of %s:\n%s", orSuccess(c.err), c.logPath, tail(c.logPath, 12))
}

func orSuccess(err error) error {
	if err == nil {
		return errors.New("status 0")
	}
	return err
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

// stop asks the collector to end, and insists after ten seconds.
func (c *collector) stop() error {
	defer c.log.Close()
	select {
	case <-c.exited:
		return nil // died told it
	default:
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return c.err
	case <-time.After(10 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return errors.New("the collector did not stop within 10 s and was killed")
	}
}
