// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pathless takes the path out of errors of the file system.
package pathless // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/pathless"

import (
	"errors"
	"io/fs"
)

// Cause is the error without its path, for messages that name the key of the
// configuration instead.
func Cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
