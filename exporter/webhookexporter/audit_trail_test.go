// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// auditHost is a host with extensions that remembers the status reported.
type auditHost struct {
	component.Host
	extensions map[component.ID]component.Component

	mu     sync.Mutex
	events []*componentstatus.Event
}

func newAuditHost() *auditHost {
	return &auditHost{Host: componenttest.NewNopHost(), extensions: map[component.ID]component.Component{}}
}

func (h *auditHost) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *auditHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// keeper is an extension that keeps audit records.
type keeper struct {
	component.StartFunc
	component.ShutdownFunc
	mu   sync.Mutex
	kept map[uint64]audit.Record
}

func (k *keeper) KeepAudit(seq uint64, r *audit.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[seq] = *r
}

func TestAuditFileLineAndStoreAgree(t *testing.T) {
	dir := t.TempDir()
	private, public, err := checkpoint.GenerateKey("prod/gateway")
	require.NoError(t, err)
	checkpointFile, fingerprintFile := filepath.Join(dir, "checkpoint"), filepath.Join(dir, "fingerprint")
	require.NoError(t, os.WriteFile(checkpointFile, []byte(private+"\n"), 0o600))
	require.NoError(t, os.WriteFile(fingerprintFile, []byte(strings.Repeat("ab", 32)+"\n"), 0o600))
	path := filepath.Join(dir, "audit.jsonl")
	id := component.MustNewID("gpu_store")
	store := &keeper{kept: map[uint64]audit.Record{}}
	host := newAuditHost()
	host.extensions[id] = store

	server := newHook(t, answerWith(http.StatusServiceUnavailable))
	h := newHarness(t, only(to(strings.Replace(server.URL, "http://", "http://user:secret@", 1)+"/token?q=1")), func(c *Config, _ *environment) {
		c.Audit = trail.Config{Path: path, CheckpointKeyFile: checkpointFile, FingerprintKeyFile: fingerprintFile, Sync: "record", Store: &id}
	})
	require.NoError(t, h.Start(t.Context(), host))
	h.send(partial("one", "raised"))
	rec := h.record()
	metadatatest.AssertEqualExporterWebhookAuditWrittenRecords(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterWebhookAuditLostRecords(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 0}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterWebhookAuditBufferedRecords(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 0}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterWebhookAuditFailures(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 0}}, metricdatatest.IgnoreTimestamp())
	assert.Equal(t, map[string]time.Time{rec.ID: {}}, h.trail.Find([]string{rec.ID, "other"}))
	require.NoError(t, h.Shutdown(context.Background()))

	keys, err := checkpoint.ParsePublicKeys(public)
	require.NoError(t, err)
	report, err := verify.Files(verify.Options{PublicKeys: keys}, path)
	require.NoError(t, err)
	require.Nil(t, report.Break)
	assert.EqualValues(t, 1, report.Records)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), rec.ID)
	for _, secret := range []string{"secret", "token", "q=1"} {
		assert.NotContains(t, string(text), secret)
	}

	want := audit.Fingerprint([]byte(strings.Repeat("\xab", 32)), strings.Replace(server.URL, "http://", "http://user:secret@", 1)+"/token?q=1")
	assert.Equal(t, want, rec.URLFingerprint)
	require.Len(t, store.kept, 1)
	lines := h.logs.FilterMessageSnippet("audit_type=").All()
	require.Len(t, lines, 1)
	fields := lines[0].ContextMap()
	for seq, kept := range store.kept {
		assert.Equal(t, rec.ID, kept.ID)
		assert.Equal(t, seq, fields["audit_seq"])
	}
	assert.Equal(t, want, fields["url_fingerprint"])
	assert.Empty(t, host.events)
}

// An audit file that is gone is reported by the status, and by OK once it is there
// again; deliveries go on.
func TestStatusReportsTheAuditFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	host := newAuditHost()
	server := newHook(t, answerWith(http.StatusOK))
	h := newHarness(t, only(to(server.URL)), func(c *Config, _ *environment) { c.Audit.Path = path })
	require.NoError(t, h.Start(t.Context(), host))
	require.NoError(t, os.Remove(path))
	h.send(partial("one", "raised"))
	assert.Equal(t, audit.Succeeded, h.record().Outcome)
	require.NoError(t, h.Shutdown(context.Background()))
	require.NotEmpty(t, host.events)
	assert.Equal(t, componentstatus.StatusRecoverableError, host.events[0].Status())
	assert.ErrorContains(t, host.events[0].Err(), "renamed or deleted")
	assert.Equal(t, componentstatus.StatusOK, host.events[len(host.events)-1].Status())
}

