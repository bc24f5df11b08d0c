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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// often is the pause between two readiness probes where the pod wants them less
// often: nothing waits for them here.
const often = 500 * time.Millisecond

// prober probes one container of a pod, in all its runs.
type prober struct {
	container *corev1.Container
	address   string    // of the pod
	run       *process  // that was probed last
	alive     time.Time // when it was last known to be, or started
}

func (p *prober) ready() bool {
	return p.container.ReadinessProbe == nil || check(p.address, p.container, p.container.ReadinessProbe) == nil
}

// hung reports whether a run that has started then was not alive for too long.
func (p *prober) hung(run *process, started time.Time) bool {
	if run != p.run {
		p.run, p.alive = run, started
		if startup := p.container.StartupProbe; startup != nil {
			// Until then only the startup probe counts.
			p.alive = started.Add(seconds(startup.PeriodSeconds, 10) * time.Duration(max(startup.FailureThreshold, 1)))
		}
	}
	live := p.container.LivenessProbe
	if live == nil || time.Since(started) < seconds(live.InitialDelaySeconds, 0) || check(p.address, p.container, live) == nil {
		p.alive = time.Now()
		return false
	}
	return time.Since(p.alive) > seconds(live.PeriodSeconds, 10)*time.Duration(max(live.FailureThreshold, 1))
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

// check probes a container of the pod at an address once.
func check(address string, c *corev1.Container, probe *corev1.Probe) error {
	timeout := seconds(probe.TimeoutSeconds, 1)
	switch {
	case probe.HTTPGet != nil:
		port, err := portOf(c, probe.HTTPGet.Port)
		if err != nil {
			return err
		}
		client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(strings.ToLower(string(probe.HTTPGet.Scheme)) + "://" + net.JoinHostPort(address, port) + probe.HTTPGet.Path)
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
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, port), timeout)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	return errors.New("the runner knows no such probe")
}

// podPort is the number of a port that one of the pod's containers has.
func podPort(pod *corev1.Pod, port intstr.IntOrString) (string, bool) {
	for i := range pod.Spec.Containers {
		if number, err := portOf(&pod.Spec.Containers[i], port); err == nil {
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
