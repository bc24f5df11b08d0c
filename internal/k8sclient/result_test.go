// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResultOf(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, tt := range map[string]struct {
		err  error
		want Result
	}{
		"none":                {nil, "ok"},
		"forbidden":           {apierrors.NewForbidden(pods, "", errors.New("no role")), "denied"},
		"unauthorized":        {apierrors.NewUnauthorized("no token"), "denied"},
		"not found":           {apierrors.NewNotFound(pods, "a"), "not_served"},
		"no such method":      {apierrors.NewMethodNotSupported(pods, "watch"), "not_served"},
		"deadline":            {fmt.Errorf("list: %w", context.DeadlineExceeded), "timeout"},
		"the server's":        {apierrors.NewServerTimeout(pods, "list", 1), "timeout"},
		"the server's answer": {apierrors.NewTimeoutError("slow", 1), "timeout"},
		"the network's":       {&url.Error{Op: "Get", Err: os.ErrDeadlineExceeded}, "timeout"},
		"refused":             {&url.Error{Op: "Get", Err: refused}, "no_answer"},
		"closed":              {fmt.Errorf("watch: %w", io.EOF), "no_answer"},
		"closed midway":       {io.ErrUnexpectedEOF, "no_answer"},
		"server error":        {apierrors.NewInternalError(errors.New("etcd")), "failed"},
		"gone":                {apierrors.NewResourceExpired("too old"), "failed"},
	} {
		assert.Equal(t, tt.want, ResultOf(tt.err), name)
	}
}