// The storage keeps where the audit log stood. A log that does not have these
// lines is set aside: the log, a metric, the status, the new log's first record
// and the store report it, and deliveries go on.
func TestAuditLogIsComparedWithTheStorage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	storeID := component.MustNewID("gpu_store")
	d, server := newDisk(), newHook(t, answerWith(http.StatusOK))
	run := func(aside int64) {
		t.Helper()
		store, ah := &keeper{kept: map[uint64]audit.Record{}}, newAuditHost()
		ah.extensions[storeID], ah.extensions[diskID] = store, d
		h := newHarness(t, only(to(server.URL)), onDisk, func(c *Config, _ *environment) { c.Audit = trail.Config{Path: path, Store: &storeID} })
		require.NoError(t, h.Start(t.Context(), ah))
		metadatatest.AssertEqualExporterWebhookAuditSetAside(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: aside}}, metricdatatest.IgnoreTimestamp())
		assert.EqualValues(t, aside, h.logs.FilterMessageSnippet("the audit log does not verify").Len())
		triggers := map[audit.Trigger]int64{}
		for range aside {
			triggers[h.record().Trigger]++
		}
		assert.Equal(t, aside, triggers[audit.TriggerSetAside])
		assert.EqualValues(t, aside, len(ah.events))
		assert.EqualValues(t, aside, len(store.kept))
		assert.Equal(t, audit.Succeeded, h.one().Outcome)
		require.NoError(t, h.Shutdown(context.Background()))
	}
	run(0)
	run(0)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	run(0)
	require.NoError(t, os.WriteFile(path, before, 0o600)) // an earlier end in good order
	run(1)
	run(0)
	aside, err := filepath.Glob(filepath.Join(filepath.Dir(path), "audit.set-aside-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, aside, 1)
	after, err := os.ReadFile(aside[0])
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestKeyThatEveryUserCanReadIsLogged(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o440: 0, 0o644: 1} {
		dir := t.TempDir()
		private, public, err := checkpoint.GenerateKey("prod/gateway")
		require.NoError(t, err)
		c := trail.Config{Path: filepath.Join(dir, "audit.jsonl"), CheckpointKeyFile: filepath.Join(dir, "key"), PreviousKeysFile: filepath.Join(dir, "old")}
		require.NoError(t, os.WriteFile(c.CheckpointKeyFile, []byte(private), 0o600))
		require.NoError(t, os.WriteFile(c.PreviousKeysFile, []byte(public), 0o644))
		require.NoError(t, os.Chmod(c.CheckpointKeyFile, mode))
		h := newHarness(t, only(to("http://127.0.0.1:9/hook")), func(cfg *Config, _ *environment) { cfg.Audit = c })
		require.NoError(t, h.Start(t.Context(), newAuditHost()))
		assert.Equal(t, want, h.logs.FilterMessageSnippet("can be read by every user").Len(), mode)
	}
}

func TestAuditThatCannotStartIsReported(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	require.NoError(t, os.WriteFile(bad, []byte("PRIVATE+KEY+secret"), 0o600))
	taken, err := audit.Open(audit.Options{Path: filepath.Join(dir, "taken.jsonl")})
	require.NoError(t, err)
	defer taken.Close()
	missing, noKeeper := component.MustNewID("none"), component.MustNewID("other")
	for want, c := range map[string]trail.Config{
		"audit::path: the folder " + filepath.Join(dir, "none") + " does not exist: make it": {Path: filepath.Join(dir, "none", "audit.jsonl")},
		"being written by another exporter":                                                  {Path: filepath.Join(dir, "taken.jsonl")},
		"audit::fingerprint_key_file: stat":                                                  {FingerprintKeyFile: filepath.Join(dir, "none")},
		"is not a fingerprint key":                                                           {FingerprintKeyFile: bad},
		"is not a private checkpoint key":                                                    {Path: filepath.Join(dir, "a.jsonl"), CheckpointKeyFile: bad},
		"audit::checkpoint_key_file: ":                                                       {Path: filepath.Join(dir, "a.jsonl"), CheckpointKeyFile: dir},
		"audit::previous_keys_file: " + bad + " line 1 is not a public checkpoint key":       {Path: filepath.Join(dir, "a.jsonl"), PreviousKeysFile: bad},
		"audit::store: there is no extension":                                                {Store: &missing},
		"other keeps no audit records":                                                       {Store: &noKeeper},
	} {
		host := newAuditHost()
		host.extensions[noKeeper] = struct {
			component.StartFunc
			component.ShutdownFunc
		}{}
		h := newHarness(t, only(to("http://127.0.0.1:9/hook")), func(cfg *Config, _ *environment) { cfg.Audit = c })
		err := h.Start(t.Context(), host)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestAuditConfiguration(t *testing.T) {
	valid := func(audit map[string]any) error {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{
			"receivers": map[string]any{"ops": map[string]any{"url": "https://example.com"}},
			"audit":     audit,
		}).Unmarshal(cfg))
		return cfg.Validate()
	}
	require.NoError(t, valid(map[string]any{}))
	require.NoError(t, valid(map[string]any{"fingerprint_key_file": "f", "store": "gpu_store/main"}), "of use without a file")
	require.NoError(t, valid(map[string]any{"path": "/var/lib/x/audit.jsonl", "checkpoint_key_file": "c", "checkpoint_interval": "30s", "max_bytes": 65536, "max_files": 2, "sync": "record"}))
	for want, c := range map[string]map[string]any{
		"audit::checkpoint_key_file: means nothing without an audit file": {"checkpoint_key_file": "c"},
		"audit::max_files: means nothing":                                 {"max_files": 3},
		"audit::previous_keys_file: means nothing without a key of now":   {"path": "p", "previous_keys_file": "k"},
		"audit::checkpoint_interval: 1ms is shorter than 1s":              {"path": "p", "checkpoint_interval": "1ms"},
		"audit::checkpoint_interval: -1m0s":                               {"path": "p", "checkpoint_interval": "-1m"},
		"audit::max_bytes: 100 is less than 65536":                        {"path": "p", "max_bytes": 100},
		"audit::max_files: 1 is not within 2":                             {"path": "p", "max_files": 1},
		`audit::sync: "never" is not supported`:                           {"path": "p", "sync": "never"},
	} {
		assert.ErrorContains(t, valid(c), want)
	}
}
