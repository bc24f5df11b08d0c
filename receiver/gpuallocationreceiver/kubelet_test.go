// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

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
)

const (
	long  = 30 * time.Second // for what does answer
	short = time.Second      // for what does not: enough to connect on a busy machine
)

// grpcLines counts what gRPC itself writes into the log: a kubelet that is away
// for a day would be told 17,280 times. Only where somebody takes the connection
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

func (k *fakeKubelet) client(timeout time.Duration) *kubelet {
	client := &kubelet{socket: k.socket, timeout: timeout, maxMessageSize: 1 << 20}
	k.t.Cleanup(client.close)
	return client
}

func TestKubeletRestarts(t *testing.T) {
	isSilent(t)
	k := newFakeKubelet(t)
	k.node = node{devices: map[string][]string{gpuName: {gpuA}}, pods: []pod{holds("ml", "first", gpuName, gpuA)}}
	client := k.client(long)

	a := client.ask(t.Context())
	assert.Equal(t, outcomeAbsent, classify(a.listErr), "not there yet")
	assert.Equal(t, outcomeAbsent, classify(a.allocatableErr))

	for range 3 {
		k.start()
		before := time.Now()
		a = client.ask(t.Context())
		require.NoError(t, a.listErr)
		require.NoError(t, a.allocatableErr)
		assert.Len(t, a.list.GetPodResources(), 2)
		assert.Len(t, a.allocatable.GetDevices(), 2, "once for each NUMA node")
		assert.False(t, a.at.Before(before))

		k.stop()
		a = client.ask(t.Context())
		assert.Equal(t, outcomeAbsent, classify(a.listErr), "Go's listener removes its socket")
		assert.Nil(t, a.list)
	}
}

// Polls share a connection while they are answered over it. A restart in between
// costs none of them, and after a fault the next has a new one.
func TestKubeletKeepsItsConnection(t *testing.T) {
	isSilent(t)
	k := newFakeKubelet(t)
	k.start()
	client := k.client(long)
	ask := func() *connection {
		t.Helper()
		a := client.ask(t.Context())
		require.NoError(t, a.listErr)
		require.NoError(t, a.allocatableErr)
		require.NotNil(t, client.kept)
		return client.kept
	}
	first := ask()
	assert.Same(t, first, ask())
	k.stop()
	k.start()
	second := ask()
	assert.NotSame(t, first, second, "the socket is another one")

	k.mu.Lock()
	k.listErr = errors.New("device manager is not ready")
	k.mu.Unlock()
	a := client.ask(t.Context())
	assert.Equal(t, outcomeFailed, classify(a.listErr))
	assert.Nil(t, client.kept)
	k.mu.Lock()
	k.listErr = nil
	k.mu.Unlock()
	third := ask()
	require.NoError(t, third.socket.Close()) // as a kubelet does that ends and leaves its socket behind
	require.True(t, third.grpc.WaitForStateChange(t.Context(), connectivity.Ready))
	assert.NotSame(t, third, ask())
	client.close()
	assert.Nil(t, client.kept)
}

func TestKubeletFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault             func(*fakeKubelet)
		timeout           time.Duration
		list, allocatable outcome
	}{
		"hangs": {func(k *fakeKubelet) { k.hangs = true }, short, outcomeTimeout, ""},
		"list is not implemented": {
			func(k *fakeKubelet) { k.listErr = status.Error(codes.Unimplemented, "method List not implemented") },
			long, outcomeUnimplemented, outcomeOK,
		},
		"allocatable is not implemented": {
			func(k *fakeKubelet) {
				k.allocatableErr = status.Error(codes.Unimplemented, "Pod Resources API GetAllocatableResources disabled")
			},
			long, outcomeOK, outcomeUnimplemented,
		},
		"permission denied": {
			func(k *fakeKubelet) { k.listErr = status.Error(codes.PermissionDenied, "no") }, long, outcomeDenied, outcomeOK,
		},
		"fails": {func(k *fakeKubelet) { k.listErr = errors.New("device manager is not ready") }, long, outcomeFailed, outcomeOK},
		"limits calls": {
			func(k *fakeKubelet) { k.listErr = status.Error(codes.ResourceExhausted, "rejected by rate limit") },
			long, outcomeRateLimited, outcomeOK,
		},
		"answers too much": {
			func(k *fakeKubelet) { k.node.pods = []pod{holds("ml", strings.Repeat("x", 2<<20), gpuName, gpuA)} },
			long, outcomeTooLarge, outcomeOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			isSilent(t)
			k := newFakeKubelet(t)
			tt.fault(k)
			k.start()
			a := k.client(tt.timeout).ask(t.Context())
			assert.Equal(t, tt.list, classify(a.listErr), "%v", a.listErr)
			assert.Equal(t, a.listErr == nil, a.list != nil)
			if tt.allocatable != "" { // else a machine under load decides
				assert.Equal(t, tt.allocatable, classify(a.allocatableErr), "%v", a.allocatableErr)
				assert.Equal(t, a.allocatableErr == nil, a.allocatable != nil)
			}
		})
	}
}

func TestSocketFaults(t *testing.T) {
	t.Run("nobody accepts", func(t *testing.T) {
		k := newFakeKubelet(t)
		listener, err := net.Listen("unix", k.socket)
		require.NoError(t, err)
		defer listener.Close()
		assert.Equal(t, outcomeTimeout, classify(k.client(short).ask(t.Context()).listErr))
	})
	t.Run("closes at once", func(t *testing.T) {
		k := newFakeKubelet(t)
		listener, err := net.Listen("unix", k.socket)
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
		assert.Equal(t, outcomeNoAnswer, classify(k.client(long).ask(t.Context()).listErr))
		require.NoError(t, listener.Close())
		<-done
	})
	t.Run("a socket that its kubelet left behind", func(t *testing.T) {
		isSilent(t)
		k := newFakeKubelet(t)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: k.socket, Net: "unix"})
		require.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		require.NoError(t, listener.Close())
		assert.Equal(t, outcomeNoAnswer, classify(k.client(long).ask(t.Context()).listErr))
	})
	t.Run("a folder is a file", func(t *testing.T) {
		isSilent(t)
		k := newFakeKubelet(t)
		require.NoError(t, os.WriteFile(k.socket, nil, 0o600))
		k.socket += "/kubelet.sock"
		a := k.client(long).ask(t.Context())
		assert.Equal(t, outcomeAbsent, classify(a.listErr))
		assert.Contains(t, cause(a.listErr), "not a directory")
		k.socket = "" // for the cleanup
	})
}

func TestClassify(t *testing.T) {
	assert.Equal(t, outcomeOK, classify(nil))
	// Tests may run as root, whom no socket refuses.
	assert.Equal(t, outcomeDenied, classify(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}))
	assert.Equal(t, outcomeTimeout, classify(fmt.Errorf("dial: %w", context.DeadlineExceeded)))
	assert.Equal(t, outcomeFailed, classify(errors.New("x")))
	for o := range remedies {
		assert.NotEqual(t, outcomeOK, o)
	}
	assert.Equal(t, "a b", cause(errors.New("a\nb\x1b")), "no line of our own log is forged")
}
