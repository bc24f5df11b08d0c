// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnreadableSockets(t *testing.T) {
	for _, tt := range []struct {
		err          error
		seen, remedy string
	}{
		{fs.ErrNotExist, "no such socket", "the folder and not the socket"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, "may not use it", "runAsUser: 0"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "nothing answers", "mount the folder"},
		{errors.New("odd"), "odd", "gpu_allocation::socket"},
	} {
		seen, remedy := unreadable(t.TempDir()+"/kubelet.sock", tt.err)
		assert.Contains(t, seen, tt.seen)
		assert.Contains(t, remedy, tt.remedy)
	}
}
