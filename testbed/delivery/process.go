// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

type m = map[string]any

// workers is how many deliveries to one receiver are on their way at once.
const workers = 8

// process is the collector under test, through all its lives.
type process struct {
	binary string
	dir    string // its storage, audit files, keys and logs
	config string
	ports  collector.Ports
	pprof  int

	lives int

	mu      sync.Mutex
	current *collector.Collector
	peak    usage
}

// usage is what the process takes of the machine.
type usage struct {
	memory     float64 // bytes
	goroutines int
}

func (p *process) audit() string          { return filepath.Join(p.dir, "audit", "audit.jsonl") }
func (p *process) checkpointKey() string  { return filepath.Join(p.dir, "checkpoint.key") }
func (p *process) fingerprintKey() string { return filepath.Join(p.dir, "fingerprint.key") }

// configure makes the folders and the configuration for these receivers.
func (p *process) configure(events int, receivers []*Receiver) error {
	for _, folder := range []string{"storage", "audit"} {
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o700); err != nil {
			return err
		}
	}
	list := m{}
	for _, r := range receivers {
		list[r.Name] = r.Configuration(events)
	}
	config, err := json.Marshal(m{
		"receivers": m{"otlp": m{"protocols": m{"http": m{"endpoint": address(p.ports.OTLPHTTP)}}}},
		"exporters": m{"webhook": m{
			"receivers":   list,
			"allow_cidrs": []string{"127.0.0.0/8"},
			"retry":       m{"enabled": true, "initial_interval": "100ms", "max_interval": "2s", "max_attempts": 6},
			"group_wait":  "20ms", // where the format allows several events in one request
			"storage":     "file_storage",
			"audit": m{
				"path":                 p.audit(),
				"fingerprint_key_file": p.fingerprintKey(),
				"checkpoint_key_file":  p.checkpointKey(),
				"checkpoint_interval":  "1s",
				"max_bytes":            2 << 20,
				"max_files":            1000,
			},
		}},
		"extensions": m{
			"health_check": m{"endpoint": address(p.ports.Health)},
			"pprof":        m{"endpoint": address(p.pprof)},
			"file_storage": m{"directory": filepath.Join(p.dir, "storage")},
		},
		"service": m{
			"extensions": []string{"health_check", "pprof", "file_storage"},
			"pipelines":  m{"logs": m{"receivers": []string{"otlp"}, "exporters": []string{"webhook"}}},
			"telemetry": m{
				// The audit file is the record here; a line of log for each would
				// be the larger part of the run.
				"logs": m{"level": "error"},
				"metrics": m{"readers": []m{
					{"pull": m{"exporter": m{"prometheus": m{"host": collector.Loopback, "port": p.ports.Own}}}},
				}},
			},
		},
	})
	p.config = "yaml:" + string(config)
	return err
}

// launch begins the next life and does not wait until the collector is ready.
func (p *process) launch() error {
	p.lives++
	log := filepath.Join(p.dir, fmt.Sprintf("collector-%d.log", p.lives))
	c, err := collector.Start(collector.Options{Binary: p.binary, Configs: []string{p.config}, LogPath: log, Ports: p.ports})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = c
	return nil
}

// start begins the next life and returns when the collector is ready.
func (p *process) start(ctx context.Context) error {
	if err := p.launch(); err != nil {
		return err
	}
	if err := p.running().WaitReady(ctx); err != nil {
		_ = p.running().Stop()
		return err
	}
	return nil
}

// kill ends the collector with SIGKILL and returns when it is gone.
func (p *process) kill() error {
	c := p.running()
	running, err := os.FindProcess(c.PID())
	if err != nil {
		return err
	}
	if err := running.Kill(); err != nil {
		return fmt.Errorf("%w; %w", err, c.Died())
	}
	<-c.Exited()
	return c.Stop() // closes its log
}

// stop ends it in good order.
func (p *process) stop() error {
	c := p.running()
	select {
	case <-c.Exited():
		return c.Died()
	default:
		return c.Stop()
	}
}

func (p *process) running() *collector.Collector {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// watch samples what the collector takes until ctx ends. While it is down there
// is nothing to sample.
func (p *process) watch(ctx context.Context) {
	for sleep(ctx, 500*time.Millisecond) {
		var now usage
		if families, err := p.running().OwnMetrics(ctx); err == nil {
			for _, name := range []string{"otelcol_process_memory_rss", "otelcol_process_memory_rss_bytes"} {
				for _, metric := range families[name].GetMetric() {
					now.memory = collector.Value(metric)
				}
			}
		}
		now.goroutines = p.goroutines(ctx)
		p.mu.Lock()
		p.peak.memory = max(p.peak.memory, now.memory)
		p.peak.goroutines = max(p.peak.goroutines, now.goroutines)
		p.mu.Unlock()
	}
}

// goroutines asks the pprof extension; 0 if it does not answer.
func (p *process) goroutines(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(p.pprof)+"/debug/pprof/goroutine?debug=1", nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	var n int
	_, _ = fmt.Sscanf(line, "goroutine profile: total %d", &n)
	return n
}

func address(port int) string { return net.JoinHostPort(collector.Loopback, strconv.Itoa(port)) }
