// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Outcome is how a call ended: the values of the attribute outcome.
type Outcome string

const (
	OK            Outcome = "ok"
	Absent        Outcome = "absent"
	Denied        Outcome = "denied"
	NoAnswer      Outcome = "no_answer"
	Timeout       Outcome = "timeout"
	Unimplemented Outcome = "unimplemented"
	TooLarge      Outcome = "too_large"
	RateLimited   Outcome = "rate_limited"
	Incomplete    Outcome = "incomplete"
	Failed        Outcome = "failed"
)

// Remedies are what to do about an Outcome.
var Remedies = map[Outcome]string{
	Absent:        "check that the kubelet's pod-resources folder is mounted into the pod (hostPath /var/lib/kubelet/pod-resources, the folder and not the socket), and that socket names the path",
	Denied:        "the socket belongs to root: run the container as user 0, and check SELinux or AppArmor",
	NoAnswer:      "the socket is there and nothing answers: the kubelet restarts, or its socket was mounted as a file (mount the folder)",
	Timeout:       "the kubelet hangs: look at its log; raise timeout (and poll_interval) if it is only slow",
	Unimplemented: "the kubelet does not serve this call of pod-resources v1: use Kubernetes 1.23 or newer",
	TooLarge:      "raise max_message_size if the node really holds that many devices",
	RateLimited:   "the kubelet limits calls for all its clients together: raise poll_interval here, or look for who asks so often",
	Incomplete:    "the kubelet was restarted and does not list its pods yet: look whether it reaches the API server; if this stays, check that pod_namespace and pod_name are those of the collector's own pod",
	Failed:        "look at the kubelet's log",
}

// ErrIncomplete is an answer of a kubelet that does not know its pods yet.
var ErrIncomplete = errors.New("the Answer does not name the pods of the node")

// Classify names the cause of a failed call.
func Classify(err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrIncomplete):
		return Incomplete
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Absent
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return NoAnswer
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		return NoAnswer
	case codes.DeadlineExceeded:
		return Timeout
	case codes.Unimplemented:
		return Unimplemented
	case codes.PermissionDenied, codes.Unauthenticated:
		return Denied
	case codes.ResourceExhausted:
		// grpc-go's own error for an answer over the limit; the kubelet's limiter
		// has the same code.
		if strings.Contains(s.Message(), "larger than max") {
			return TooLarge
		}
		return RateLimited
	}
	return Failed
}

// Cause is the text of an error, fit for a log.
func Cause(err error) string { return safetext.Strip(err.Error(), 500) }
