// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package releasefile is the file by which a script has the nvml receiver let go of the
// driver. While it exists nothing is read; what it contains may be the end of that, so that a
// script that fails, or forgets, does not end telemetry for good.
package releasefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Default is where the file is in our configurations.
const Default = "/run/otelcol-gpu/release"

// Variable is the environment's variable with another path.
const Variable = "NVML_RELEASE_FILE"

// ErrUnlimited is that a file has no end: a person made it, who has to remove it.
var ErrUnlimited = errors.New("it exists and has no end: the person who made it removes it")

// maxSize is how much of a file is read, in bytes.
const maxSize = 64

// Released reports whether the driver is to be left alone now: the file exists and names no
// time that has passed. One that exists and cannot be read has no end.
func Released(path string, now time.Time) bool {
	until, err := read(path)
	return err == nil && (until.IsZero() || now.Before(until))
}

// read returns the end of a release, zero where it has none. It returns an error where there
// is no file.
func read(path string) (until time.Time, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		_, err = os.Stat(path)
		return time.Time{}, err
	}
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxSize))
	until, err = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return time.Time{}, nil
	}
	return until, nil
}

// Write makes the file, or gives one with an end another one.
func Write(path string, until time.Time) error {
	if was, err := read(path); err == nil && was.IsZero() {
		return fmt.Errorf("%s: %w", path, ErrUnlimited)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".release-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	_, err = next.WriteString(until.UTC().Format(time.RFC3339) + "\n")
	if err = errors.Join(err, next.Chmod(0o644), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
