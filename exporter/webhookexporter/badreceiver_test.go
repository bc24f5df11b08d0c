// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// brute is a receiver that speaks whatever it likes over TCP.
type brute struct {
	listener net.Listener
	sent     atomic.Int64 // bytes that the exporter's side took
}

// newBrute starts it. talk runs for each connection until it returns or a write
// fails; the test waits for all of them.
func newBrute(t *testing.T, readRequest bool, talk func(*bruteConn)) *brute {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &brute{listener: listener}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c := &bruteConn{TCPConn: conn.(*net.TCPConn), brute: b}
			if readRequest {
				c.readRequest()
			}
			talk(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return b
}

type bruteConn struct {
	*net.TCPConn
	brute *brute
}

func (c *bruteConn) readRequest() {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

// send reports whether the other side still listens.
func (c *bruteConn) send(text string) bool {
	n, err := c.Write([]byte(text))
	c.brute.sent.Add(int64(n))
	return err == nil
}

// drip sends it byte by byte.
func (c *bruteConn) drip(text string) bool {
	for i := range len(text) {
		if !c.send(text[i : i+1]) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

// wait waits until the other side hangs up.
func (c *bruteConn) wait() { _, _ = c.Read(make([]byte, 1)) }

// reset ends the connection with a reset instead of an orderly end.
func (c *bruteConn) reset() { _ = c.SetLinger(0); c.Close() }

func forever(send func(string) bool, text string) {
	for send(text) {
	}
}

// What a receiver may do that no receiver should. Each case that goes on for
// ever proves by ending at all that the timeout ends it, and none leaves a
// goroutine behind: the package looks for those.
func TestBadReceivers(t *testing.T) {
	const (
		ok      = "HTTP/1.1 200 OK\r\n"
		garbage = "\x16\x03\x01\xff\xff\x00\x01garbage that is no handshake"
		// What may lie in the buffers of both ends of a connection on loopback.
		buffers = 32 << 20
	)
	filler := "X-Filler: " + strings.Repeat("x", 8000) + "\r\n"
	tests := []struct {
		name   string
		secure bool
		deaf   bool // does not read the request
		stalls bool // after its status
		talk   func(*bruteConn)
		want   audit.ErrorType
		status int
	}{
		{name: "hangs", talk: func(c *bruteConn) { c.wait() }, want: audit.ErrorTimeout},
		{name: "hangs in the TLS handshake", secure: true, deaf: true, talk: func(c *bruteConn) {
			_, _ = c.Read(make([]byte, 4096))
			c.wait()
		}, want: audit.ErrorTimeout},
		{name: "drips a status line", talk: func(c *bruteConn) { forever(c.drip, "HTTP/1.1 200 OK"+strings.Repeat(" ", 1000)) }, want: audit.ErrorTimeout},
		{name: "drips headers", talk: func(c *bruteConn) { c.send(ok); forever(c.drip, "X-Slow: 1\r\n") }, want: audit.ErrorTimeout},
		{name: "drips a body", stalls: true, talk: func(c *bruteConn) { c.send(ok + "Content-Length: 100000\r\n\r\n"); forever(c.drip, "x") }, status: 200},
		{name: "drips chunks", stalls: true, talk: func(c *bruteConn) { c.send(ok + "Transfer-Encoding: chunked\r\n\r\n"); forever(c.drip, "1\r\nx\r\n") }, status: 200},
		{name: "hangs in the body", stalls: true, talk: func(c *bruteConn) { c.send(ok + "Content-Length: 10\r\n\r\nx"); c.wait() }, status: 200},
		{name: "hangs in the body of a refusal", stalls: true, talk: func(c *bruteConn) { c.send("HTTP/1.1 503 x\r\nContent-Length: 10\r\n\r\nx"); c.wait() }, want: audit.ErrorHTTP5xx, status: 503},
		{name: "hangs up at once", deaf: true, talk: func(*bruteConn) {}, want: audit.ErrorConnect},
		{name: "resets at once", deaf: true, talk: func(c *bruteConn) { c.reset() }, want: audit.ErrorConnect},
		{name: "resets after the request", talk: func(c *bruteConn) { c.reset() }, want: audit.ErrorConnect},
		{name: "resets in the status line", talk: func(c *bruteConn) { c.send("HTTP/1.1 20"); c.reset() }, want: audit.ErrorConnect},
		{name: "ends in the headers", talk: func(c *bruteConn) { c.send(ok + "X-Half: "); _ = c.CloseWrite(); c.wait() }, want: audit.ErrorConnect},
		{name: "200, then reset", talk: func(c *bruteConn) {
			c.send(ok + "Content-Length: 100\r\n\r\nhalf")
			time.Sleep(50 * time.Millisecond) // a reset that overtakes the answer takes it away
			c.reset()
		}, status: 200},
		{name: "endless headers", talk: func(c *bruteConn) { c.send(ok); forever(c.send, filler) }, want: audit.ErrorConnect},
		{name: "one endless header", talk: func(c *bruteConn) { c.send(ok + "X-Long: "); forever(c.send, strings.Repeat("x", 8000)) }, want: audit.ErrorConnect},
		{name: "endless status line", talk: func(c *bruteConn) { c.send("HTTP/1.1 200 "); forever(c.send, strings.Repeat("x", 8000)) }, want: audit.ErrorConnect},
		{name: "endless body", talk: func(c *bruteConn) { c.send(ok + "\r\n"); forever(c.send, strings.Repeat("x", 8000)) }, status: 200},
		{name: "endless chunks", talk: func(c *bruteConn) {
			c.send(ok + "Transfer-Encoding: chunked\r\n\r\n")
			forever(c.send, "1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n")
		}, status: 200},
		{name: "endless chunk extension", talk: func(c *bruteConn) {
			c.send(ok + "Transfer-Encoding: chunked\r\n\r\n1;")
			forever(c.send, strings.Repeat("x", 8000))
		}, status: 200},
		{name: "endless trailers", talk: func(c *bruteConn) { c.send(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n"); forever(c.send, filler) }, status: 200},
		{name: "a bomb of gzip", talk: func(c *bruteConn) {
			c.send(ok + "Content-Encoding: gzip\r\n\r\n")
			forever(c.send, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"+strings.Repeat("\x00", 8000))
		}, status: 200},
		{name: "1xx without end", talk: func(c *bruteConn) { forever(c.send, "HTTP/1.1 100 Continue\r\n\r\n") }, want: audit.ErrorConnect},
		{name: "102 without end", talk: func(c *bruteConn) { forever(c.send, "HTTP/1.1 102 Processing\r\n\r\n") }, want: audit.ErrorConnect},
		{name: "long hints without end", talk: func(c *bruteConn) { forever(c.send, "HTTP/1.1 103 Early Hints\r\n"+filler+"\r\n") }, want: audit.ErrorConnect},
		{name: "hints that drip", talk: func(c *bruteConn) {
			forever(c.drip, "HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("x", 500)+"\r\n\r\n")
		}, want: audit.ErrorTimeout},
		{name: "length that is no number", talk: func(c *bruteConn) { c.send(ok + "Content-Length: many\r\n\r\n"); c.wait() }, want: audit.ErrorConnect},
		{name: "length below zero", talk: func(c *bruteConn) { c.send(ok + "Content-Length: -1\r\n\r\n"); c.wait() }, want: audit.ErrorConnect},
		{name: "two lengths", talk: func(c *bruteConn) { c.send(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"); c.wait() }, want: audit.ErrorConnect},
		{name: "length beyond any number", talk: func(c *bruteConn) { c.send(ok + "Content-Length: 99999999999999999999\r\n\r\n"); c.wait() }, want: audit.ErrorConnect},
		{name: "length longer than the body", talk: func(c *bruteConn) { c.send(ok + "Content-Length: 100\r\n\r\nx"); _ = c.CloseWrite(); c.wait() }, status: 200},
		{name: "length shorter than the body", talk: func(c *bruteConn) { c.send(ok + "Content-Length: 1\r\n\r\n" + strings.Repeat("x", 100)); c.wait() }, status: 200},
		{name: "chunk of a wrong size", talk: func(c *bruteConn) { c.send(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nx"); c.wait() }, status: 200},
		{name: "chunk beyond any number", talk: func(c *bruteConn) { c.send(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx"); c.wait() }, status: 200},
		{name: "version 0.9", talk: func(c *bruteConn) { c.send("<html>fine</html>\n") }, want: audit.ErrorConnect},
		{name: "preface of version 2, and no line", talk: func(c *bruteConn) {
			c.send("\x00\x00\x12\x04\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 18))
			c.wait()
		}, want: audit.ErrorTimeout},
		{name: "other protocol's version", talk: func(c *bruteConn) { c.send("HTTP/9.9 200 OK\r\n\r\n") }, status: 200},
		{name: "status of two digits", talk: func(c *bruteConn) { c.send("HTTP/1.1 20 OK\r\n\r\n") }, want: audit.ErrorConnect},
		{name: "status below zero", talk: func(c *bruteConn) { c.send("HTTP/1.1 -20 OK\r\n\r\n") }, want: audit.ErrorConnect},
		{name: "header without a name", talk: func(c *bruteConn) { c.send(ok + ": x\r\n\r\n"); c.wait() }, want: audit.ErrorConnect},
		{name: "zero bytes", talk: func(c *bruteConn) { c.send(strings.Repeat("\x00", 4096)) }, want: audit.ErrorConnect},
		{name: "TLS to plain HTTP", talk: func(c *bruteConn) { c.send(garbage) }, want: audit.ErrorConnect},
		{name: "garbage for TLS", secure: true, deaf: true, talk: func(c *bruteConn) { _, _ = c.Read(make([]byte, 4096)); c.send(garbage) }, want: audit.ErrorTLS},
		{name: "plain HTTP for TLS", secure: true, deaf: true, talk: func(c *bruteConn) { _, _ = c.Read(make([]byte, 4096)); c.send(ok + "\r\n") }, want: audit.ErrorTLS},
		{name: "endless garbage for TLS", secure: true, deaf: true, talk: func(c *bruteConn) { forever(c.send, strings.Repeat(garbage, 100)) }, want: audit.ErrorTLS},
		{name: "reset for TLS", secure: true, deaf: true, talk: func(c *bruteConn) { _, _ = c.Read(make([]byte, 4096)); c.reset() }, want: audit.ErrorTLS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBrute(t, !tt.deaf, tt.talk)
			scheme := "http"
			if tt.secure {
				scheme = "https"
			}
			cfg := to(fmt.Sprintf("%s://%s/", scheme, b.listener.Addr()))
			// Short only where it ends the attempt: a busy machine takes as long for a
			// connection, and where a status is expected, for that as well.
			cfg.Timeout = patience
			switch {
			case tt.stalls:
				cfg.Timeout = 2 * time.Second
			case tt.want == audit.ErrorTimeout:
				cfg.Timeout = 300 * time.Millisecond
			}
			cfg.Workers = 1
			fine := newHook(t, nil)
			h := startHarness(t, map[string]endpoint.Config{"bad": cfg, "fine": to(fine.URL)})
			h.send(partial(eventrecord.NewID(), names.EventRaised))
			for range 2 {
				rec := h.record()
				if rec.Receiver == "fine" {
					assert.Equal(t, audit.Succeeded, rec.Outcome)
					continue
				}
				assert.Equal(t, tt.want, rec.ErrorType)
				assert.Equal(t, tt.status, rec.Status)
				assert.Equal(t, 1, rec.Attempt)
			}
			assert.Less(t, b.sent.Load(), int64(buffers), "no more is read than is needed")
		})
	}
}

// A receiver that does not read gets a large request: the write has to end too.
func TestReceiverThatNeverReadsALargeRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() // with it go the connections that no one accepted
	cfg := to("http://" + listener.Addr().String())
	cfg.Timeout = 100 * time.Millisecond
	h := startHarness(t, only(cfg))
	logs := plog.NewLogs()
	record := addPartial(logs, "large", names.EventRaised, plog.SeverityNumberWarn)
	record.Body().SetStr(strings.Repeat("x", 1<<20))
	for i := range 1000 {
		record.Attributes().PutStr(fmt.Sprint("k", i), strings.Repeat("y", 10_000))
	}
	h.send(logs)
	rec := h.record()
	assert.Equal(t, audit.ErrorTimeout, rec.ErrorType)
	assert.Less(t, rec.BodySize, 64<<10, "an event is bounded before it is sent")
}
