// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trail // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
)

const (
	minAuditBytes         = 64 << 10
	minAuditFiles         = 2
	maxAuditFiles         = 100_000
	minCheckpointInterval = time.Second

	syncCheckpoint = "checkpoint"
	syncRecord     = "record"

	maxKeyFile = 64 << 10 // what is longer is no key
)

// Config configures where audit records are kept beside the Collector's log.
type Config struct {
	// Path of the audit file; empty is no file. Its folder must exist. Every
	// exporter needs a file of its own.
	Path string `mapstructure:"path"`
	// FingerprintKeyFile holds the key of URL fingerprints: 64 hexadecimal
	// digits or more. Without it records have none.
	FingerprintKeyFile string `mapstructure:"fingerprint_key_file"`
	// CheckpointKeyFile holds the private key that signs checkpoints, as
	// gpuctl audit keygen makes it. Without it there are no checkpoints.
	CheckpointKeyFile string `mapstructure:"checkpoint_key_file"`
	// PreviousKeysFile holds public keys of earlier checkpoint keys, one a line:
	// a log with a last checkpoint by one of them is continued. A log that none
	// of the keys has signed is set aside at the start.
	PreviousKeysFile string `mapstructure:"previous_keys_file"`
	// CheckpointInterval is how often a checkpoint is written when something
	// was written; 0 is 1m.
	CheckpointInterval time.Duration `mapstructure:"checkpoint_interval"`
	// MaxBytes is the size of a full file; 0 is 100 MiB.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// MaxFiles to keep, the one that is being written included; 0 is 10.
	MaxFiles int `mapstructure:"max_files"`
	// Sync is what outlives a power cut: every checkpoint (default) or every
	// record.
	Sync string `mapstructure:"sync"`
	// Store is the id of an extension that also gets the records.
	Store *component.ID `mapstructure:"store"`
}

// Validate checks what can be known without touching a file.
func (c *Config) Validate() error {
	var errs []error
	if c.Path == "" {
		for key, set := range map[string]bool{
			"checkpoint_key_file": c.CheckpointKeyFile != "",
			"checkpoint_interval": c.CheckpointInterval != 0,
			"max_bytes":           c.MaxBytes != 0,
			"max_files":           c.MaxFiles != 0,
			"sync":                c.Sync != "",
		} {
			if set {
				errs = append(errs, fmt.Errorf("audit::%s: means nothing without an audit file; set audit::path, or leave it out", key))
			}
		}
	}
	if c.CheckpointInterval != 0 && c.CheckpointInterval < minCheckpointInterval {
		errs = append(errs, fmt.Errorf("audit::checkpoint_interval: %v is shorter than %v; leave it out for %v", c.CheckpointInterval, minCheckpointInterval, audit.DefaultCheckpointInterval))
	}
	if c.MaxBytes != 0 && c.MaxBytes < minAuditBytes {
		errs = append(errs, fmt.Errorf("audit::max_bytes: %d is less than %d; leave it out for %d", c.MaxBytes, minAuditBytes, audit.DefaultMaxBytes))
	}
	if c.MaxFiles != 0 && (c.MaxFiles < minAuditFiles || c.MaxFiles > maxAuditFiles) {
		errs = append(errs, fmt.Errorf("audit::max_files: %d is not within %d and %d; leave it out for %d", c.MaxFiles, minAuditFiles, maxAuditFiles, audit.DefaultMaxFiles))
	}
	if c.PreviousKeysFile != "" && c.CheckpointKeyFile == "" {
		errs = append(errs, errors.New("audit::previous_keys_file: means nothing without a key of now; set audit::checkpoint_key_file, or leave it out"))
	}
	switch c.Sync {
	case "", syncCheckpoint, syncRecord:
	default:
		errs = append(errs, fmt.Errorf("audit::sync: %q is not supported; use %s or %s", c.Sync, syncCheckpoint, syncRecord))
	}
	return errors.Join(errs...)
}

// fingerprintKey reads the key of URL fingerprints; nil where there is none.
func (c *Config) fingerprintKey() ([]byte, error) {
	if c.FingerprintKeyFile == "" {
		return nil, nil
	}
	text, err := readKeyFile(c.FingerprintKeyFile)
	if err != nil {
		return nil, fmt.Errorf("audit::fingerprint_key_file: %w", err)
	}
	key, err := audit.ParseFingerprintKey(text)
	if err != nil {
		return nil, fmt.Errorf("audit::fingerprint_key_file: %s %w", c.FingerprintKeyFile, err)
	}
	return key, nil
}

// checkpointKey reads the key that signs checkpoints; nil where there is none.
func (c *Config) checkpointKey() (*checkpoint.Key, error) {
	if c.CheckpointKeyFile == "" {
		return nil, nil
	}
	text, err := readKeyFile(c.CheckpointKeyFile)
	if err != nil {
		return nil, fmt.Errorf("audit::checkpoint_key_file: %w", err)
	}
	key, err := checkpoint.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("audit::checkpoint_key_file: %s %w", c.CheckpointKeyFile, err)
	}
	return key, nil
}

// previousKeys reads the public keys of earlier checkpoint keys; nil where there
// are none.
func (c *Config) previousKeys() (*checkpoint.PublicKeys, error) {
	if c.PreviousKeysFile == "" {
		return nil, nil
	}
	text, err := readKeyFile(c.PreviousKeysFile)
	if err != nil {
		return nil, fmt.Errorf("audit::previous_keys_file: %w", err)
	}
	keys, err := checkpoint.ParsePublicKeys(text)
	if err != nil {
		return nil, fmt.Errorf("audit::previous_keys_file: %s %w", c.PreviousKeysFile, err)
	}
	return keys, nil
}

// exposed are the key files that every user of the machine can read.
func (c *Config) exposed() map[string]string {
	files := map[string]string{}
	if runtime.GOOS == "windows" {
		return files // has no such bits
	}
	for key, path := range map[string]string{"audit::checkpoint_key_file": c.CheckpointKeyFile, "audit::fingerprint_key_file": c.FingerprintKeyFile} {
		if info, err := os.Stat(path); path != "" && err == nil && info.Mode().Perm()&0o007 != 0 {
			files[key] = path
		}
	}
	return files
}

func readKeyFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return "", fmt.Errorf("%s is no key file: not a regular file, or longer than %d bytes", path, maxKeyFile)
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}
