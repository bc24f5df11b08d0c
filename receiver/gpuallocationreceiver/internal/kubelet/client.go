// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet asks the pod-resources API of the node's kubelet.
package kubelet

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Answer is what the kubelet answered in one poll.
type Answer struct {
	At   time.Time // before List was asked: what it lists was true then or later
	List *podresources.ListPodResourcesResponse
	// Served is when the kubelet made its socket; zero where that is not known.
	Served time.Time
	// Allocatable is nil where the kubelet did not answer what it has; then nothing
	// is known to be free.
	Allocatable *podresources.AllocatableResourcesResponse

	ListErr, AllocatableErr error
}

// Client asks over the pod-resources socket. A connection serves the next poll too
// while the kubelet answers over it and the socket is the same: a kubelet that restarts
// makes another socket, and no connection that hangs outlives its poll.
type Client struct {
	socket         string
	timeout        time.Duration // of each call
	maxMessageSize int           // bytes

	kept *connection // nil: the next poll makes one
}

// New returns a Client of the kubelet behind the socket, which is a path. timeout bounds
// each call, maxMessageSize an answer in bytes. It makes no connection.
func New(socket string, timeout time.Duration, maxMessageSize int) *Client {
	return &Client{socket: socket, timeout: timeout, maxMessageSize: maxMessageSize}
}

// connection is one to the kubelet.
type connection struct {
	grpc   *grpc.ClientConn
	socket net.Conn
	file   fs.FileInfo // of the socket when it was made; nil if it could not be read
}

func (c *connection) close() {
	_ = c.grpc.Close()
	_ = c.socket.Close() // gRPC closes it too, if it used it
}

// Ask asks once, and returns within four times the timeout.
func (k *Client) Ask(ctx context.Context) Answer {
	if k.kept != nil {
		var a Answer
		usable := k.usable()
		if usable {
			a = k.over(ctx, k.kept)
		}
		if usable && a.complete() {
			return a
		}
		k.Close()
		if usable && !a.broken() {
			return a
		}
	}
	c, err := k.connect(ctx)
	if err != nil {
		return Answer{ListErr: err, AllocatableErr: err}
	}
	a := k.over(ctx, c)
	if !a.complete() {
		c.close()
		return a
	}
	k.kept = c
	return a
}

// Close lets go of what Ask kept.
func (k *Client) Close() {
	if k.kept != nil {
		k.kept.close()
		k.kept = nil
	}
}

// complete reports whether both calls were answered.
func (a *Answer) complete() bool { return a.ListErr == nil && a.AllocatableErr == nil }

// broken reports whether the connection ended before both calls were answered.
func (a *Answer) broken() bool {
	return Classify(a.ListErr) == NoAnswer || Classify(a.AllocatableErr) == NoAnswer
}

// usable reports whether the kept connection has not ended, and the socket is still
// the one that it was made on.
func (k *Client) usable() bool {
	if k.kept.grpc.GetState() != connectivity.Ready {
		return false
	}
	now, err := os.Stat(k.socket)
	was := k.kept.file
	return err == nil && was != nil && os.SameFile(now, was) && now.ModTime().Equal(was.ModTime())
}

// over makes both calls over a connection.
func (k *Client) over(ctx context.Context, c *connection) (a Answer) {
	client := podresources.NewPodResourcesListerClient(c.grpc)
	// First what there is, then who holds it: what was given away between the two
	// is then known to be held.
	a.Allocatable, a.AllocatableErr = call(ctx, k.timeout, client.GetAllocatableResources, &podresources.AllocatableResourcesRequest{})
	if c.file != nil {
		a.Served = c.file.ModTime()
	}
	a.At = time.Now()
	a.List, a.ListErr = call(ctx, k.timeout, client.List, &podresources.ListPodResourcesRequest{})
	return a
}

// connect makes a connection.
func (k *Client) connect(ctx context.Context) (*connection, error) {
	file, err := os.Stat(k.socket)
	if err != nil {
		file = nil // dialing returns the reason
	}
	// gRPC would turn the error of a dial into text, and write each into the log.
	socket, err := k.dial(ctx)
	if err != nil {
		return nil, err
	}
	client, err := k.client(socket)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return &connection{client, socket, file}, nil
}

func (k *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "unix", k.socket)
}

// client returns a gRPC client that has this one connection.
func (k *Client) client(socket net.Conn) (*grpc.ClientConn, error) {
	var used atomic.Bool
	return grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(k.maxMessageSize)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errors.New("the kubelet closed the connection")
			}
			return socket, nil
		}))
}

// call makes one call and gives no response where there is an error.
func call[Q, R any](ctx context.Context, timeout time.Duration, method func(context.Context, *Q, ...grpc.CallOption) (*R, error), request *Q) (*R, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := method(ctx, request)
	if err != nil {
		return nil, err
	}
	return response, nil
}
