// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	bbolt "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var (
	storageID = component.MustNewIDWithName("file_storage", "state")
	user      = component.MustNewID("gpu_events")
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// extension fails to open with one error after the other.
type extension struct {
	component.StartFunc
	component.ShutdownFunc
	errs  []error
	asked []string
}

func (e *extension) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	e.asked = append(e.asked, name)
	if len(e.errs) < len(e.asked) {
		return storage.NewNopClient(), nil
	}
	return nil, fmt.Errorf("open /state/gpu_events: %w", e.errs[len(e.asked)-1])
}

func TestOnlyDamageIsLeftBehind(t *testing.T) {
	first, both := []string{""}, []string{"", "second"}
	for _, tt := range []struct {
		name    string
		errs    []error
		asked   []string
		damaged error
		reports string
	}{
		{"in order", nil, first, nil, ""},
		{"not a database", []error{bbolt.ErrInvalid}, both, bbolt.ErrInvalid, ""},
		{"another version", []error{bbolt.ErrVersionMismatch}, both, bbolt.ErrVersionMismatch, ""},
		{"damaged", []error{bbolt.ErrChecksum}, both, bbolt.ErrChecksum, ""},
		{"damaged, and months later the second one", []error{bbolt.ErrInvalid, bbolt.ErrChecksum}, []string{"", "second", "third"}, bbolt.ErrChecksum, ""},
		{"all damaged", []error{bbolt.ErrInvalid, bbolt.ErrInvalid, bbolt.ErrInvalid, bbolt.ErrChecksum}, []string{"", "second", "third", "fourth"}, nil, "all spare ones are damaged: check the disk, and remove the files"},
		{"damaged, and no room", []error{bbolt.ErrChecksum, syscall.ENOSPC}, both, nil, "storage: file_storage/state cannot be opened: its disk is full: make room"},
		{"no room", []error{syscall.ENOSPC}, first, nil, "its disk is full: make room"},
		{"no permission", []error{&fs.PathError{Op: "open", Path: "/state", Err: syscall.EACCES}}, first, nil, "not writable for the collector"},
		{"read only", []error{syscall.EROFS}, first, nil, "not writable for the collector"},
		{"another process", []error{bbolt.ErrTimeout}, first, nil, "another process has it"},
		{"bad disk", []error{syscall.EIO}, first, nil, "see that its directory is writable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &extension{errs: tt.errs}
			client, damaged, err := Open(t.Context(), host{storageID: e}, component.KindConnector, storageID, user)
			require.Equal(t, tt.asked, e.asked)
			if tt.reports != "" {
				require.ErrorContains(t, err, tt.reports)
				require.ErrorIs(t, err, tt.errs[len(tt.errs)-1])
				return
			}
			require.NoError(t, err)
			require.NotNil(t, client)
			require.ErrorIs(t, damaged, tt.damaged)
		})
	}
}

func TestTheExtensionIsNamed(t *testing.T) {
	_, _, err := Open(t.Context(), host{}, component.KindConnector, storageID, user)
	require.ErrorContains(t, err, "there is no extension file_storage/state: define it and name it in service::extensions")
	_, _, err = Open(t.Context(), host{storageID: nil}, component.KindConnector, storageID, user)
	require.ErrorContains(t, err, "file_storage/state stores nothing")
}
