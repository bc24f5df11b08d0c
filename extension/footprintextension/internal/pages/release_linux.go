// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension/internal/pages"

import (
	"fmt"
	"os"
	"syscall"
)

// Release takes the pages of the process' binary out of its resident memory and
// returns how many bytes that were. They stay in the page cache, where the system
// finds them again when they are used.
//
// Linux maps sixteen pages of a file for each that is touched, so that of a large
// binary most of what is resident was never used, or by the start alone.
func Release() (int64, error) {
	executable, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer smaps.Close()
	mappings, err := clean(smaps, executable)
	if err != nil {
		return 0, err
	}
	var bytes int64
	for _, m := range mappings {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), syscall.MADV_DONTNEED); errno != 0 {
			return bytes, fmt.Errorf("madvise: %w", errno)
		}
		bytes += m.resident
	}
	return bytes, nil
}
