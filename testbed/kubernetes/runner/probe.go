// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// often is the pause between two readiness probes where the pod wants them less
// often: nothing waits for them here.
const often = 500 * time.Millisecond

// probe asks a container whether it is ready, and ends it when it is not alive.
func (p *pod) probe(c *corev1.Container) {
	alive := time.Now() // when it was last known to be, or started
	var of *process
	for p.pause(often) {
		p.mu.Lock()
		state := p.containers[c.Name]
		run, started, was := state.run, state.started, state.ready
		p.mu.Unlock()
		if run == nil {
			continue
		}
		if run != of {
			of, alive = run, started
			if startup := c.StartupProbe; startup != nil {
				// Until then only the startup probe counts.
				alive = started.Add(seconds(startup.PeriodSeconds, 10) * time.Duration(max(startup.FailureThreshold, 1)))
			}
		}
		ready := c.ReadinessProbe == nil || p.check(c, c.ReadinessProbe) == nil
		if ready != was {
			p.mu.Lock()
			changed := state.run == run && state.ready != ready
			if changed {
				state.ready = ready
			}
			p.mu.Unlock()
			if changed {
				p.report()
			}
		}
		live := c.LivenessProbe
		if live == nil || time.Since(started) < seconds(live.InitialDelaySeconds, 0) || p.check(c, live) == nil {
			alive = time.Now()
			continue
		}
		if time.Since(alive) > seconds(live.PeriodSeconds, 10)*time.Duration(max(live.FailureThreshold, 1)) {
			run.signal(syscall.SIGKILL)
		}
	}
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

// check asks once.
func (p *pod) check(c *corev1.Container, probe *corev1.Probe) error {
	timeout := seconds(probe.TimeoutSeconds, 1)
	switch {
	case probe.HTTPGet != nil:
		port, err := portOf(c, probe.HTTPGet.Port)
		if err != nil {
			return err
		}
		client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(strings.ToLower(string(probe.HTTPGet.Scheme)) + "://" + net.JoinHostPort(p.address, port) + probe.HTTPGet.Path)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			return errors.New(response.Status)
		}
		return nil
	case probe.TCPSocket != nil:
		port, err := portOf(c, probe.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(p.address, port), timeout)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	return errors.New("the runner knows no such probe")
}

// port is the number of a port that one of the containers has.
func (p *pod) port(port intstr.IntOrString) (string, bool) {
	for i := range p.spec.Spec.Containers {
		if number, err := portOf(&p.spec.Spec.Containers[i], port); err == nil {
			return number, true
		}
	}
	return "", false
}

func portOf(c *corev1.Container, port intstr.IntOrString) (string, error) {
	if port.Type == intstr.Int {
		return strconv.Itoa(port.IntValue()), nil
	}
	for _, named := range c.Ports {
		if named.Name == port.StrVal {
			return strconv.Itoa(int(named.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("container %s has no port %s", c.Name, port.StrVal)
}
