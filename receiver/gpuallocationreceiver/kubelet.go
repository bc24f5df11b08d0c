// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// answer is what the kubelet said in one poll.
type answer struct {
	at   time.Time // before List was asked: what it says was true then or later
	list *podresources.ListPodResourcesResponse
	// served is when the kubelet made its socket; zero where that is not known.
	served time.Time
	// allocatable is nil where the kubelet did not tell what it has; then nothing
	// is known to be free.
	allocatable *podresources.AllocatableResourcesResponse

	listErr, allocatableErr error
}

// source is where answers come from; the tests have another than the kubelet.
type source interface {
	// ask asks once, and returns within four times the timeout that it was made with.
	ask(ctx context.Context) answer
	// close lets go of what ask kept; nothing is asked any more.
	close()
}

// kubelet asks over the pod-resources socket. A connection serves the next poll
// too while the kubelet answers over it and the socket is the same: a kubelet that
// restarts makes its socket anew, and no connection that hangs outlives its poll.
type kubelet struct {
	socket         string
	timeout        time.Duration // of each call
	maxMessageSize int           // bytes

	kept *connection // nil: the next poll makes one
}

// connection is one to the kubelet.
type connection struct {
	grpc   *grpc.ClientConn
	socket net.Conn
	file   fs.FileInfo // of the socket when it was made; nil if it could not be read
}

func (c *connection) close() {
	_ = c.grpc.Close()
	_ = c.socket.Close() // gRPC closes it too, if it came to use it
}

func (k *kubelet) ask(ctx context.Context) answer {
	if k.kept != nil {
		var a answer
		usable := k.usable()
		if usable {
			a = k.over(ctx, k.kept)
		}
		if usable && a.complete() {
			return a
		}
		k.close()
		if usable && !a.broken() {
			return a
		}
	}
	c, err := k.connect(ctx)
	if err != nil {
		return answer{listErr: err, allocatableErr: err}
	}
	a := k.over(ctx, c)
	if !a.complete() {
		c.close()
		return a
	}
	k.kept = c
	return a
}

func (k *kubelet) close() {
	if k.kept != nil {
		k.kept.close()
		k.kept = nil
	}
}

// complete reports whether both calls were answered.
func (a *answer) complete() bool { return a.listErr == nil && a.allocatableErr == nil }

// broken reports whether the connection ended before both calls were answered.
func (a *answer) broken() bool {
	return classify(a.listErr) == outcomeNoAnswer || classify(a.allocatableErr) == outcomeNoAnswer
}

// usable reports whether the kept connection has not ended, and the socket is still
// the one that it was made on.
func (k *kubelet) usable() bool {
	if k.kept.grpc.GetState() != connectivity.Ready {
		return false
	}
	now, err := os.Stat(k.socket)
	was := k.kept.file
	return err == nil && was != nil && os.SameFile(now, was) && now.ModTime().Equal(was.ModTime())
}

// over makes both calls over a connection.
func (k *kubelet) over(ctx context.Context, c *connection) (a answer) {
	client := podresources.NewPodResourcesListerClient(c.grpc)
	// First what there is, then who holds it: what was given away between the two
	// is then known to be held.
	a.allocatable, a.allocatableErr = call(ctx, k.timeout, client.GetAllocatableResources, &podresources.AllocatableResourcesRequest{})
	if c.file != nil {
		a.served = c.file.ModTime()
	}
	a.at = time.Now()
	a.list, a.listErr = call(ctx, k.timeout, client.List, &podresources.ListPodResourcesRequest{})
	return a
}

// connect makes a connection.
func (k *kubelet) connect(ctx context.Context) (*connection, error) {
	file, err := os.Stat(k.socket)
	if err != nil {
		file = nil // dialing says why
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

func (k *kubelet) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "unix", k.socket)
}

// client returns a gRPC client that has this one connection.
func (k *kubelet) client(socket net.Conn) (*grpc.ClientConn, error) {
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

// outcome is how a call ended: the values of the attribute outcome.
type outcome string

const (
	outcomeOK            outcome = "ok"
	outcomeAbsent        outcome = "absent"
	outcomeDenied        outcome = "denied"
	outcomeNoAnswer      outcome = "no_answer"
	outcomeTimeout       outcome = "timeout"
	outcomeUnimplemented outcome = "unimplemented"
	outcomeTooLarge      outcome = "too_large"
	outcomeRateLimited   outcome = "rate_limited"
	outcomeIncomplete    outcome = "incomplete"
	outcomeFailed        outcome = "failed"
)

// remedies say what to do.
var remedies = map[outcome]string{
	outcomeAbsent:        "check that the kubelet's pod-resources folder is mounted into the pod (hostPath /var/lib/kubelet/pod-resources, the folder and not the socket), and that socket names the path",
	outcomeDenied:        "the socket belongs to root: run the container as user 0, and check SELinux or AppArmor",
	outcomeNoAnswer:      "the socket is there and nothing answers: the kubelet restarts, or its socket was mounted as a file (mount the folder)",
	outcomeTimeout:       "the kubelet hangs: look at its log; raise timeout (and poll_interval) if it is only slow",
	outcomeUnimplemented: "the kubelet does not serve this call of pod-resources v1: use Kubernetes 1.23 or newer",
	outcomeTooLarge:      "raise max_message_size if the node really holds that many devices",
	outcomeRateLimited:   "the kubelet limits calls for all its clients together: raise poll_interval here, or look for who asks so often",
	outcomeIncomplete:    "the kubelet was restarted and does not list its pods yet: look whether it reaches the API server; if this stays, check that pod_namespace and pod_name are those of the collector's own pod",
	outcomeFailed:        "look at the kubelet's log",
}

// errIncomplete is an answer of a kubelet that does not know its pods yet.
var errIncomplete = errors.New("the answer does not name the pods of the node")

// classify names the cause of a failed call.
func classify(err error) outcome {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, errIncomplete):
		return outcomeIncomplete
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return outcomeAbsent
	case errors.Is(err, fs.ErrPermission):
		return outcomeDenied
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return outcomeNoAnswer
	case errors.Is(err, context.DeadlineExceeded):
		return outcomeTimeout
	}
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		return outcomeNoAnswer
	case codes.DeadlineExceeded:
		return outcomeTimeout
	case codes.Unimplemented:
		return outcomeUnimplemented
	case codes.PermissionDenied, codes.Unauthenticated:
		return outcomeDenied
	case codes.ResourceExhausted:
		// grpc-go's own error for an answer over the limit; the kubelet's limiter
		// has the same code.
		if strings.Contains(s.Message(), "larger than max") {
			return outcomeTooLarge
		}
		return outcomeRateLimited
	}
	return outcomeFailed
}

// cause is the text of an error, fit for a log.
func cause(err error) string { return safetext.Strip(err.Error(), 500) }
