// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs a collector through several lives, measures it and reads its logs.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Process is one collector under test, through all its lives. Its methods may be
// called concurrently.
type Process struct {
	Name    string
	Binary  string
	Dir     string // its state and logs
	Configs []string
	Env     []string
	Ports   collector.Ports
	Pprof   int // port
	// Died is called when it ends by itself.
	Died func(p *Process, err error)
	// Ended is called when it was ended on purpose.
	Ended func(p *Process)

	mu      sync.Mutex // guards what follows
	current *collector.Collector
	ending  bool // it is being ended on purpose
	lives   int
	since   time.Time // of this life
}

// Adopt is a process that runs already.
func Adopt(c *collector.Collector, since time.Time) *Process {
	return &Process{current: c, since: since}
}

// State is the folder of what outlives it.
func (p *Process) State() string { return filepath.Join(p.Dir, p.Name+"-state") }

// Log is the file of the output of one life, from 1 on.
func (p *Process) Log(life int) string {
	return filepath.Join(p.Dir, fmt.Sprintf("%s-%d.log", p.Name, life))
}

// Start begins the next life and does not wait until the collector is ready.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives++
	c, err := collector.Start(collector.Options{
		Binary: p.Binary, Configs: p.Configs, Env: append([]string{"STATE_DIRECTORY=" + p.State()}, p.Env...),
		LogPath: p.Log(p.lives), Ports: p.Ports,
	})
	if err != nil {
		return err
	}
	p.current, p.ending, p.since = c, false, time.Now()
	go func() {
		<-c.Exited()
		p.mu.Lock()
		expected := p.ending || p.current != c
		p.mu.Unlock()
		if !expected {
			p.Died(p, c.Died())
		}
	}()
	return nil
}

// Running is the collector and since when it lives; nil if it does not.
func (p *Process) Running() (*collector.Collector, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.ending {
		return nil, time.Time{}
	}
	return p.current, p.since
}

// end marks the life as one that is being ended.
func (p *Process) end() *collector.Collector {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current
	p.ending, p.current = true, nil
	return c
}

// Kill ends it with SIGKILL and returns when it is gone.
func (p *Process) Kill() error {
	c := p.end()
	if c == nil {
		return nil
	}
	select {
	case <-c.Exited():
	default:
		if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		<-c.Exited()
	}
	p.Ended(p)
	return c.Stop() // closes its log
}

// Terminate ends it in good order.
func (p *Process) Terminate() error {
	c := p.end()
	if c == nil {
		return nil
	}
	select {
	case <-c.Exited():
		return errors.Join(c.Died(), c.Stop())
	default:
		defer p.Ended(p)
		return c.Stop()
	}
}

// Signal sends SIGSTOP or SIGCONT.
func (p *Process) Signal(s syscall.Signal) error {
	c, _ := p.Running()
	if c == nil {
		return nil
	}
	return syscall.Kill(c.PID(), s)
}

// Ready reports whether the health check answers.
func (p *Process) Ready(ctx context.Context) bool {
	if c, _ := p.Running(); c == nil {
		return false
	}
	_, status, err := Fetch(ctx, "http://"+collector.Address(p.Ports.Health)+"/")
	return err == nil && status == http.StatusOK
}

// Metric is the sum of the collector's own metric over the series that have all
// of these labels (name, value, …; "!value" is any other), and whether there is
// one.
func (p *Process) Metric(ctx context.Context, name string, labels ...string) (sum float64, ok bool) {
	families, err := collector.Scrape(ctx, "http://"+collector.Address(p.Ports.Own)+"/metrics")
	if err != nil {
		return 0, false
	}
	for _, candidate := range []string{name, name + "_total"} {
	series:
		for _, metric := range families[candidate].GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				want, other := strings.CutPrefix(labels[i+1], "!")
				if (collector.Label(metric, labels[i]) == want) == other {
					continue series
				}
			}
			sum, ok = sum+collector.Value(metric), true
		}
	}
	return sum, ok
}

// Usage is what a process takes.
type Usage struct {
	Heap       float64 // bytes in use after a garbage collection
	Goroutines float64
	Files      float64
}

// Usage measures what it takes.
func (p *Process) Usage(ctx context.Context) (u Usage, err error) {
	c, _ := p.Running()
	if c == nil {
		return u, fmt.Errorf("%s does not run", p.Name)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.PID()))
	if err != nil {
		return u, err
	}
	u.Files = float64(len(files))
	base := "http://" + collector.Address(p.Pprof) + "/debug/pprof/"
	text, _, err := Fetch(ctx, base+"goroutine?debug=1")
	if err != nil {
		return u, err
	}
	if _, err := fmt.Sscanf(text, "goroutine profile: total %g", &u.Goroutines); err != nil {
		return u, err
	}
	if text, _, err = Fetch(ctx, base+"heap?gc=1&debug=1"); err != nil {
		return u, err
	}
	for line := range strings.Lines(text) {
		if _, err := fmt.Sscanf(line, "# HeapAlloc = %g", &u.Heap); err == nil {
			return u, nil
		}
	}
	return u, fmt.Errorf("%s: the heap profile lacks HeapAlloc", p.Name)
}

// outcries are what no log may have.
var outcries = []string{"panic:", "fatal error:", "DATA RACE", "runtime error", "SIGSEGV"}

// Lives is how often it was started.
func (p *Process) Lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lives
}

// Outcry finds the first such line in the logs from one life on.
func (p *Process) Outcry(from int) (string, error) {
	for life := from; life <= p.Lives(); life++ {
		f, err := os.Open(p.Log(life))
		if err != nil {
			return "", err
		}
		in := bufio.NewReader(f)
		for {
			line, err := in.ReadString('\n')
			for _, text := range outcries {
				if strings.Contains(line, text) {
					_ = f.Close()
					return fmt.Sprintf("%s: %.300s", filepath.Base(p.Log(life)), line), nil
				}
			}
			if err != nil {
				break
			}
		}
		_ = f.Close()
	}
	return "", nil
}

// Client keeps no connections.
var Client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Fetch gets a page of at most 64 MiB.
func Fetch(ctx context.Context, url string) (body string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	resp, err := Client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return string(text), resp.StatusCode, err
}
