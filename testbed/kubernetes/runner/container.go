// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/child"
)

// process is one run of a container.
type process struct {
	pid     int // 0: a proxy
	proxies []*service
	close   sync.Once     // of proxies
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read after done
}

// startContainer starts a container once.
func (p *pod) startContainer(ctx context.Context, c *corev1.Container) (*process, error) {
	program, err := p.r.opts.Program(p.spec, c)
	if err != nil {
		return nil, err
	}
	if program.Proxy != "" {
		return p.startProxy(c, program.Proxy)
	}
	in := p.inside(c.Name)
	env, values, err := p.environment(ctx, c)
	if err != nil {
		return nil, err
	}
	args := slices.Clone(program.Args)
	if len(c.Command) > 1 {
		args = append(args, c.Command[1:]...)
	}
	for _, a := range c.Args {
		args = append(args, p.r.rewrite(expand(a, values), in))
	}
	if p.r.opts.Adapt != nil {
		moreArgs, moreEnv := p.r.opts.Adapt(&in)
		args, env = append(args, moreArgs...), append(env, moreEnv...)
	}
	if err := os.MkdirAll(filepath.Dir(in.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(in.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program.Path, args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdout, cmd.Stderr = log, log
	run := &process{done: make(chan struct{})}
	err = child.Start(cmd, func(err error) {
		_ = log.Close()
		run.err = err
		close(run.done)
	})
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	run.pid = cmd.Process.Pid
	return run, nil
}

// startProxy serves the container's ports by something that runs elsewhere.
func (p *pod) startProxy(c *corev1.Container, to string) (*process, error) {
	run := &process{done: make(chan struct{})}
	for _, port := range c.Ports {
		s, err := serve(net.JoinHostPort(p.address, strconv.Itoa(int(port.ContainerPort))), func() []string { return []string{to} })
		if err != nil {
			run.signal(syscall.SIGKILL)
			return nil, err
		}
		run.proxies = append(run.proxies, s)
	}
	return run, nil
}

func (run *process) signal(s syscall.Signal) {
	select {
	case <-run.done:
		return
	default:
	}
	if run.pid != 0 {
		_ = syscall.Kill(-run.pid, s)
		return
	}
	run.close.Do(func() {
		for _, proxy := range run.proxies {
			proxy.close()
		}
		close(run.done)
	})
}

// exitCode is the status that the container ended with.
func (run *process) exitCode() int32 {
	var exit *exec.ExitError
	switch {
	case run.err == nil:
		return 0
	case errors.As(run.err, &exit) && exit.ExitCode() >= 0:
		return int32(exit.ExitCode())
	default:
		return 128 + int32(syscall.SIGKILL)
	}
}

// environment is the container's, and its values as $(NAME) in arguments.
func (p *pod) environment(ctx context.Context, c *corev1.Container) (env []string, values map[string]string, err error) {
	values = map[string]string{}
	in := p.inside(c.Name)
	set := func(name, value string) {
		values[name] = value
		env = append(env, name+"="+p.r.rewrite(value, in))
	}
	for _, from := range c.EnvFrom {
		data, err := p.sources().env(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		for k, v := range data {
			set(from.Prefix+k, v)
		}
	}
	for _, e := range c.Env {
		value := expand(e.Value, values)
		if e.ValueFrom != nil {
			var ok bool
			if value, ok, err = p.sources().value(ctx, c, e.ValueFrom); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			if !ok {
				continue
			}
		}
		set(e.Name, value)
	}
	return env, values, nil
}

// expand replaces $(NAME) by a variable that is known; $$( is a plain $(.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$(")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, rest, closed := strings.Cut(after, ")")
		value, known := values[name]
		switch {
		case strings.HasSuffix(before, "$"): // which is written already
			out.WriteString("(")
			text = after
		case closed && known:
			out.WriteString(value)
			text = rest
		default:
			out.WriteString("$(")
			text = after
		}
	}
}
