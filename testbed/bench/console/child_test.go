// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
)

// environment holds what a process of its own is to do.
const environment = "GPU_CONSOLE_BENCH"

// job is what a process of its own does: fill a store with a day of a fleet, or
// serve a console over a store.
type job struct {
	Fill       bool
	Directory  string
	GPUs       int
	Prometheus string    // the server to ask; empty is the embedded engine
	Listen     string    // of a console with requests that share nothing
	Shared     string    // of one with requests that share what the store reported
	Next       time.Time // the next sample of the fleet, which goes on
}

// filled is the result of a process that has filled a store.
type filled struct {
	Last    time.Time
	Samples int
	Seconds float64
}

func TestMain(m *testing.M) {
	if text := os.Getenv(environment); text != "" {
		var j job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			panic(err)
		}
		if err := j.run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func begin(f extension.Factory, config component.Config, extensions host) (extension.Extension, error) {
	set := extension.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	e, err := f.Create(context.Background(), set, config)
	if err != nil {
		return nil, err
	}
	return e, e.Start(context.Background(), extensions)
}

// openStore opens a store that keeps the day and has no limit in the way.
func openStore(directory, prometheus string) (extension.Extension, error) {
	f := gpustoreextension.NewFactory()
	c := f.CreateDefaultConfig().(*gpustoreextension.Config)
	c.Directory, c.Retention, c.MaxBytes = directory, 48*time.Hour, 16<<30
	c.API.NetAddr.Endpoint = ""
	if prometheus != "" {
		c.Engine, c.Prometheus.URL = "prometheus", prometheus
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return begin(f, c, host{})
}

func (j *job) run() error {
	opened, err := openStore(j.Directory, j.Prometheus)
	if err != nil {
		return err
	}
	if j.Fill {
		if err := j.fill(opened.(store.Store)); err != nil {
			return err
		}
		return opened.Shutdown(context.Background())
	}
	f := gpuconsoleextension.NewFactory()
	var served []extension.Extension
	for address, share := range map[string]bool{j.Listen: false, j.Shared: true} {
		c := f.CreateDefaultConfig().(*gpuconsoleextension.Config)
		c.NetAddr.Endpoint = address
		if !share {
			c.ShareFor = 0
		}
		e, err := begin(f, c, host{store.DefaultID: opened})
		if err != nil {
			return err
		}
		served = append(served, e)
	}
	fmt.Println("ready")
	ended := make(chan struct{})
	go func() { // ends with the parent process
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	if j.Prometheus == "" {
		err = j.goOn(opened.(store.Store), ended)
	} else {
		<-ended
	}
	if err != nil {
		return err
	}
	for _, e := range served {
		if err := e.Shutdown(context.Background()); err != nil {
			return err
		}
	}
	return opened.Shutdown(context.Background())
}

// fill writes a day of the fleet that ends now.
func (j *job) fill(s store.Store) error {
	series := fleet(j.GPUs)
	last := time.Now().Truncate(interval)
	began, stored := time.Now(), 0
	for part := range slices.Chunk(times(last), 20) {
		a, err := s.Append(context.Background(), batch(series, part))
		if err != nil {
			return err
		}
		if len(a.Refused) > 0 {
			return fmt.Errorf("refused: %v", a.Refused)
		}
		stored += a.Stored
	}
	return json.NewEncoder(os.Stdout).Encode(filled{last, stored, time.Since(began).Seconds()})
}

// goOn writes what the fleet reports from then on, node by node as it would arrive.
func (j *job) goOn(s store.Store, ended <-chan struct{}) error {
	for next := j.Next; ; next = next.Add(interval) {
		select {
		case <-time.After(time.Until(next)):
		case <-ended:
			return nil
		}
		for n := range j.GPUs / perNode {
			if _, err := s.Append(context.Background(), batch(node(n), []time.Time{next})); err != nil {
				return err
			}
		}
	}
}

// process is a running job.
type process struct {
	pid   int
	stop  func()
	lines *bufio.Scanner
}

// start starts a job in a process of its own, which ends with the benchmark or
// before it.
func (j *job) start(tb testing.TB) *process {
	tb.Helper()
	text, err := json.Marshal(j)
	require.NoError(tb, err)
	self, err := os.Executable()
	require.NoError(tb, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), environment+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, writer, err := os.Pipe()
	require.NoError(tb, err)
	cmd.Stdout = writer
	ended := make(chan error, 1)
	require.NoError(tb, child.Start(cmd, func(err error) { ended <- err }))
	require.NoError(tb, writer.Close())
	p := &process{pid: cmd.Process.Pid, lines: bufio.NewScanner(out)}
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = in.Close()
		require.NoError(tb, <-ended)
		_ = out.Close()
	}
	tb.Cleanup(p.stop)
	return p
}

// line is the next line that it reports.
func (p *process) line(tb testing.TB) []byte {
	tb.Helper()
	require.True(tb, p.lines.Scan(), "the process has ended: %v", p.lines.Err())
	return p.lines.Bytes()
}
