// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trail // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/unsampled"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
)

// Log is the file of audit records.
type Log interface {
	// Append writes a record. It returns the record's number in the file, and
	// whether it is in the file by now.
	Append(*audit.Record) (seq uint64, written bool)
	// Find returns when the deliveries of the records with these ids are tried
	// again, for the records that are in the file.
	Find(ids []string) map[string]time.Time
	Stats() audit.Stats
	SetAside() error
	Close() error
}

// Trail is where audit records go: first the audit file, then the
// Collector's log and the store, both with the sequence number of the file.
type Trail struct {
	courtesy       logSink
	logger         *zap.Logger
	log            Log          // nil without a file
	keeper         audit.Keeper // nil without a store
	fingerprintKey []byte       // nil without a key
}

var _ audit.Sink = (*Trail)(nil)

// New makes a trail into the Collector's log, and into log until open
// opens the audit file; log may be nil.
func New(logger *zap.Logger, log Log) *Trail {
	return &Trail{courtesy: logSink{unsampled.Logger(logger)}, logger: logger, log: log}
}

// headStore keeps the head of the audit log where a writer of the log's folder
// need not be able to write.
type headStore interface {
	// KeptHead returns the head that was stored last; nil if none is known.
	KeptHead(ctx context.Context, path string) (*checkpoint.Head, error)
	// KeepHead stores the head. With wait it returns when that is done, or is
	// known to fail.
	KeepHead(path string, h checkpoint.Head, wait bool)
}

// Open completes the trail with the keys, the store and the audit file. It comes
// before the first delivery, and close after the last. Status is called while the
// file cannot be written, and with nil when it can be again.
func (t *Trail) Open(ctx context.Context, host component.Host, c *Config, heads headStore, status func(error)) error {
	var err error
	if t.fingerprintKey, err = c.fingerprintKey(); err != nil {
		return err
	}
	if c.Store != nil {
		ext, ok := host.GetExtensions()[*c.Store]
		if !ok {
			return fmt.Errorf("audit::store: there is no extension %s: define it and name it in service::extensions", c.Store)
		}
		if t.keeper, ok = ext.(audit.Keeper); !ok {
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
		t.logger.Warn("a key of the audit log can be read by every user of this machine, who can sign as the collector does: remove the permissions of others (chmod o=)",
			zap.String("key", name), zap.String("file", path))
	}
	kept, err := heads.KeptHead(ctx, c.Path)
	if err != nil {
		return err
	}
	log, err := audit.Open(audit.Options{
		Path:               c.Path,
		CheckpointKey:      key,
		PreviousKeys:       previous,
		Kept:               kept,
		Keep:               func(h checkpoint.Head, wait bool) { heads.KeepHead(c.Path, h, wait) },
		CheckpointInterval: c.CheckpointInterval,
		MaxBytes:           c.MaxBytes,
		MaxFiles:           c.MaxFiles,
		SyncRecords:        c.Sync == syncRecord,
		Logger:             unsampled.Logger(t.logger),
		OnStatus:           status,
	})
	if err != nil {
		return fmt.Errorf("audit::path: %s: %w", remedyFor(c.Path, err), err)
	}
	t.log = log
	return nil
}

// SetAside returns why the audit log that was found at the start was set aside;
// nil if it was not.
func (t *Trail) SetAside() error {
	if t.log == nil {
		return nil
	}
	return t.log.SetAside()
}

// Write returns once the record is in the audit file or, if the file cannot be
// written, in its buffer.
func (t *Trail) Write(r *audit.Record) {
	var seq uint64
	if t.log != nil {
		seq, _ = t.log.Append(r)
	}
	t.courtesy.write(seq, r)
	if t.keeper != nil {
		t.keeper.KeepAudit(seq, r)
	}
}

// Find returns when the deliveries of these attempts are tried again, for the
// attempts that have a record in the audit file. Without a file there are none.
func (t *Trail) Find(ids []string) map[string]time.Time {
	if t.log == nil {
		return nil
	}
	return t.log.Find(ids)
}

// Fingerprint is the fingerprint that records show of the whole URL; empty without
// a key.
func (t *Trail) Fingerprint(to *egress.Address) string {
	if t.fingerprintKey == nil {
		return ""
	}
	whole := *to.URL
	whole.User = to.User
	return audit.Fingerprint(t.fingerprintKey, whole.String())
}

// Stats returns what became of the records; false without an audit file.
func (t *Trail) Stats() (audit.Stats, bool) {
	if t.log == nil {
		return audit.Stats{}, false
	}
	return t.log.Stats(), true
}

// Close writes what is buffered and the last checkpoint.
func (t *Trail) Close() error {
	if t.log == nil {
		return nil
	}
	if err := t.log.Close(); err != nil {
		return fmt.Errorf("close the audit file: %w", err)
	}
	return nil
}

// remedyFor returns what to do if the audit file cannot be opened. A folder that
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
