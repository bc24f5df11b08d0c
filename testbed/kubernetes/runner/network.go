// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// addresses gives loopback addresses away. None is given twice: a pod that
// comes again has another, as in a cluster.
type addresses struct {
	mu       sync.Mutex
	net      [2]int // the second and third byte, other ones in every runner
	pods     int
	services map[string]string
}

func newAddresses() *addresses {
	return &addresses{net: [2]int{64 + rand.IntN(64), rand.IntN(128)}, services: map[string]string{}}
}

// pod returns a pod's address and its loopback.
func (a *addresses) pod() (address, loopback string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods++
	second, third, fourth := a.net[0], a.net[1]+a.pods/250, 1+a.pods%250
	return fmt.Sprintf("127.%d.%d.%d", second, third, fourth), fmt.Sprintf("127.%d.%d.%d", second+64, third, fourth)
}

// service returns the address of a Service, which need not be there yet.
func (a *addresses) service(namespace, name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := namespace + "/" + name
	if a.services[key] == "" {
		a.services[key] = fmt.Sprintf("127.%d.%d.%d", a.net[0]+64, 128+a.net[1], 1+len(a.services))
	}
	return a.services[key]
}

// ServiceAddress is where a port of a Service is served, for programs that are
// no pods.
func (r *Runner) ServiceAddress(namespace, name string, port int) string {
	return net.JoinHostPort(r.addresses.service(namespace, name), strconv.Itoa(port))
}

// service is one port of a Service: connections go to ready pods in turn.
type service struct {
	listener net.Listener
	all      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	next  int
}

// onService listens for a Service that selects pods, and no more when it is gone.
func (r *Runner) onService(object any, there bool) {
	spec := object.(*corev1.Service)
	if len(spec.Spec.Selector) == 0 {
		return
	}
	for _, port := range spec.Spec.Ports {
		key := fmt.Sprintf("%s/%s/%d", spec.Namespace, spec.Name, port.Port)
		r.mu.Lock()
		known := r.proxies[key]
		if !there {
			delete(r.proxies, key)
		}
		r.mu.Unlock()
		switch {
		case there && known == nil:
			address := r.ServiceAddress(spec.Namespace, spec.Name, int(port.Port))
			s, err := serve(address, func() []string { return r.endpoints(spec.Namespace, spec.Name, port.Port) })
			if err != nil {
				r.fail("service "+key, err)
				continue
			}
			r.mu.Lock()
			stopped := r.stopped
			if !stopped {
				r.proxies[key] = s
			}
			r.mu.Unlock()
			if stopped {
				s.close()
			}
		case !there && known != nil:
			known.close()
		}
	}
}

// endpoints are the addresses of ready pods behind a port of a Service. They are
// not read from EndpointSlices: Kubernetes takes no loopback address there.
func (r *Runner) endpoints(namespace, name string, port int32) (ready []string) {
	spec, err := r.services.Services(namespace).Get(name)
	if err != nil {
		return nil // it is gone
	}
	selector := labels.SelectorFromSet(spec.Spec.Selector)
	for _, known := range spec.Spec.Ports {
		if known.Port != port {
			continue
		}
		target := known.TargetPort
		if target == (intstr.IntOrString{}) {
			target = intstr.FromInt32(known.Port)
		}
		r.mu.Lock()
		pods := slices.Collect(maps.Values(r.pods))
		r.mu.Unlock()
		for _, p := range pods {
			if p.spec.Namespace == namespace && selector.Matches(labels.Set(p.spec.Labels)) && p.ready() {
				if number, ok := podPort(p.spec, target); ok {
					ready = append(ready, net.JoinHostPort(p.address, number))
				}
			}
		}
	}
	slices.Sort(ready)
	return ready
}

// serve listens at an address and hands connections to one of those that to
// returns, in turn. Where there is none they are reset.
func serve(address string, to func() []string) (*service, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &service{listener: listener, conns: map[net.Conn]bool{}}
	s.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			s.all.Go(func() { s.relay(conn, to()) })
		}
	})
	return s, nil
}

func (s *service) relay(conn net.Conn, ready []string) {
	if !s.keep(conn) {
		return
	}
	defer s.drop(conn)
	if len(ready) == 0 {
		_ = conn.(*net.TCPConn).SetLinger(0) // refused
		return
	}
	s.mu.Lock()
	s.next++
	address := ready[s.next%len(ready)]
	s.mu.Unlock()
	pod, err := net.Dial("tcp", address)
	if err != nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		return
	}
	if !s.keep(pod) {
		return
	}
	defer s.drop(pod)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, pod)
		_ = conn.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(pod, conn)
	_ = pod.(*net.TCPConn).CloseWrite()
	back.Wait()
}

// keep notes a connection that close must end; false: it is closed already.
func (s *service) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = c.Close()
		return false
	}
	s.conns[c] = true
	return true
}

func (s *service) drop(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *service) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.all.Wait()
}
