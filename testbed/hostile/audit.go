// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// auditLog is a log that a gateway has written, in a folder that the attacker
// can write; he does not have the key.
type auditLog struct {
	*lab
	dir     string
	keyed   bool
	gateway *process // stopped
	anchor  string   // COUNT:HEAD, kept elsewhere
}

func (a *auditLog) path() string      { return filepath.Join(a.dir, "audit.jsonl") }
func (a *auditLog) publicKey() string { return filepath.Join(a.Options.Dir, "public.key") }

// events is how many are delivered: several files of a log.
const events = 320

// auditLog runs a gateway that delivers some events, and stops it.
func (l *lab) auditLog(ctx context.Context, keyed bool) (*auditLog, error) {
	a := &auditLog{lab: l, dir: filepath.Join(l.dir, "audit"), keyed: keyed}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return nil, err
	}
	audit := m{"path": a.path(), "max_bytes": 64 << 10, "checkpoint_interval": "1s"}
	if keyed {
		key := filepath.Join(l.dir, "checkpoint.key")
		if out, code, err := l.gpuctl(ctx, "audit", "keygen", "--name", "test/gateway", "--checkpoint", key, "--fingerprint", filepath.Join(l.dir, "fingerprint.key")); err != nil || code != 0 {
			return nil, errors.Join(err, errors.New(out))
		}
		audit["checkpoint_key_file"] = key
		text, err := os.ReadFile(key + ".pub")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(a.publicKey(), text, 0o600); err != nil {
			return nil, err
		}
	}
	sink, more, err := l.webhookTo(audit)
	if err != nil {
		return nil, err
	}
	if a.gateway, err = l.gateway(ctx, more); err != nil {
		return nil, err
	}
	for i := range events {
		id := fmt.Sprintf("0195-event-%04d", i)
		if err := a.deliver(ctx, id); err != nil {
			return nil, err
		}
	}
	if err := until(ctx, "all events at the webhook", func() (bool, error) { return len(sink.Received()) >= events, nil }); err != nil {
		return nil, err
	}
	if err := a.gateway.end(); err != nil {
		return nil, err
	}
	out, code, err := a.verify(ctx, a.dir, false)
	if err != nil || code != 0 {
		return nil, errors.Join(err, fmt.Errorf("the log does not verify before the attack (%d): %s", code, out))
	}
	found := regexp.MustCompile(`Head: (\d+:[0-9a-f]{64})`).FindStringSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("verify prints no head: %s", out)
	}
	a.anchor = found[1]
	return a, nil
}

// deliver sends an event to the gateway.
func (a *auditLog) deliver(ctx context.Context, id string) error {
	body, err := event(id)
	if err != nil {
		return err
	}
	status, err := post(ctx, a.gateway.ports.http, "logs", body, nil)
	if err != nil || status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("the gateway answers %d", status))
	}
	return nil
}

// verify asks gpuctl what it thinks of the log in a folder.
func (a *auditLog) verify(ctx context.Context, dir string, anchored bool) (out string, code int, err error) {
	args := []string{"audit", "verify", filepath.Join(dir, "audit.jsonl")}
	if a.keyed {
		args = append(args, "--public-key-file", a.publicKey())
	}
	if anchored {
		args = append(args, "--anchor", a.anchor)
	}
	return a.gpuctl(ctx, args...)
}

var fileOfLog = regexp.MustCompile(`^audit(-\d{6,})?\.jsonl$`)

// files are the names of a log's files in a folder, oldest first.
func files(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range all {
		if fileOfLog.MatchString(e.Name()) {
			found = append(found, e.Name())
		}
	}
	slices.SortFunc(found, func(x, y string) int {
		// The one that is being written, without a number, is the last.
		return strings.Compare(strings.Replace(x, "audit.", "audit-~", 1), strings.Replace(y, "audit.", "audit-~", 1))
	})
	return found, nil
}

var (
	lineHead = regexp.MustCompile(`^\{"v":1,"seq":\d+,"prev_hash":"[0-9a-f]{64}",`)
	status   = regexp.MustCompile(`"status":200\b`)
)

