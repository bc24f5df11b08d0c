// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestARestartKeepsWhatWasGiven(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices("GPU-a"))
	b.allocate(llama, "vllm", gpu, 1)
	want := b.pods()
	before, err := os.Stat(b.socket)
	require.NoError(t, err)

	b.k.Stop()
	_, err = os.Stat(b.socket)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = net.Dial("unix", b.socket)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, b.k.Serve(b.socket))
	b.client = b.dial()
	assert.Equal(t, want, b.pods())
	b.k.Kill()
	_, err = net.Dial("unix", b.socket)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the socket of a kubelet that was killed stays")

	require.NoError(t, b.k.Serve(b.socket))
	require.NoError(t, b.k.Serve(b.socket), "a restart without a stop")
	b.client = b.dial()
	assert.Equal(t, want, b.pods())
	after, err := os.Stat(b.socket)
	require.NoError(t, err)
	assert.False(t, os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()), "made anew")
}

func TestAKubeletThatHangs(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetFaults(Faults{Hang: true})
	conn, err := net.Dial("unix", b.socket)
	require.NoError(t, err, "it accepts")
	defer conn.Close()
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	n, err := conn.Read(make([]byte, 100))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Zero(t, n)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = b.tryList(ctx, grpc.WaitForReady(true))
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
	b.k.SetFaults(Faults{})
	_, err = b.tryList(t.Context(), grpc.WaitForReady(true))
	assert.NoError(t, err, "and goes on")
	b.k.SetFaults(Faults{Hang: true}) // Stop ends it all the same
}

func TestOneCallIsSilent(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetFaults(Faults{Silent: map[string]bool{List: true}})
	assert.Empty(t, b.allocatable())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := b.tryList(ctx)
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err))

	// One that waits is answered when the fault ends, or when the kubelet stops.
	var answer error
	var wait sync.WaitGroup
	wait.Go(func() { _, answer = b.tryList(context.Background()) })
	b.k.SetFaults(Faults{})
	wait.Wait()
	assert.NoError(t, answer)
	b.k.SetFaults(Faults{Silent: map[string]bool{List: true}})
	wait.Go(func() { _, answer = b.tryList(context.Background()) })
	b.k.Stop()
	wait.Wait()
	assert.Equal(t, codes.Unavailable, status.Code(answer))
}

func TestErrorsAndDelays(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetFaults(Faults{Errors: map[string]error{
		GetAllocatableResources: Unimplemented(GetAllocatableResources),
		List:                    status.Error(codes.Internal, "no checkpoint"),
	}})
	_, err := b.tryList(t.Context())
	assert.Equal(t, codes.Internal, status.Code(err))
	_, err = b.client.GetAllocatableResources(t.Context(), nil)
	assert.Equal(t, codes.Unimplemented, status.Code(err))
	b.k.SetFaults(Faults{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = b.tryList(ctx)
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
	b.k.SetFaults(Faults{Delay: time.Millisecond})
	b.list()
}

func TestSocketThatMayNotBeOpened(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open any socket")
	}
	b := serve(t, Options{})
	require.NoError(t, b.k.SetSocketMode(0))
	_, err := net.Dial("unix", b.socket)
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestTheRateLimitIsForAllClients(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	b := serve(t, Options{QPS: 100, Clock: clock})
	other := &bench{t: t, k: b.k, socket: b.socket}
	other.client = other.dial()
	refused := func() (n int) {
		for i := range 12 {
			from := []*bench{b, other}[i%2]
			if _, err := from.tryList(t.Context()); err != nil {
				assert.Equal(t, codes.ResourceExhausted, status.Code(err))
				n++
			}
		}
		return n
	}
	assert.Equal(t, 2, refused(), "a burst of ten")
	assert.Equal(t, 12, refused())
	advance(50 * time.Millisecond)
	assert.Equal(t, 7, refused(), "a hundred a second")
	advance(time.Hour)
	assert.Equal(t, 2, refused())
}

func TestWhatTheAPIMayBeMadeToReport(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices("GPU-a", "GPU-b"))
	b.allocate(llama, "vllm", gpu, 1)
	ghost := Pod{Namespace: "gone", Name: "ghost"}
	require.NoError(t, b.k.Force(ghost, "c", gpu, Devices("GPU-a")...))
	require.NoError(t, b.k.Force(ghost, "bad", gpu, Devices(BadIDs()...)...))
	want := BadIDs()
	slices.Sort(want)
	assert.Equal(t, map[string][]string{"inference/llama-0/vllm": {"GPU-a"}, "gone/ghost/c": {"GPU-a"}, "gone/ghost/bad": want}, b.pods())
	assert.Equal(t, map[string][]Owner{"GPU-a": {{Pod: llama, Container: "vllm", Resource: gpu}}}, b.k.Owners(), "the truth does not change")
	b.k.Release(ghost)
	assert.Equal(t, map[string][]string{"inference/llama-0/vllm": {"GPU-a"}}, b.pods())
}

func TestHugeAnswers(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices(ManyIDs(10_000)...))
	assert.Len(t, b.allocatable(), 10_000)
	b.allocate(llama, "vllm", gpu, 10_000)
	assert.Len(t, b.pods()["inference/llama-0/vllm"], 10_000)
	require.NoError(t, b.k.Force(trainer, "c", gpu, Devices(ManyIDs(70_000)...)...))
	_, err := b.tryList(t.Context())
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), "more than the 4 MiB of a client's default")
	r, err := b.tryList(t.Context(), grpc.MaxCallRecvMsgSize(16<<20))
	require.NoError(t, err)
	assert.Len(t, r.GetPodResources(), 2)
}

func TestAKubeletThatIsBackWithoutItsPods(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices("GPU-a"))
	b.allocate(llama, "vllm", gpu, 1)
	want := b.pods()

	b.k.SetFaults(Faults{NoPods: true})
	require.NoError(t, b.k.Serve(b.socket))
	b.client = b.dial()
	assert.Empty(t, b.pods())
	assert.Len(t, b.k.Owners(), 1, "what was given stays given")

	b.k.SetFaults(Faults{})
	assert.Equal(t, want, b.pods())
}
