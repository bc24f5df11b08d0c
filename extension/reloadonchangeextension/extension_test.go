// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// What happens to the files decides whether the configuration is read again, and
// it is read once.
func TestReload(t *testing.T) {
	write := func(t *testing.T, path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	for _, c := range []struct {
		name    string
		happens func(t *testing.T, dir string)
		fails   error
		reloads int
		logs    []string
	}{
		{name: "nothing", happens: func(*testing.T, string) {}},
		{name: "written again, the same", happens: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a"), "one") }},
		{
			name: "another content", happens: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a"), "two") }, reloads: 1,
			logs: []string{"a file has changed, reloading the configuration"},
		},
		{
			// As the kubelet replaces a Secret: a link leads to another folder.
			name: "a link that leads elsewhere", happens: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "new"), "two")
				require.NoError(t, os.Symlink("new", filepath.Join(dir, "link")))
				require.NoError(t, os.Rename(filepath.Join(dir, "link"), filepath.Join(dir, "a")))
			}, reloads: 1, logs: []string{"a file has changed, reloading the configuration"},
		},
		{
			name: "a file appears", happens: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "b"), "one") }, reloads: 1,
			logs: []string{"a file has changed, reloading the configuration"},
		},
		{
			name: "a file that cannot be read", happens: func(t *testing.T, dir string) {
				require.NoError(t, os.Mkdir(filepath.Join(dir, "b"), 0o700))
			}, logs: []string{"a file cannot be read; changes to it are not noticed until it can be"},
		},
		{
			name: "no such signal", happens: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a"), "two") }, fails: errors.New("no"), reloads: 1,
			logs: []string{"a file has changed, reloading the configuration", "the configuration cannot be reloaded; restart the Collector"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a"), "one")
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.DebugLevel)
				reloads := 0
				w := &watcher{
					config: Config{Files: []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, Interval: time.Minute}, logger: zap.New(core),
					reload: func() error { reloads++; return c.fails },
				}
				require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost()))
				c.happens(t, dir)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.NoError(t, w.Shutdown(context.Background()))
				assert.Equal(t, c.reloads, reloads)
				var messages []string
				for _, entry := range logs.All() {
					messages = append(messages, entry.Message)
				}
				assert.Equal(t, c.logs, messages)
			})
		})
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, (&Config{Files: []string{"a"}, Interval: time.Minute}).Validate())
	err := (&Config{Files: []string{""}, Interval: time.Millisecond}).Validate()
	require.ErrorContains(t, err, "files::0")
	require.ErrorContains(t, err, "interval: 1ms")
	require.ErrorContains(t, (&Config{Interval: time.Minute}).Validate(), "files: is empty")
}
