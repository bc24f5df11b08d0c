// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "errors"

// LimitFiles works on Linux alone.
func (p *Process) LimitFiles(bool) error {
	return errors.New("only Linux lets one process limit the files of another: leave the disk_full kinds out with -only")
}
