// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Files are the paths of a run.
type Files struct {
	Bin    string // folder of otelcol-gpu and gpuctl
	Config string // folder of agent.yaml and gateway.yaml
	Dir    string // of what collectors write
}

// Prepare makes the folder of the audit log and the keys that it needs, unless an
// earlier try of the run has made them.
func (f Files) Prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(f.Audit()), 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(f.checkpointKey()); err == nil {
		return nil
	}
	if out, err := f.gpuctl(ctx, "audit", "keygen", "--name", "test/chaos", "--checkpoint", f.checkpointKey(), "--fingerprint", f.fingerprintKey()); err != nil {
		return fmt.Errorf("gpuctl audit keygen: %w: %s", err, out)
	}
	return nil
}

// Kubeconfig is the file for clients of the API server.
func (f Files) Kubeconfig() string { return filepath.Join(f.Dir, "kubeconfig") }

// Audit is the webhooks' audit log.
func (f Files) Audit() string { return filepath.Join(f.Dir, "audit", "audit.jsonl") }

// VerifyAudit lets gpuctl check the audit log. The error has its output.
func (f Files) VerifyAudit(ctx context.Context) error {
	if out, err := f.gpuctl(ctx, "audit", "verify", "--public-key-file", f.checkpointKey()+".pub", f.Audit()); err != nil {
		return fmt.Errorf("gpuctl audit verify: %w: %s", err, out)
	}
	return nil
}

func (f Files) checkpointKey() string     { return filepath.Join(f.Dir, "checkpoint.key") }
func (f Files) fingerprintKey() string    { return filepath.Join(f.Dir, "fingerprint.key") }
func (f Files) config(name string) string { return filepath.Join(f.Config, name) }
func (f Files) binary(name string) string { return filepath.Join(f.Bin, name) }

func (f Files) gpuctl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, f.binary("gpuctl"), args...).CombinedOutput()
	return string(out), err
}
