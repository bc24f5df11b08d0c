// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/unsampled"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// auditLog is the file of audit records.
type auditLog interface {
	// Append writes a record, and returns its number in the file and whether it
	// is there already.
	Append(*audit.Record) (seq uint64, written bool)
	// Find returns, of the records with these ids that are in the file, when
	// they say that the delivery is tried again.
	Find(ids []string) map[string]time.Time
	Close() error
}

// auditTrail is where audit records go: the audit file first, whose sequence
// number the other two then tell.
type auditTrail struct {
	courtesy       logSink
	log            auditLog     // nil without a file
	keeper         audit.Keeper // nil without a store
	fingerprintKey []byte       // nil without a key
}

var _ audit.Sink = (*auditTrail)(nil)

// Write returns once the record is in the audit file or, where that cannot be
// written, in its buffer.
func (t *auditTrail) Write(r *audit.Record) {
	var seq uint64
	if t.log != nil {
		seq, _ = t.log.Append(r)
	}
	t.courtesy.write(seq, r)
	if t.keeper != nil {
		t.keeper.KeepAudit(seq, r)
	}
}

// find returns what the audit file says of the attempts with these record ids.
// Without a file nothing is known of any.
func (t *auditTrail) find(ids []string) map[string]time.Time {
	if t.log == nil {
		return nil
	}
	return t.log.Find(ids)
}

// fingerprint is what records about the target say of its whole URL; empty
// without a key.
func (t *auditTrail) fingerprint(to *target) string {
	if t.fingerprintKey == nil {
		return ""
	}
	whole := *to.url
	whole.User = to.user
	return audit.Fingerprint(t.fingerprintKey, whole.String())
}

// openAudit completes the audit trail: keys, store, audit file. It must be
// called before the first delivery; closeAudit ends it after the last.
func (e *webhookExporter) openAudit(ctx context.Context, host component.Host) error {
	c := &e.config.Audit
	var err error
	if e.trail.fingerprintKey, err = c.fingerprintKey(); err != nil {
		return err
	}
	for _, r := range e.current() { // no attempt reads it yet
		r.target.urlFingerprint = e.trail.fingerprint(r.target)
	}
	if c.Store != nil {
		ext, ok := host.GetExtensions()[*c.Store]
		if !ok {
			return fmt.Errorf("audit::store: there is no extension %s: define it and name it in service::extensions", c.Store)
		}
		if e.trail.keeper, ok = ext.(audit.Keeper); !ok {
			return fmt.Errorf("audit::store: the extension %s keeps no audit records: name one such as gpu_store", c.Store)
		}
	}
	if c.Path == "" {
		return nil
	}
	key, err := c.checkpointKey()
	if err != nil {
		return err
	}
	previous, err := c.previousKeys()
	if err != nil {
		return err
	}
	for name, path := range c.exposed() {
		e.logger.Warn("a key of the audit log can be read by every user of this machine, who can sign as the collector does: take the rights of others away (chmod o=)",
			zap.String("key", name), zap.String("file", path))
	}
	kept, err := e.store.keptHead(ctx, c.Path)
	if err != nil {
		return fmt.Errorf("storage: %s cannot be read: see that its disk answers and is not full; what it holds is untouched: %w", *e.config.Storage, err)
	}
	log, err := audit.Open(audit.Options{
		Path:               c.Path,
		CheckpointKey:      key,
		PreviousKeys:       previous,
		Kept:               kept,
		Keep:               func(h audit.Head, wait bool) { e.store.keepHead(c.Path, h, wait) },
		CheckpointInterval: c.CheckpointInterval,
		MaxBytes:           c.MaxBytes,
		MaxFiles:           c.MaxFiles,
		SyncRecords:        c.Sync == syncRecord,
		Logger:             unsampled.Logger(e.logger),
		OnStatus:           func(err error) { e.health.Set("audit", err) },
	})
	if err != nil {
		return fmt.Errorf("audit::path: %s: %w", remedyFor(c.Path, err), err)
	}
	e.trail.log = log
	if why := log.SetAside(); why != nil {
		e.health.Set("audit history", fmt.Errorf("the audit log that was found at the start does not verify and was set aside: %w", why))
		rec := &audit.Record{ID: eventrecord.NewID(), Time: time.Now().UTC(), Trigger: audit.TriggerSetAside, Outcome: audit.Failed}
		for _, sink := range e.sinks {
			sink.Write(rec)
		}
	}
	return e.observeAudit(log)
}

// storedHead is the head of the audit log, as it is kept in the storage: where
// who can write the log's folder need not be able to write.
type storedHead struct {
	Path string `json:"path"` // of the file: another one is another log
	audit.Head
}

const headKey = "audit"

// keptHead is the head that was stored last; nil where none is known.
func (s *store) keptHead(ctx context.Context, path string) (*audit.Head, error) {
	if s == nil {
		return nil, nil
	}
	texts, err := s.Read(ctx, []string{headKey})
	if err != nil {
		return nil, err
	}
	var stored storedHead
	if texts[0] == nil || json.Unmarshal(texts[0], &stored) != nil || stored.Path != path || stored.Log == "" {
		return nil, nil
	}
	return &stored.Head, nil
}

// keepHead stores the head of the audit log; with wait it returns when that is
// done, or is known to fail.
func (s *store) keepHead(path string, h audit.Head, wait bool) {
	if s == nil {
		return
	}
	text, _ := json.Marshal(storedHead{path, h}) // texts and numbers only
	s.Want(func(set func(string, []byte)) { set(headKey, text) })
	if wait {
		_ = s.Flush() // reported as every failure of the storage is
	}
}

// remedyFor says what to do where the audit file cannot be opened. A folder that
// is missing is not made: it may be a volume that is not mounted, and the
// evidence would then lie where nothing keeps it.
func remedyFor(path string, err error) string {
	folder := filepath.Dir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the folder %s does not exist: make it (mkdir -m 700 %s) or mount it, owned by the collector's user, or name another", folder, folder)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("%s cannot be written: the collector's user must own the folder %s and the file, or name another", path, folder)
	default:
		return fmt.Sprintf("%s cannot be opened", path)
	}
}

// observeAudit counts what becomes of audit records.
func (e *webhookExporter) observeAudit(l *audit.Log) error {
	observe := func(of func(audit.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(of(l.Stats()))
			return nil
		}
	}
	return errors.Join(
		e.telemetry.RegisterExporterWebhookAuditWrittenRecordsCallback(observe(func(s audit.Stats) int64 { return s.Written })),
		e.telemetry.RegisterExporterWebhookAuditLostRecordsCallback(observe(func(s audit.Stats) int64 { return s.Lost })),
		e.telemetry.RegisterExporterWebhookAuditFailuresCallback(observe(func(s audit.Stats) int64 { return s.Failures })),
		e.telemetry.RegisterExporterWebhookAuditBufferedRecordsCallback(observe(func(s audit.Stats) int64 { return s.Buffered })),
		e.telemetry.RegisterExporterWebhookAuditSetAsideCallback(observe(func(s audit.Stats) int64 { return s.SetAside })),
	)
}

// closeAudit writes what is buffered and the last checkpoint.
func (e *webhookExporter) closeAudit() error {
	if e.trail.log == nil {
		return nil
	}
	if err := e.trail.log.Close(); err != nil {
		return fmt.Errorf("close the audit file: %w", err)
	}
	return nil
}