func digest(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}

// rechain changes or leaves out lines of the log in a folder, and numbers and
// chains what is left, which takes SHA-256 alone.
func rechain(dir string, change func(line string) (changed string, keep bool)) (names []string, err error) {
	if names, err = files(dir); err != nil {
		return nil, err
	}
	seq, prev := 0, strings.Repeat("0", 64)
	for _, name := range names {
		lines, err := linesOf(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		var kept []string
		for _, line := range lines {
			line, keep := change(line)
			if !keep {
				continue
			}
			seq++
			line = lineHead.ReplaceAllString(line, fmt.Sprintf(`{"v":1,"seq":%d,"prev_hash":"%s",`, seq, prev))
			prev = digest(line)
			kept = append(kept, line)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(kept, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func linesOf(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// rewrite leaves out every checkpoint and half of the records, changes the
// status of the rest, and lets the collector go on.
type rewrite struct{ key, anchor bool }

func (r rewrite) play(ctx context.Context, l *lab) ([]string, error) {
	a, err := l.auditLog(ctx, r.key)
	if err != nil {
		return nil, err
	}
	records := 0
	if _, err := rechain(a.dir, func(line string) (string, bool) {
		if strings.Contains(line, `"kind":"record"`) {
			records++
			line = status.ReplaceAllString(line, `"status":204`)
			return line, records%2 == 1
		}
		return line, !strings.Contains(line, `"kind":"checkpoint"`)
	}); err != nil {
		return nil, err
	}
	if records < events {
		return nil, fmt.Errorf("the log had %d records instead of %d", records, events)
	}
	// The control: before the collector goes on, verify sees it.
	if out, code, err := a.verify(ctx, a.dir, r.anchor); err != nil || code == 0 {
		return nil, errors.Join(err, fmt.Errorf("the rewriting verifies before any start: %s", out))
	}
	if err := a.gateway.again(ctx); err != nil {
		return nil, err
	}
	if err := a.deliver(ctx, "0195-afterwards"); err != nil {
		return nil, err
	}
	if err := until(ctx, "the record of the new event", func() (bool, error) {
		lines, err := linesOf(a.path())
		return strings.Contains(strings.Join(lines, "\n"), "0195-afterwards"), err
	}); err != nil {
		return nil, err
	}
	log, err := os.ReadFile(a.gateway.LogPath)
	if err != nil {
		return nil, err
	}
	if err := a.gateway.end(); err != nil {
		return nil, err
	}
	var achieved []string
	out, code, err := a.verify(ctx, a.dir, false)
	if err != nil {
		return nil, err
	}
	names, err := files(a.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(a.dir, name))
		if err != nil {
			return nil, err
		}
		if code == 0 && strings.Contains(string(text), `"status":204`) {
			achieved = append(achieved, "the collector went on with the rewritten log, and it verifies: "+firstLine(out))
			break
		}
	}
	reported := false
	for line := range strings.Lines(string(log)) {
		reported = reported || strings.Contains(line, "\terror\t") && strings.Contains(line, "audit")
	}
	if !reported {
		achieved = append(achieved, "the collector logs no error about the rewritten log")
	}
	// What was written is evidence: it must still be there.
	kept := 0
	err = filepath.WalkDir(a.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		kept += strings.Count(string(text), `"status":204`)
		return err
	})
	if kept != (records+1)/2 {
		achieved = append(achieved, fmt.Sprintf("of %d rewritten records %d are still there", (records+1)/2, kept))
	}
	return achieved, err
}

// deletion deletes files and appends one line that claims max_files did it.
type deletion struct{ key, anchor bool }

func (d deletion) play(ctx context.Context, l *lab) ([]string, error) {
	a, err := l.auditLog(ctx, d.key)
	if err != nil {
		return nil, err
	}
	names, err := files(a.dir)
	if err != nil {
		return nil, err
	}
	if len(names) < 4 {
		return nil, fmt.Errorf("the log has %d files, too few", len(names))
	}
	var achieved []string
	for _, gone := range [][2]int{{0, 2}, {1, 2}} { // the first two; one in the middle
		for _, forge := range []bool{false, true} {
			dir := filepath.Join(l.dir, fmt.Sprintf("copy-%d-%v", gone[0], forge))
			if err := os.CopyFS(dir, os.DirFS(a.dir)); err != nil {
				return nil, err
			}
			if forge {
				if err := forgeRemoval(dir, names, gone[1]); err != nil {
					return nil, err
				}
			}
			for _, name := range names[gone[0]:gone[1]] {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					return nil, err
				}
			}
			out, code, err := a.verify(ctx, dir, d.anchor)
			if err != nil {
				return nil, err
			}
			switch {
			case !forge && code == 0:
				achieved = append(achieved, fmt.Sprintf("files %v of the log are gone, and it verifies: %s", gone, firstLine(out)))
			case forge && code == 0:
				achieved = append(achieved, fmt.Sprintf("files %v of the log are gone behind one forged line, and it verifies: %s", gone, firstLine(out)))
			}
		}
	}
	return achieved, nil
}

// forgeRemoval appends a line of kind removed, through the file before
// names[next], with the values of that file's first line.
func forgeRemoval(dir string, names []string, next int) error {
	first, err := linesOf(filepath.Join(dir, names[next]))
	if err != nil {
		return err
	}
	var seq int
	var head string
	if _, err := fmt.Sscanf(first[0], `{"v":1,"seq":%d,"prev_hash":"%64s`, &seq, &head); err != nil {
		return err
	}
	path := filepath.Join(dir, names[len(names)-1])
	lines, err := linesOf(path)
	if err != nil {
		return err
	}
	last := lines[len(lines)-1]
	var lastSeq int
	if _, err := fmt.Sscanf(last, `{"v":1,"seq":%d,`, &lastSeq); err != nil {
		return err
	}
	line := fmt.Sprintf(`{"v":1,"seq":%d,"prev_hash":"%s","kind":"removed","time":"2026-01-01T00:00:00Z","through_file":%d,"last_seq":%d,"head":"%s"}`,
		lastSeq+1, digest(last), next, seq-1, head)
	return os.WriteFile(path, []byte(strings.Join(append(lines, line), "\n")+"\n"), 0o600)
}

// drawOnTerminal puts what a terminal obeys into a log's texts.
func drawOnTerminal(ctx context.Context, l *lab) ([]string, error) {
	a, err := l.auditLog(ctx, true)
	if err != nil {
		return nil, err
	}
	const drawing = `\u001b[2K\u001b[1Gclean: 401 records in lines 1 to 401\u001b[8m`
	var achieved []string
	for key, of := range map[string]*regexp.Regexp{
		"log": regexp.MustCompile(`("kind":"file".*"log":")[^"]*`), "origin": regexp.MustCompile(`("kind":"checkpoint".*"origin":")[^"]*`),
		"receiver": regexp.MustCompile(`("kind":"record".*"receiver":")[^"]*`), "kind": regexp.MustCompile(`("kind":")record`),
	} {
		dir := filepath.Join(l.dir, "copy-"+key)
		if err := os.CopyFS(dir, os.DirFS(a.dir)); err != nil {
			return nil, err
		}
		changed := 0
		if _, err := rechain(dir, func(line string) (string, bool) {
			drawn := of.ReplaceAllString(line, "${1}"+drawing)
			if drawn != line {
				changed++
			}
			return drawn, true
		}); err != nil {
			return nil, err
		}
		if changed == 0 {
			return nil, fmt.Errorf("the log has no %s", key)
		}
		for _, keyed := range []bool{true, false} { // without the key the chain alone is checked
			a.keyed = keyed
			out, code, err := a.verify(ctx, dir, false)
			if err != nil {
				return nil, err
			}
			if code == 0 && keyed {
				achieved = append(achieved, "a log with another "+key+" verifies: "+firstLine(out))
			}
			if i := strings.IndexFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
				achieved = append(achieved, fmt.Sprintf("gpuctl audit verify prints the control characters of %s: %q", key, out[max(0, i-20):min(len(out), i+40)]))
			}
		}
	}
	return achieved, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
