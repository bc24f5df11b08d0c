// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

type m = map[string]any

// lab starts what an attack needs and ends it.
type lab struct {
	Options
	dir    string
	closed []func() error
	shared *stage
}

// stage is a cluster that attacks are played in one after the other, until one
// succeeds: then the next gets a fresh one.
type stage struct {
	options Options
	n       int
	*cluster
}

// cluster is the stage's.
func (l *lab) cluster(ctx context.Context) (*cluster, error) {
	s := l.shared
	if s.cluster != nil {
		return s.cluster, nil
	}
	s.n++
	own := &lab{Options: s.options, dir: filepath.Join(s.options.Dir, fmt.Sprintf("cluster-%d", s.n))}
	if err := os.MkdirAll(own.dir, 0o700); err != nil {
		return nil, err
	}
	c, err := own.newCluster(ctx)
	if err != nil {
		return nil, errors.Join(err, own.close())
	}
	s.cluster = c
	return c, nil
}

// clear ends the cluster, if there is one.
func (s *stage) clear() error {
	if s.cluster == nil {
		return nil
	}
	c := s.cluster
	s.cluster = nil
	return c.close()
}

func (l *lab) onClose(f func() error) { l.closed = append(l.closed, f) }

// close ends everything, the last first.
func (l *lab) close() error {
	var errs []error
	for _, f := range slices.Backward(l.closed) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// serve answers on a free loopback port.
func (l *lab) serve(h http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", collector.Loopback+":0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }()
	l.onClose(s.Close)
	return "http://" + listener.Addr().String(), nil
}

// webhookTo is a webhook exporter with one endpoint, which records what arrives.
func (l *lab) webhookTo(audit m) (*webhook.Sink, m, error) {
	sink := webhook.NewSink(time.Now)
	url, err := l.serve(sink)
	if err != nil {
		return nil, nil, err
	}
	webhook := m{"receivers": m{"default": m{"url": url + "/hook"}}, "allow_cidrs": []string{"127.0.0.0/8"}}
	if audit != nil {
		webhook["audit"] = audit
	}
	return sink, m{"exporters": m{"webhook": webhook}}, nil
}

// fleet serves the demo's fleet without its script. Its nodes are gpu-node-a to
// gpu-node-d.
func (l *lab) fleet() (*gpusim.Fleet, *exporters.Server, error) {
	demo := gpusim.Demo(gpusim.DemoTimes())
	demo.Faults = nil
	fleet, err := gpusim.New(demo, time.Now)
	if err != nil {
		return nil, nil, err
	}
	server, err := exporters.Serve(fleet, collector.Loopback, 0)
	if err != nil {
		return nil, nil, err
	}
	l.onClose(func() error { server.Close(); return nil })
	return fleet, server, nil
}

// process is a collector in its lives: the same configuration, ports and state.
type process struct {
	name  string
	ports ports
	lives int
	start func() (*collector.Collector, error)
	*collector.Collector
}

// ports are where a collector listens. Applications are what the overlays for
// applications add.
type ports struct {
	grpc, http, health, own, prometheus, store, console, appsGRPC, appsPrometheus, control int
}

func freePorts() (p ports, err error) {
	n, err := collector.Free(10)
	if err != nil {
		return p, err
	}
	return ports{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]}, nil
}

func local(port int) string { return net.JoinHostPort(collector.Loopback, strconv.Itoa(port)) }

func at(port int, path string) string { return "http://" + local(port) + path }

// overlay moves a configuration to these ports. Components that it does not use
// are left out by the collector.
func (p ports) overlay() m {
	return m{
		"extensions": m{"health_check": m{"endpoint": local(p.health)}},
		"service": m{"telemetry": m{"metrics": m{"readers": []any{
			m{"pull": m{"exporter": m{"prometheus": m{"host": collector.Loopback, "port": p.own}}}},
		}}}},
	}
}

// run starts a collector of these configurations with more on top.
func (l *lab) run(ctx context.Context, name string, p ports, env []string, overlay m, configs ...string) (*process, error) {
	var files []string
	for _, c := range configs {
		files = append(files, filepath.Join(l.Configs, c))
	}
	for _, top := range []m{p.overlay(), overlay} {
		text, err := json.Marshal(top)
		if err != nil {
			return nil, err
		}
		files = append(files, "yaml:"+string(text))
	}
	made := &process{name: name, ports: p}
	made.start = func() (*collector.Collector, error) {
		made.lives++
		return collector.Start(collector.Options{
			Binary: filepath.Join(l.Bin, "otelcol-gpu"), Configs: files,
			Env:     append([]string{"STATE_DIRECTORY=" + filepath.Join(l.dir, name+"-state")}, env...),
			LogPath: filepath.Join(l.dir, fmt.Sprintf("%s-%d.log", name, made.lives)),
			Ports:   collector.Ports{Health: p.health, Prometheus: p.prometheus, Own: p.own},
		})
	}
	if err := made.again(ctx); err != nil {
		return nil, err
	}
	l.onClose(made.stop)
	return made, nil
}

// again starts the collector's next life.
func (p *process) again(ctx context.Context) (err error) {
	if p.Collector, err = p.start(); err != nil {
		return err
	}
	if err := p.WaitReady(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", p.name, err), p.Stop())
	}
	return nil
}

// stop ends the collector. One that ended by itself before has crashed, or was
// ended by the kernel.
func (p *process) stop() error {
	select {
	case <-p.Exited():
		if p.Died() != nil && p.lives > 0 {
			return errors.Join(p.Died(), p.Stop())
		}
	default:
	}
	return p.Stop()
}

// end stops the collector so that stop has nothing left to do.
func (p *process) end() error {
	err := p.Stop()
	p.lives = -p.lives
	return err
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMiB is the most memory that the process had resident, in MiB.
func (p *process) peakMiB() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("%s has ended: %w", p.name, err)
	}
	found := peak.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("/proc has no VmHWM: this needs Linux")
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	return kib / 1024, err
}

// overMiB reports memory above a limit, or that the process has ended, as what
// the attacker achieved.
func (p *process) overMiB(limit float64) []string {
	mib, err := p.peakMiB()
	if err != nil {
		return []string{err.Error()}
	}
	if mib <= limit {
		return nil
	}
	return []string{fmt.Sprintf("the %s's memory rose to %.0f MiB; its container has %.0f MiB", p.name, mib, limit)}
}

// logged is how many bytes the process has logged.
func (p *process) logged() (int64, error) {
	info, err := os.Stat(p.LogPath)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// until asks every 100 ms until ok is true, and fails after a while.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ok()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for: %s (%w)", what, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// getJSON reads a JSON answer.
func getJSON(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %.200s", url, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// sample is one series of an instant query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// query asks the embedded store.
func (p *process) query(ctx context.Context, expression string) ([]sample, error) {
	var answer struct {
		Data struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	err := getJSON(ctx, at(p.ports.store, "/api/v1/query?query="+url.QueryEscape(expression)), &answer)
	return answer.Data.Result, err
}

// gpuctl runs the command and returns what it printed and its exit code.
func (l *lab) gpuctl(ctx context.Context, args ...string) (out string, code int, err error) {
	c := exec.CommandContext(ctx, filepath.Join(l.Bin, "gpuctl"), args...)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return both.String(), exit.ExitCode(), nil
	}
	return both.String(), 0, err
}
