// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Program is a running contender.
type Program struct {
	PID  int
	Stop func()
}

// Collect runs otelcol-gpu. moved is laid over the ports, which every
// configuration has its own of.
func (w *World) Collect(ctx context.Context, env []string, configs func(collector.Ports) []string) (Program, error) {
	directory, err := w.Folder("collector")
	if err != nil {
		return Program{}, err
	}
	ports, err := collector.FreePorts()
	if err != nil {
		return Program{}, err
	}
	c, err := collector.Start(collector.Options{Binary: w.Bin("otelcol-gpu"), Configs: configs(ports), Env: env, LogPath: filepath.Join(directory, "collector.log"), Ports: ports})
	if err != nil {
		return Program{}, err
	}
	p := Program{PID: c.PID(), Stop: func() { _ = c.Stop() }}
	if err := c.WaitReady(ctx); err != nil {
		p.Stop()
		return Program{}, err
	}
	return p, nil
}

// PrometheusAgent runs a Prometheus server in agent mode, which scrapes these
// addresses and writes to the sink.
func (w *World) PrometheusAgent(ctx context.Context, targets []string, interval time.Duration, s *Sink) (Program, error) {
	p, _, err := w.StartPrometheus(ctx, m{
		"global":         m{"scrape_interval": interval.String(), "scrape_timeout": interval.String()},
		"scrape_configs": []m{{"job_name": "dcgm", "static_configs": []m{{"targets": targets}}}},
		"remote_write":   []m{{"url": "http://" + s.Write + "/write"}},
	}, func(directory string) []string {
		return []string{"--agent", "--storage.agent.path", filepath.Join(directory, "data")}
	})
	return p, err
}

// StartPrometheus runs a Prometheus server of the train and waits until it is
// ready. It returns its URL too.
func (w *World) StartPrometheus(ctx context.Context, config m, flags func(directory string) []string) (_ Program, url string, err error) {
	binary, err := w.prometheus(ctx)
	if err != nil {
		return Program{}, "", err
	}
	directory, err := w.Folder("prometheus")
	if err != nil {
		return Program{}, "", err
	}
	text, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		return Program{}, "", err
	}
	path := filepath.Join(directory, "prometheus.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return Program{}, "", err
	}
	free, err := collector.Free(1)
	if err != nil {
		return Program{}, "", err
	}
	logFile, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		return Program{}, "", err
	}
	address := fmt.Sprintf("%s:%d", collector.Loopback, free[0])
	cmd := exec.Command(binary, append([]string{"--config.file", path, "--web.listen-address", address}, flags(directory)...)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	exited := make(chan struct{})
	if err := child.Start(cmd, func(error) { close(exited) }); err != nil {
		_ = logFile.Close()
		return Program{}, "", err
	}
	p := Program{PID: cmd.Process.Pid, Stop: func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		_ = logFile.Close()
	}}
	if err := Ready(ctx, "http://"+address+"/-/ready"); err != nil {
		p.Stop()
		return Program{}, "", fmt.Errorf("%w; see %s", err, logFile.Name())
	}
	return p, "http://" + address, nil
}

// Ready waits until a URL answers with 200.
func Ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s does not answer: %w", url, err)
		}
	}
}

// Measure warms a contender up and measures it, and what was counted meanwhile.
func (w *World) Measure(ctx context.Context, p Program, count func() int64) (window, float64, error) {
	defer p.Stop()
	if err := Sleep(ctx, w.Warmup); err != nil {
		return window{}, 0, err
	}
	before := count()
	used, err := Watch(ctx, p.PID, w.Window)
	return used, float64(count() - before), err
}

// Stock is a Collector that does nothing but scrape these addresses, as the
// Collector of the same train does it.
func Stock(targets []string, interval time.Duration, exporter string, exporters m) m {
	return m{
		"receivers": m{"prometheus": m{"config": m{"scrape_configs": []m{{
			"job_name": "dcgm", "scrape_interval": interval.String(), "scrape_timeout": interval.String(), "static_configs": []m{{"targets": targets}},
		}}}}},
		"exporters":  exporters,
		"extensions": m{"health_check": m{}},
		"service": m{
			"extensions": []string{"health_check"},
			"pipelines":  m{"metrics": m{"receivers": []string{"prometheus"}, "exporters": []string{exporter}}},
			"telemetry":  m{"logs": m{"level": "warn"}},
		},
	}
}

// Moved is where a configuration that has these sections listens.
func Moved(ports collector.Ports, sections ...string) m {
	all := ports.Overlay()
	out := m{"service": all["service"], "extensions": m{"health_check": all["extensions"].(m)["health_check"]}}
	for _, section := range sections {
		out[section] = all[section]
	}
	return out
}
