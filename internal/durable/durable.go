// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package durable opens the storage extension that a component is configured
// with, decides when what it holds may be left behind, and keeps a state there.
package durable // import "github.com/otelcol-gpu/otelcol-gpu/internal/durable"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	bbolt "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// spares are the names of the databases beside the first.
var spares = []string{"second", "third", "fourth"}

// Open opens the storage extension of that id for a component. An extension
// with a damaged file refuses to open it: then the component gets the first spare
// file that is not damaged, and damaged reports why. Every other failure can pass (a full disk, a
// permission, another process that has the file), and behind a spare file the
// intact state would be forgotten: it is an error, which stops the start.
func Open(ctx context.Context, host component.Host, kind component.Kind, storageID, id component.ID) (client storage.Client, damaged, err error) {
	ext, ok := host.GetExtensions()[storageID]
	if !ok {
		return nil, nil, fmt.Errorf("storage: there is no extension %s: define it and name it in service::extensions", storageID)
	}
	s, ok := ext.(storage.Extension)
	if !ok {
		return nil, nil, fmt.Errorf("storage: the extension %s stores nothing: name one such as file_storage", storageID)
	}
	client, err = s.GetClient(ctx, kind, id, "")
	for _, spare := range spares {
		if !isDamage(err) {
			break
		}
		damaged = errors.Join(damaged, err)
		client, err = s.GetClient(ctx, kind, id, spare)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("storage: %s cannot be opened: %s: %w", storageID, remedy(err), err)
	}
	return client, damaged, nil
}

// isDamage reports whether a database file is not one, or not whole, by the
// errors of the database behind file_storage.
func isDamage(err error) bool {
	return errors.Is(err, bbolt.ErrInvalid) || errors.Is(err, bbolt.ErrVersionMismatch) || errors.Is(err, bbolt.ErrChecksum)
}

// remedy is what to do about a file that cannot be opened now.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "its disk is full: make room on it, or set its directory to another one"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "its directory is not writable for the collector: change the owner, or set another directory"
	case isDamage(err):
		return "its file and all spare ones are damaged: check the disk, and remove the files"
	case errors.Is(err, bbolt.ErrTimeout):
		return "another process has it: stop that one, or give each its own directory"
	default:
		return "see that its directory is writable and that no other process uses it"
	}
}
