// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// Loopback is the only address that anything listens on here.
const Loopback = "127.0.0.1"

// Ports are what a collector on config/standalone.yaml listens on.
type Ports struct {
	Prometheus int
	Apps       int // the Prometheus exporter of applications
	Health     int
	OTLPGRPC   int
	OTLPHTTP   int
	Own        int // the collector's own metrics
	Store      int // the Prometheus API of gpu_store
	Console    int
}

// UsualPorts are those of config/standalone.yaml.
func UsualPorts() Ports {
	return Ports{Prometheus: 9464, Apps: 9465, Health: 13133, OTLPGRPC: 4317, OTLPHTTP: 4318, Own: 8888, Store: 9090, Console: 8480}
}

// FreePorts are ports for a collector, as Free finds them.
func FreePorts() (Ports, error) {
	n, err := Free(8)
	if err != nil {
		return Ports{}, err
	}
	return Ports{Prometheus: n[0], Health: n[1], OTLPGRPC: n[2], OTLPHTTP: n[3], Own: n[4], Store: n[5], Console: n[6], Apps: n[7]}, nil
}

// Where Free looks: below what systems give to outgoing connections (32768 and
// up on Linux), so that no client takes a port between here and its use, and
// above what usually is in use.
const firstPort, lastPort = 15_000, 32_000

// A process takes ports from blocks of its own, so that no port of its is taken by a suite
// beside it before its program listens there, or between two lives of that program. A block is
// its own while it listens on the block's first port, which is until it ends.
const blockPorts = 100

var own struct {
	sync.Mutex
	blocks      []net.Listener
	fresh, used []int // ports that had no turn yet, and those that had
}

// Free finds n ports of loopback that nothing listens on now, and that no other process
// gets from here while this one runs. A process gets none twice before all of its own have
// had their turn: a caller may take time until it listens.
func Free(n int) ([]int, error) {
	own.Lock()
	defer own.Unlock()
	found := make([]int, 0, n)
	defer func() { own.used = append(own.used, found...) }()
	again := false
	for len(found) < n {
		if len(own.fresh) == 0 && !anotherBlock() {
			if again {
				return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
			}
			again, own.fresh, own.used = true, own.used, nil
			continue
		}
		port := own.fresh[0]
		own.fresh = own.fresh[1:]
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			own.used = append(own.used, port)
			continue
		}
		_ = l.Close()
		found = append(found, port)
	}
	return found, nil
}

// anotherBlock makes a block this process's own, false where there is none.
func anotherBlock() bool {
	highest := lastPort
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var outgoing int
		if _, err := fmt.Sscan(string(text), &outgoing); err == nil && outgoing > firstPort+10*blockPorts {
			highest = min(highest, outgoing)
		}
	}
	for _, n := range rand.Perm((highest - firstPort) / blockPorts) {
		first := firstPort + n*blockPorts
		l, err := net.Listen("tcp", Address(first))
		if err != nil {
			continue
		}
		own.blocks = append(own.blocks, l)
		for port := first + 1; port < first+blockPorts; port++ {
			own.fresh = append(own.fresh, port)
		}
		return true
	}
	return false
}

// Use is one port and what wants it.
type Use struct {
	Port int
	What string
}

// Uses lists the ports for Check.
func (p Ports) Uses() []Use {
	return []Use{
		{p.Prometheus, "the collector's Prometheus exporter"},
		{p.Apps, "the collector's Prometheus exporter of applications"},
		{p.Health, "the collector's health check"},
		{p.OTLPGRPC, "the collector's OTLP receiver (gRPC)"},
		{p.OTLPHTTP, "the collector's OTLP receiver (HTTP)"},
		{p.Own, "the collector's own metrics"},
		{p.Store, "the Prometheus API of the store"},
		{p.Console, "the console"},
	}
}

// Check names every port that is taken, before anything starts.
func Check(uses []Use) error {
	var errs []error
	for _, u := range uses {
		l, err := net.Listen("tcp", Address(u.Port))
		if err != nil {
			errs = append(errs, fmt.Errorf("port %d (%s) cannot be used: %w; see what holds it with: ss -ltnp 'sport = :%d'", u.Port, u.What, err, u.Port))
			continue
		}
		_ = l.Close()
	}
	return errors.Join(errs...)
}

// Overlay moves config/standalone.yaml to these ports; it is the last --config.
func (p Ports) Overlay() map[string]any {
	type m = map[string]any
	return m{
		"receivers": m{"otlp": m{"protocols": m{
			"grpc": m{"endpoint": Address(p.OTLPGRPC)},
			"http": m{"endpoint": Address(p.OTLPHTTP)},
		}}},
		"exporters": m{
			"prometheus": m{"endpoint": Address(p.Prometheus)}, "prometheus/apps": m{"endpoint": Address(p.Apps)},
		},
		"extensions": m{
			"health_check": m{"endpoint": Address(p.Health)},
			"gpu_store":    m{"api": m{"endpoint": Address(p.Store)}},
			"gpu_console":  m{"endpoint": Address(p.Console)},
		},
		"service": m{"telemetry": m{"metrics": m{"readers": []any{
			m{"pull": m{"exporter": m{"prometheus": m{"host": Loopback, "port": p.Own}}}},
		}}}},
	}
}

// Address is host:port of a port of loopback; 0 is a free one.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }
