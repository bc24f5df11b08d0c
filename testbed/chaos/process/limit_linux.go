// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "golang.org/x/sys/unix"

// LimitFiles lets no file grow and none be written (a full disk), or ends that.
func (p *Process) LimitFiles(full bool) error {
	c, _ := p.Running()
	if c == nil {
		return nil
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(c.PID(), unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if full {
		limit.Cur = 0
	}
	return unix.Prlimit(c.PID(), unix.RLIMIT_FSIZE, &limit, nil)
}
