// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension/internal/metadata"
)

const waits = "the configuration is not reloaded until all files are there and fit together; the Collector goes on with what it has"

func watching(t *testing.T, config Config, set component.TelemetrySettings, core zapcore.Core, reload func() error) *watcher {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	require.NoError(t, err)
	return &watcher{config: config, logger: zap.New(core), telemetry: telemetry, reload: reload}
}

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
			}, logs: []string{waits},
		},
		{
			name: "a file that is gone", happens: func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a"))) },
			logs: []string{waits},
		},
		{name: "an empty file", happens: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a"), "") }, logs: []string{waits}},
		{
			name: "a file that is written slowly", happens: func(t *testing.T, dir string) {
				for i := range 25 {
					write(t, filepath.Join(dir, "a"), strings.Repeat("x", i+1))
					time.Sleep(4 * time.Second)
				}
				write(t, filepath.Join(dir, "a"), "one")
			},
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
				config := Config{Files: []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, Interval: time.Minute}
				w := watching(t, config, componenttest.NewNopTelemetrySettings(), core, func() error { reloads++; return c.fails })
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

// pair writes a certificate and its key.
func pair(t *testing.T) (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// A Collector ends where it reloads its configuration while a certificate was replaced and its
// key was not yet, whether or not the key is listed.
func TestFilesThatBelongTogether(t *testing.T) {
	oldCert, oldKey := pair(t)
	newCert, newKey := pair(t)
	for _, c := range []struct {
		name        string
		files       []string // that are listed
		half, whole map[string][]byte
		waits       bool
	}{
		{"certificate first", []string{"crt", "key"}, map[string][]byte{"crt": newCert}, map[string][]byte{"key": newKey}, true},
		{"key first", []string{"crt", "key"}, map[string][]byte{"key": newKey}, map[string][]byte{"crt": newCert}, true},
		{"the key is not listed", []string{"crt"}, map[string][]byte{"crt": newCert}, map[string][]byte{"key": newKey}, true},
		{"half a certificate", []string{"crt"}, map[string][]byte{"crt": newCert[:100]}, map[string][]byte{"crt": newCert, "key": newKey}, true},
		{"half an authority", []string{"ca"}, map[string][]byte{"ca": newCert[:100]}, map[string][]byte{"ca": newCert}, true},
		{"another file is changed meanwhile", []string{"list"}, map[string][]byte{"list": {1}, "crt": newCert}, map[string][]byte{"key": newKey}, true},
		{"a pair that no component has", []string{"list"}, map[string][]byte{"list": {1}, "other": newCert}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			write := func(files map[string][]byte) {
				for name, content := range files {
					require.NoError(t, os.WriteFile(file(name), content, 0o600))
				}
			}
			write(map[string][]byte{"crt": oldCert, "key": oldKey, "ca": oldCert, "list": {0}, "other": oldCert, "bad": newKey})
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.WarnLevel)
				tel := componenttest.NewTelemetry()
				config := Config{Interval: time.Minute}
				for _, name := range c.files {
					config.Files = append(config.Files, file(name))
				}
				reloads := 0
				w := watching(t, config, tel.NewTelemetrySettings(), core, func() error { reloads++; return nil })
				require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost()))
				require.NoError(t, w.NotifyConfig(t.Context(), confmap.NewFromStringMap(map[string]any{
					"receivers":  map[string]any{"otlp": map[string]any{"tls": map[string]any{"cert_file": file("crt"), "key_file": file("key")}}},
					"exporters":  map[string]any{"list": []any{map[string]any{"ca_file": file("ca")}}},
					"extensions": map[string]any{"x": map[string]any{"cert_file": file("other"), "key_file": file("bad")}},
				})))
				write(c.half)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if c.waits {
					assert.Zero(t, reloads)
					assert.Equal(t, 1, logs.FilterMessage(waits).Len(), "%v", logs.All())
					refusals, err := tel.GetMetric("otelcol_reload_on_change_refusals")
					require.NoError(t, err)
					assert.Greater(t, refusals.Data.(metricdata.Sum[int64]).DataPoints[0].Value, int64(5))
				}
				write(c.whole)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				assert.Equal(t, 1, reloads)
				require.NoError(t, w.Shutdown(context.Background()))
				require.NoError(t, tel.Shutdown(context.Background()))
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
