// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

const (
	loopback  = "127.0.0.1"
	demoNodes = 4
)

// ports are what the demo listens on.
type ports struct {
	exporters  int // the first of demoNodes in a row; 0: free ports
	sink       int
	control    int
	prometheus int
	health     int
	otlpGRPC   int
	otlpHTTP   int
	own        int // the collector's own metrics
}

// usualPorts are those of config/demo.yaml and of the README.
func usualPorts() ports {
	return ports{
		exporters: 9400, sink: 9480, control: 9481, prometheus: 9464,
		health: 13133, otlpGRPC: 4317, otlpHTTP: 4318, own: 8888,
	}
}

// check names every port that is taken, before anything starts.
func (p ports) check(simulated bool) error {
	type use struct {
		number int
		what   string
	}
	uses := []use{
		{p.prometheus, "the collector's Prometheus exporter"},
		{p.health, "the collector's health check"},
		{p.otlpGRPC, "the collector's OTLP receiver (gRPC)"},
		{p.otlpHTTP, "the collector's OTLP receiver (HTTP)"},
		{p.own, "the collector's own metrics"},
	}
	if simulated {
		for i := range demoNodes {
			uses = append(uses, use{p.exporters + i, "a simulated exporter"})
		}
		uses = append(uses, use{p.sink, "the webhook sink"}, use{p.control, "the simulator's control port"})
	}
	var errs []error
	for _, u := range uses {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(u.number)))
		if err != nil {
			errs = append(errs, fmt.Errorf("port %d (%s) cannot be used: %w; see what holds it with: ss -ltnp 'sport = :%d'", u.number, u.what, err, u.number))
			continue
		}
		_ = l.Close()
	}
	return errors.Join(errs...)
}

// freePorts finds ports that nobody listens on. Exporters and the sink choose
// their own when they start.
func freePorts() (ports, error) {
	var p ports
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, dst := range []*int{&p.sink, &p.control, &p.prometheus, &p.health, &p.otlpGRPC, &p.otlpHTTP, &p.own} {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return p, err
		}
		held = append(held, l)
		*dst = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// overlay is a configuration that moves the demo's to these ports.
func (p ports) overlay(endpoints []string) (string, error) {
	address := func(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
	type m = map[string]any
	dcgm := m{}
	exporters := m{"prometheus": m{"endpoint": address(p.prometheus)}}
	if len(endpoints) > 0 { // simulated: config/demo.yaml has a webhook
		dcgm["endpoints"] = endpoints
		exporters["webhook"] = m{"receivers": m{
			"sink":   m{"url": "http://" + address(p.sink) + "/ops"},
			"convox": m{"url": "http://" + address(p.sink) + "/convox"},
		}}
	}
	b, err := json.Marshal(m{
		"receivers": m{
			"dcgm": dcgm,
			"otlp": m{"protocols": m{"grpc": m{"endpoint": address(p.otlpGRPC)}, "http": m{"endpoint": address(p.otlpHTTP)}}},
		},
		"exporters":  exporters,
		"extensions": m{"health_check": m{"endpoint": address(p.health)}},
		"service": m{"telemetry": m{"metrics": m{"readers": []any{
			m{"pull": m{"exporter": m{"prometheus": m{"host": loopback, "port": p.own}}}},
		}}}},
	})
	return string(b), err // JSON is YAML
}

func serve(number int, h http.Handler) (func(), error) {
	addr := net.JoinHostPort(loopback, strconv.Itoa(number))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, gpusim.ListenError(addr, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return func() { _ = s.Close() }, nil
}
