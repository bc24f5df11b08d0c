// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rpc connects to a gRPC server and reports why that failed: gRPC itself has
// the text of the cause alone.
package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

const maxMessage = 64 << 20 // bytes

// Connect returns a connection that is ready. secure is nil for one without TLS;
// network is tcp or unix.
func Connect(ctx context.Context, network, address string, secure *tls.Config) (*grpc.ClientConn, error) {
	c := &cause{}
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(handshake{transport, c}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithUserAgent("gpuctl"),
	}
	// Through a proxy gRPC connects by itself, as the collector's exporter does.
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}}); network != "tcp" || err == nil && proxy == nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return conn, c.keep(err)
		}))
	}
	target := "passthrough:///" + address
	if network != "tcp" {
		target = "passthrough:///localhost"
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		switch {
		case state == connectivity.TransientFailure:
			err = c.error()
		case !conn.WaitForStateChange(ctx, state):
			err = ctx.Err()
		default:
			continue
		}
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Why names in a few words why a connection or a call failed.
func Why(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("it answers gRPC status %d: %s", s.Code(), s.Message())
	}
	return web.Why(err)
}

// Code is the status with which the server answered, and OK where it did not.
func Code(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.OK
}

// cause is the last error of a connection.
type cause struct {
	mu  sync.Mutex
	err error
}

func (c *cause) keep(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	return err
}

func (c *cause) error() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return errors.New("it speaks something else than HTTP: TLS, perhaps")
	}
	return c.err
}

// handshake keeps the error of a handshake.
type handshake struct {
	credentials.TransportCredentials
	cause *cause
}

func (h handshake) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, conn)
	return secured, info, h.cause.keep(err)
}

func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.cause}
}
