// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// patience bounds how long a test waits for something that has to happen.
const patience = 20 * time.Second

var eventTime = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

// partial is the event that most tests send.
func partial(id, state string) plog.Logs {
	logs := plog.NewLogs()
	addPartial(logs, id, state, plog.SeverityNumberWarn)
	return logs
}

func addPartial(logs plog.Logs, id, state string, severity plog.SeverityNumber) plog.LogRecord {
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(names.K8sClusterName, "prod")
	rl.Resource().Attributes().PutStr(names.ServiceName, "vllm")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gpu.service.partial")
	record.SetSeverityNumber(severity)
	record.SetTimestamp(pcommon.NewTimestampFromTime(eventTime))
	record.Body().SetStr("1 of 2 pods of vllm report nothing.")
	record.Attributes().PutStr(names.GPUEventID, id)
	record.Attributes().PutStr(names.GPUEventKey, "prod/vllm/partial")
	record.Attributes().PutStr(names.GPUEventState, state)
	record.Attributes().PutDouble("ratio", 0.5)
	return record
}

// harness is an exporter with all of its telemetry collected.
type harness struct {
	*webhookExporter
	t         *testing.T
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	records   chan *audit.Record
}

// chanSink hands audit records to a test.
type chanSink chan *audit.Record

func (s chanSink) Write(r *audit.Record) { s <- r }

// newHarness makes an exporter that may dial loopback, and shuts it down at the
// end of the test.
func newHarness(t *testing.T, receivers map[string]endpoint.Config, change ...func(*Config, *environment)) *harness {
	cfg := createDefaultConfig().(*Config)
	cfg.Receivers = receivers
	cfg.AllowCIDRs = []string{"127.0.0.0/8", "::1/128"}
	records := make(chan *audit.Record, 10_000)
	env := environment{sinks: []audit.Sink{chanSink(records)}}
	for _, f := range change {
		f(cfg, &env)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	tel := componenttest.NewTelemetry()
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type) // the same in every life
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	e, err := newExporter(set, cfg, env)
	require.NoError(t, err)
	h := &harness{webhookExporter: e, t: t, logs: logs, telemetry: tel, records: records}
	t.Cleanup(func() {
		require.NoError(t, e.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return h
}

func startHarness(t *testing.T, receivers map[string]endpoint.Config, change ...func(*Config, *environment)) *harness {
	h := newHarness(t, receivers, change...)
	require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
	return h
}

func (h *harness) send(logs plog.Logs) {
	h.t.Helper()
	require.NoError(h.t, h.ConsumeLogs(context.Background(), logs))
}

// record waits for the next audit record.
func (h *harness) record() *audit.Record {
	h.t.Helper()
	select {
	case r := <-h.records:
		return r
	case <-time.After(patience):
		h.t.Fatal("no audit record")
		return nil
	}
}

// one sends one event and returns its audit record.
func (h *harness) one() *audit.Record {
	h.t.Helper()
	h.send(partial(eventrecord.NewID(), names.EventRaised))
	return h.record()
}

// request is what a webhook received.
type request struct {
	method string
	path   string
	header http.Header
	body   []byte
}

// hook is a webhook that remembers what it received.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	conns    int
}

func newHook(t *testing.T, answer http.HandlerFunc) *hook {
	h := newUnstartedHook(t, answer)
	h.Start()
	return h
}

func newUnstartedHook(t *testing.T, answer http.HandlerFunc) *hook {
	h := &hook{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.requests = append(h.requests, request{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
		h.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			h.mu.Lock()
			h.conns++
			h.mu.Unlock()
		}
	}
	t.Cleanup(h.Close)
	return h
}

func (h *hook) received() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]request(nil), h.requests...)
}

func (h *hook) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns
}

func (h *hook) port() uint16 {
	return netip.MustParseAddrPort(h.Listener.Addr().String()).Port()
}

// via makes all endpoints of the exporter talk to this transport.
func via(transport send.RoundTripper) func(*Config, *environment) {
	return func(_ *Config, env *environment) { env.transport = transport }
}

func answerWith(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func to(url string) endpoint.Config { return endpoint.Config{URL: configopaque.String(url)} }

func only(c endpoint.Config) map[string]endpoint.Config { return map[string]endpoint.Config{"ops": c} }

func trusting(h *hook) func(*Config, *environment) {
	return func(_ *Config, env *environment) {
		env.RootCAs = x509.NewCertPool()
		env.RootCAs.AddCert(h.Certificate())
	}
}

// nameServer answers A and AAAA questions from hosts, and that there is no such
// name to everything else.
func nameServer(t *testing.T, hosts map[string][]string) *net.Resolver {
	hosts = maps.Clone(hosts)
	return answeringServer(t, func(question []byte) ([]byte, bool) { return answerQuestion(question, hosts) })
}

// answeringServer is a name server of the test's own making.
func answeringServer(t *testing.T, answer func(question []byte) ([]byte, bool)) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply, ok := answer(buf[:n]); ok {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerQuestion(question []byte, hosts map[string][]string) ([]byte, bool) {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	addrs, known := hosts[q.Name.String()[:len(q.Name.String())-1]]
	m.Response, m.Authoritative, m.RecursionAvailable = true, true, true
	m.Additionals = nil
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, s := range addrs {
		addr := netip.MustParseAddr(s)
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	reply, err := m.Pack()
	return reply, err == nil
}
