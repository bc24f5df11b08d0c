// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
)

const (
	long  = 30 * time.Second // for what does answer
	short = time.Second      // for what does not: enough to connect on a busy machine
)

// grpcLines counts what gRPC itself writes into the log: a kubelet that is away
// for a day would be logged 17,280 times. Only where a process accepts the connection
// and does not speak HTTP/2 on it there is no way around that.
var grpcLines atomic.Int64

type grpcLog struct{}

func (grpcLog) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("[Server #")) { // of the fake kubelet
		grpcLines.Add(1)
	}
	return len(line), nil
}

func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, grpcLog{}, io.Discard)) }

func isSilent(t *testing.T) {
	before := grpcLines.Load()
	t.Cleanup(func() { assert.Equal(t, before, grpcLines.Load(), "gRPC wrote into the log") })
}

func clientOf(t *testing.T, k *nodefake.Kubelet, timeout time.Duration) *Client {
	client := New(k.Socket, timeout, 1<<20)
	t.Cleanup(client.Close)
	return client
}

func TestKubeletRestarts(t *testing.T) {
	isSilent(t)
	k := nodefake.NewKubelet(t)
	k.Node = node{Devices: map[string][]string{gpuName: {gpuA}}, Pods: []pod{holds("ml", "first", gpuName, gpuA)}}
	client := clientOf(t, k, long)

	a := client.Ask(t.Context())
	assert.Equal(t, Absent, Classify(a.ListErr), "not there yet")
	assert.Equal(t, Absent, Classify(a.AllocatableErr))

	for range 3 {
		k.Start()
		before := time.Now()
		a = client.Ask(t.Context())
		require.NoError(t, a.ListErr)
		require.NoError(t, a.AllocatableErr)
		assert.Len(t, a.List.GetPodResources(), 2)
		assert.Len(t, a.Allocatable.GetDevices(), 2, "once for each NUMA node")
		assert.False(t, a.At.Before(before))

		k.Stop()
		a = client.Ask(t.Context())
		assert.Equal(t, Absent, Classify(a.ListErr), "Go's listener removes its socket")
		assert.Nil(t, a.List)
	}
}

// Polls share a connection while they are answered over it. A restart in between
// costs none of them, and after a fault the next has a new one.
func TestKubeletKeepsItsConnection(t *testing.T) {
	isSilent(t)
	k := nodefake.NewKubelet(t)
	k.Start()
	client := clientOf(t, k, long)
	ask := func() *connection {
		t.Helper()
		a := client.Ask(t.Context())
		require.NoError(t, a.ListErr)
		require.NoError(t, a.AllocatableErr)
		require.NotNil(t, client.kept)
		return client.kept
	}
	first := ask()
	assert.Same(t, first, ask())
	k.Stop()
	k.Start()
	second := ask()
	assert.NotSame(t, first, second, "the socket is another one")

	k.Set(func(k *nodefake.Kubelet) { k.ListErr = errors.New("device manager is not ready") })
	a := client.Ask(t.Context())
	assert.Equal(t, Failed, Classify(a.ListErr))
	assert.Nil(t, client.kept)
	k.Set(func(k *nodefake.Kubelet) { k.ListErr = nil })
	third := ask()
	require.NoError(t, third.socket.Close()) // as a kubelet does that ends and leaves its socket behind
	require.True(t, third.grpc.WaitForStateChange(t.Context(), connectivity.Ready))
	assert.NotSame(t, third, ask())
	client.Close()
	assert.Nil(t, client.kept)
}

func TestKubeletFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault             func(*nodefake.Kubelet)
		timeout           time.Duration
		list, allocatable Outcome
	}{
		"hangs": {func(k *nodefake.Kubelet) { k.Hangs = true }, short, Timeout, ""},
		"list is not implemented": {
			func(k *nodefake.Kubelet) {
				k.ListErr = status.Error(codes.Unimplemented, "method List not implemented")
			},
			long, Unimplemented, OK,
		},
		"allocatable is not implemented": {
			func(k *nodefake.Kubelet) {
				k.AllocatableErr = status.Error(codes.Unimplemented, "Pod Resources API GetAllocatableResources disabled")
			},
			long, OK, Unimplemented,
		},
		"permission denied": {
			func(k *nodefake.Kubelet) { k.ListErr = status.Error(codes.PermissionDenied, "no") }, long, Denied, OK,
		},
		"fails": {func(k *nodefake.Kubelet) { k.ListErr = errors.New("device manager is not ready") }, long, Failed, OK},
		"limits calls": {
			func(k *nodefake.Kubelet) { k.ListErr = status.Error(codes.ResourceExhausted, "rejected by rate limit") },
			long, RateLimited, OK,
		},
		"answers too much": {
			func(k *nodefake.Kubelet) { k.Node.Pods = []pod{holds("ml", strings.Repeat("x", 2<<20), gpuName, gpuA)} },
			long, TooLarge, OK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			isSilent(t)
			k := nodefake.NewKubelet(t)
			tt.fault(k)
			k.Start()
			a := clientOf(t, k, tt.timeout).Ask(t.Context())
			assert.Equal(t, tt.list, Classify(a.ListErr), "%v", a.ListErr)
			assert.Equal(t, a.ListErr == nil, a.List != nil)
			if tt.allocatable != "" { // else a machine under load decides
				assert.Equal(t, tt.allocatable, Classify(a.AllocatableErr), "%v", a.AllocatableErr)
				assert.Equal(t, a.AllocatableErr == nil, a.Allocatable != nil)
			}
		})
	}
}

func TestSocketFaults(t *testing.T) {
	t.Run("no process accepts", func(t *testing.T) {
		k := nodefake.NewKubelet(t)
		listener, err := net.Listen("unix", k.Socket)
		require.NoError(t, err)
		defer listener.Close()
		assert.Equal(t, Timeout, Classify(clientOf(t, k, short).Ask(t.Context()).ListErr))
	})
	t.Run("closes at once", func(t *testing.T) {
		k := nodefake.NewKubelet(t)
		listener, err := net.Listen("unix", k.Socket)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		assert.Equal(t, NoAnswer, Classify(clientOf(t, k, long).Ask(t.Context()).ListErr))
		require.NoError(t, listener.Close())
		<-done
	})
	t.Run("a socket that its kubelet left behind", func(t *testing.T) {
		isSilent(t)
		k := nodefake.NewKubelet(t)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: k.Socket, Net: "unix"})
		require.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		require.NoError(t, listener.Close())
		assert.Equal(t, NoAnswer, Classify(clientOf(t, k, long).Ask(t.Context()).ListErr))
	})
	t.Run("a folder is a file", func(t *testing.T) {
		isSilent(t)
		k := nodefake.NewKubelet(t)
		require.NoError(t, os.WriteFile(k.Socket, nil, 0o600))
		k.Socket += "/kubelet.sock"
		a := clientOf(t, k, long).Ask(t.Context())
		assert.Equal(t, Absent, Classify(a.ListErr))
		assert.Contains(t, Cause(a.ListErr), "not a directory")
		k.Socket = "" // for the cleanup
	})
}

func TestClassify(t *testing.T) {
	assert.Equal(t, OK, Classify(nil))
	// Tests may run as root, whom no socket refuses.
	assert.Equal(t, Denied, Classify(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}))
	assert.Equal(t, Timeout, Classify(fmt.Errorf("dial: %w", context.DeadlineExceeded)))
	assert.Equal(t, Failed, Classify(errors.New("x")))
	for o := range Remedies {
		assert.NotEqual(t, OK, o)
	}
	assert.Equal(t, "a b", Cause(errors.New("a\nb\x1b")), "no line of our own log is forged")
}
