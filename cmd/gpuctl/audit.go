// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
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

func newAuditVerify() *command {
	var keyFiles, anchors []string
	var output string
	return &command{
		name:  "verify",
		args:  "FILE… [--public-key-file FILE] [--anchor COUNT:HEAD] [-o text|json]",
		short: "checks an audit log and reports where it was changed",
		long: "FILE is the file that is being written: the full ones beside it are checked with it.\n" +
			"Full files can also be named themselves. Without a public key only the chain is\n" +
			"checked, which may have been rewritten as a whole. Files that the collector set\n" +
			"aside (…set-aside-….jsonl) are checked like any other.\n\n" +
			"Exit code: 0 the log is clean, 1 it is not, 2 it could not be checked.",
		flags: func(f *pflag.FlagSet) {
			f.StringArrayVar(&keyFiles, "public-key-file", nil, "file with public keys of the checkpoints, one a line; may be repeated")
			f.StringArrayVar(&anchors, "anchor", nil, "count and head of a checkpoint from the Collector's log, as in 1234:9f86…; may be repeated")
			f.StringVarP(&output, "output", "o", "text", "text or json")
		},
		run: func(_ context.Context, s streams, args []string) error {
			if len(args) == 0 {
				return errors.New("name the audit file")
			}
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s is neither text nor json", output)
			}
			options, err := verifyOptions(keyFiles, anchors)
			if err != nil {
				return err
			}
			if isTerminal(s.err) {
				options.Progress = func(lines uint64) { fmt.Fprintf(s.err, "\r\x1b[Kchecked: %d lines", lines) }
			}
			report, err := verifyFiles(options, args)
			if options.Progress != nil {
				fmt.Fprint(s.err, "\r\x1b[K")
			}
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(s.out)
				enc.SetIndent("", "  ")
				err = enc.Encode(report)
			} else {
				_, err = io.WriteString(s.out, reportText(report))
			}
			if err != nil {
				return err
			}
			if !report.Clean() {
				return errFailed
			}
			return nil
		},
	}
}

var anchorForm = regexp.MustCompile(`^([1-9][0-9]*):([0-9a-f]{64})$`)

func verifyOptions(keyFiles, anchors []string) (verify.Options, error) {
	var o verify.Options
	var keys strings.Builder
	for _, path := range keyFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			return o, err
		}
		if _, err := checkpoint.ParsePublicKeys(string(text)); err != nil {
			return o, fmt.Errorf("%s: %w", path, err)
		}
		keys.Write(append(text, '\n'))
	}
	var err error
	if len(keyFiles) > 0 {
		if o.PublicKeys, err = checkpoint.ParsePublicKeys(keys.String()); err != nil {
			return o, err
		}
	}
	for _, a := range anchors {
		parts := anchorForm.FindStringSubmatch(a)
		if parts == nil {
			return o, fmt.Errorf("--anchor %q is not COUNT:HEAD, as in 1234:9f86… with 64 digits", a)
		}
		count, err := strconv.ParseUint(parts[1], 10, 64)
		if err != nil {
			return o, err
		}
		o.Anchors = append(o.Anchors, verify.Anchor{Count: count, Head: parts[2]})
	}
	return o, nil
}

var errRotating = errors.New("the log is rotated faster than it can be read: check a copy of its files, or raise max_bytes")

// verifyTries is how often a log that was rotated meanwhile is checked again.
const verifyTries = 5

// verifyFiles checks the files that args name. A log that its writer rotates between
// the listing of its files and their opening looks broken without being so: what
// is not clean is checked again if the files are others by then. A log that is
// rotated each time is no broken one: it is an error.
func verifyFiles(options verify.Options, args []string) (*verify.Report, error) {
	for try := 1; ; try++ {
		before, err := list(args)
		if err != nil {
			return nil, err
		}
		report, err := verify.Files(options, before.paths...)
		if err == nil && report.Clean() {
			return report, nil
		}
		if after, listed := list(args); listed != nil || before.same(after) {
			return report, err
		}
		if try == verifyTries {
			return nil, errRotating
		}
	}
}

// listing is which files a log consists of.
type listing struct {
	paths []string
	infos []os.FileInfo
}

func list(args []string) (listing, error) {
	paths, err := expand(args)
	if err != nil {
		return listing{}, err
	}
	l := listing{paths: paths}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			info, err = nil, nil // gone meanwhile
		}
		if err != nil {
			return listing{}, err
		}
		l.infos = append(l.infos, info)
	}
	return l, nil
}

func (l listing) same(other listing) bool {
	return slices.Equal(l.paths, other.paths) && slices.EqualFunc(l.infos, other.infos, func(a, b os.FileInfo) bool {
		return a == nil && b == nil || a != nil && b != nil && os.SameFile(a, b)
	})
}

// expand adds to the file that is being written the full ones beside it.
func expand(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		arg = filepath.Clean(arg)
		all, err := logfile.Files(arg)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: %w", arg, os.ErrNotExist)
		}
		files = append(files, all...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// reportText is the report for people: facts first, the verdict last.
func reportText(r *verify.Report) string {
	var b strings.Builder
	name := func(file string) string { return safetext.Strip(file, 1024) }
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "note: %s:%d: line %d of the log: %s: %s\n", name(f.File), f.Line, f.Seq, f.Kind, f.Detail)
	}
	if f := r.Break; f != nil {
		fmt.Fprintf(&b, "BROKEN: %s:%d: line %d of the log: %s: %s\n", name(f.File), f.Line, f.Seq, f.Kind, f.Detail)
		fmt.Fprintf(&b, "Up to there: ")
	} else {
		b.WriteString("clean: ")
	}
	fmt.Fprintf(&b, "%d records in lines %d to %d, %d files; %d checkpoints", r.Records, r.FirstSeq, r.LastSeq, len(r.Files), r.Checkpoints)
	if c := r.LastCheckpoint; c != nil {
		fmt.Fprintf(&b, ", the last at line %d, %s, by %s (%s)", c.Seq, c.Time.Format(time.RFC3339), c.Origin, c.KeyID)
	}
	b.WriteString(".\n")
	if r.LostRecords > 0 {
		fmt.Fprintf(&b, "%d records are missing because the disk failed.\n", r.LostRecords)
	}
	if !r.SignaturesChecked {
		b.WriteString("Signatures were not checked: no public key was given. A chain that was rewritten as a whole looks like this too.\n")
	} else if r.Uncovered > 0 {
		fmt.Fprintf(&b, "%d lines come after the last checkpoint: for them only the unsigned chain speaks.\n", r.Uncovered)
	}
	if r.Clean() && r.Closed {
		b.WriteString("The log ends in good order: its last writer closed it. One that was cut at an earlier such end looks the same; an anchor shows that.\n")
	}
	if r.Head != "" {
		fmt.Fprintf(&b, "Head: %d:%s\n", r.LastSeq, r.Head)
	}
	return b.String()
}
