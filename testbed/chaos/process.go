// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

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

// process is one collector under test, through all its lives.
type process struct {
	name    string
	binary  string
	dir     string // its state and logs
	configs []string
	env     []string
	ports   collector.Ports
	pprof   int
	// died is called when it ends by itself.
	died func(p *process, err error)
	// ended is called when it was ended on purpose.
	ended func(p *process)

	mu      sync.Mutex // guards what follows
	current *collector.Collector
	ending  bool // it is being ended on purpose
	lives   int
	since   time.Time // of this life
}

func (p *process) state() string { return filepath.Join(p.dir, p.name+"-state") }

func (p *process) log(life int) string {
	return filepath.Join(p.dir, fmt.Sprintf("%s-%d.log", p.name, life))
}

// start begins the next life and does not wait until the collector is ready.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives++
	c, err := collector.Start(collector.Options{
		Binary: p.binary, Configs: p.configs, Env: append([]string{"STATE_DIRECTORY=" + p.state()}, p.env...),
		LogPath: p.log(p.lives), Ports: p.ports,
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
			p.died(p, c.Died())
		}
	}()
	return nil
}

// running is the collector and since when it lives; nil if it does not.
func (p *process) running() (*collector.Collector, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.ending {
		return nil, time.Time{}
	}
	return p.current, p.since
}

// end marks the life as one that is being ended.
func (p *process) end() *collector.Collector {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current
	p.ending, p.current = true, nil
	return c
}

// kill ends it with SIGKILL and returns when it is gone.
func (p *process) kill() error {
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
	p.ended(p)
	return c.Stop() // closes its log
}

// term ends it in good order.
func (p *process) term() error {
	c := p.end()
	if c == nil {
		return nil
	}
	select {
	case <-c.Exited():
		return errors.Join(c.Died(), c.Stop())
	default:
		defer p.ended(p)
		return c.Stop()
	}
}

// signal sends SIGSTOP or SIGCONT.
func (p *process) signal(s syscall.Signal) error {
	c, _ := p.running()
	if c == nil {
		return nil
	}
	return syscall.Kill(c.PID(), s)
}

// ready reports whether the health check answers.
func (p *process) ready(ctx context.Context) bool {
	if c, _ := p.running(); c == nil {
		return false
	}
	_, status, err := fetch(ctx, "http://"+address(p.ports.Health)+"/")
	return err == nil && status == http.StatusOK
}

// metric is the sum of the collector's own metric over the series that have all
// of these labels (name, value, …; "!value" is any other), and whether there is
// one.
func (p *process) metric(ctx context.Context, name string, labels ...string) (sum float64, ok bool) {
	families, err := collector.Scrape(ctx, "http://"+address(p.ports.Own)+"/metrics")
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

// usage is what a process takes.
type usage struct {
	heap       float64 // bytes in use after a garbage collection
	goroutines float64
	files      float64
}

// usage measures it.
func (p *process) usage(ctx context.Context) (u usage, err error) {
	c, _ := p.running()
	if c == nil {
		return u, fmt.Errorf("%s does not run", p.name)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.PID()))
	if err != nil {
		return u, err
	}
	u.files = float64(len(files))
	base := "http://" + address(p.pprof) + "/debug/pprof/"
	text, _, err := fetch(ctx, base+"goroutine?debug=1")
	if err != nil {
		return u, err
	}
	if _, err := fmt.Sscanf(text, "goroutine profile: total %g", &u.goroutines); err != nil {
		return u, err
	}
	if text, _, err = fetch(ctx, base+"heap?gc=1&debug=1"); err != nil {
		return u, err
	}
	for line := range strings.Lines(text) {
		if _, err := fmt.Sscanf(line, "# HeapAlloc = %g", &u.heap); err == nil {
			return u, nil
		}
	}
	return u, fmt.Errorf("%s: the heap profile does not say HeapAlloc", p.name)
}

// outcries are what no log may have.
var outcries = []string{"panic:", "fatal error:", "DATA RACE", "runtime error", "SIGSEGV"}

// outcry finds the first such line in the logs from one life on.
func (p *process) outcry(from int) (string, error) {
	p.mu.Lock()
	lives := p.lives
	p.mu.Unlock()
	for life := from; life <= lives; life++ {
		f, err := os.Open(p.log(life))
		if err != nil {
			return "", err
		}
		in := bufio.NewReader(f)
		for {
			line, err := in.ReadString('\n')
			for _, text := range outcries {
				if strings.Contains(line, text) {
					_ = f.Close()
					return fmt.Sprintf("%s: %.300s", filepath.Base(p.log(life)), line), nil
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

var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// fetch gets a page of at most 64 MiB.
func fetch(ctx context.Context, url string) (body string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return string(text), resp.StatusCode, err
}
