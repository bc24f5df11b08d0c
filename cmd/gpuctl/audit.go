// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
)

func newAudit() *command {
	return &command{
		name:  "audit",
		short: "the log that proves what was sent to webhooks",
		subcommands: []*command{
			newAuditVerify(),
			newAuditKeygen(),
			newAuditFingerprint(),
		},
	}
}

func newAuditKeygen() *command {
	var name, checkpointFile, fingerprintFile string
	return &command{
		name:  "keygen",
		args:  "[--name NAME --checkpoint FILE] [--fingerprint FILE]",
		short: "makes the keys of the audit log",
		long: "Writes new keys into files that only their owner can read; existing files are not\n" +
			"replaced. The public key that goes with the checkpoint key is written beside it, to\n" +
			"FILE.pub: give that to those who verify the log.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&name, "name", "", "name of the checkpoint key, as in prod/gateway: the origin of all checkpoints")
			f.StringVar(&checkpointFile, "checkpoint", "", "file for the key that signs checkpoints (checkpoint_key_file)")
			f.StringVar(&fingerprintFile, "fingerprint", "", "file for the key of URL fingerprints (fingerprint_key_file)")
		},
		run: func(_ context.Context, s streams, args []string) error {
			if len(args) > 0 || checkpointFile == "" && fingerprintFile == "" {
				return errors.New("name a file with --checkpoint, --fingerprint or both")
			}
			if checkpointFile != "" {
				if name == "" {
					return errors.New("the checkpoint key needs a --name, as in prod/gateway")
				}
				private, public, err := checkpoint.GenerateKey(name)
				if err != nil {
					return err
				}
				if err := writeNew(checkpointFile, private, 0o600); err != nil {
					return err
				}
				if err := writeNew(checkpointFile+".pub", public, 0o644); err != nil {
					return err
				}
				fmt.Fprintf(s.out, "checkpoint key: %s\npublic key: %s.pub\n%s\n", checkpointFile, checkpointFile, public)
			}
			if fingerprintFile != "" {
				key, err := audit.GenerateFingerprintKey()
				if err != nil {
					return err
				}
				if err := writeNew(fingerprintFile, key, 0o600); err != nil {
					return err
				}
				fmt.Fprintf(s.out, "fingerprint key: %s\n", fingerprintFile)
			}
			return nil
		},
	}
}

// writeNew writes a line to a file that must not exist yet.
func writeNew(path, line string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func newAuditFingerprint() *command {
	var keyFile string
	return &command{
		name:  "fingerprint",
		args:  "--key-file FILE < URL",
		short: "prints the fingerprint that records about a URL have",
		long:  "Reads the URL from standard input, so that no shell or process list keeps it.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&keyFile, "key-file", "", "file with the key (fingerprint_key_file)")
		},
		run: func(_ context.Context, s streams, args []string) error {
			if len(args) > 0 || keyFile == "" {
				return errors.New("name the key with --key-file and give the URL on standard input")
			}
			text, err := os.ReadFile(keyFile)
			if err != nil {
				return err
			}
			key, err := audit.ParseFingerprintKey(string(text))
			if err != nil {
				return fmt.Errorf("%s %w", keyFile, err)
			}
			url, err := io.ReadAll(io.LimitReader(s.in, 64<<10))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.out, audit.Fingerprint(key, strings.TrimSpace(string(url))))
			return err
		},
	}
}
