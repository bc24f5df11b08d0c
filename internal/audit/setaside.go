// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// setAside renames all files of the log, the oldest first: a process that is
// killed meanwhile leaves those that did not verify.
func setAside(path string, full []lines.Numbered, stamp string) (names []string, err error) {
	ext := filepath.Ext(path)
	base := ""
	for n := 0; ; n++ {
		base = strings.TrimSuffix(path, ext) + ".set-aside-" + stamp
		if n > 0 {
			base += fmt.Sprintf(".%d", n)
		}
		base += ext
		if taken, err := logfile.Files(base); err != nil {
			return nil, err
		} else if len(taken) == 0 {
			break
		}
	}
	for _, f := range full {
		to := logfile.RotatedName(base, f.N)
		if err := os.Rename(f.Path, to); err != nil {
			return nil, err
		}
		names = append(names, to)
	}
	switch err := os.Rename(path, base); {
	case err == nil:
		names = append(names, base)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return names, nil
}
