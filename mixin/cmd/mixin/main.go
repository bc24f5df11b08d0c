// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Mixin writes the generated files of the repository that has mixin/ as the current
// directory, and removes those that are no longer generated.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/otelcol-gpu/otelcol-gpu/mixin"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	files, err := mixin.Files()
	if err != nil {
		return err
	}
	for _, folder := range mixin.Folders {
		old, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, f := range old {
			path := filepath.Join(folder, f.Name())
			if _, kept := files[filepath.ToSlash(path)]; !kept && !mixin.Elsewhere(filepath.ToSlash(path)) {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
