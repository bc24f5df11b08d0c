// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package chaos

import "errors"

// limitFiles is there on Linux alone.
func (p *process) limitFiles(bool) error {
	return errors.New("only Linux lets one process limit the files of another: leave the disk_full kinds out with -only")
}
