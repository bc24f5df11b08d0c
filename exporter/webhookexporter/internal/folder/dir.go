// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/folder"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
)

const (
	maxReceiverFile  = 64 << 10 // bytes
	maxReceiverFiles = 256
	maxFolderEntries = 10_000
	// readTries is how often a file that changes while it is read is read again.
	readTries = 3
	// passingScans is how many scans in a row a fault that should pass may last
	// before it is reported.
	passingScans = 10
)

// Dir makes receivers of the files in a folder. It is used by one
// goroutine at a time.
//
// A name that gave a receiver keeps it for as long as something of that name is
// in the folder: a file that is half-written or broken changes nothing, and in
// particular never what a receiver is signed with. Only when the name is gone
// the receiver goes.
type Dir struct {
	path  string
	taken map[string]bool // names of the receivers in the configuration
	guard *egress.Guard
	// defaults are the values that files leave out.
	defaults endpoint.Defaults
	// settle is how old a file's last change has to be; 0 takes every file.
	settle time.Duration
	now    func() time.Time
	known  map[string]*receiverFile
	// duringRead runs in the middle of reading a file, in tests.
	duringRead func(name string)
}

// receiverFile is what is known of one name in the folder.
type receiverFile struct {
	target  *endpoint.Endpoint // the last one that could be used; nil if none ever could
	digest  [sha256.Size]byte
	reason  skipReason // why the file is not used now
	passing int        // scans in a row with a fault that should pass
}

// finding is something to report about a file: why it is not used, or, without a
// reason, what is odd about it.
type finding struct {
	Name   string
	Reason skipReason
	Text   string
	kept   bool // the receiver that it gave earlier stays
}

// scan is what the folder holds now.
type scan struct {
	Targets  []*endpoint.Endpoint // sorted by name
	Findings []finding            // new ones only
	again    bool                 // a file was changing: look again soon
}

func NewDir(path string, taken map[string]bool, g *egress.Guard, defaults endpoint.Defaults) *Dir {
	return &Dir{path: path, taken: taken, guard: g, defaults: defaults, now: time.Now, known: map[string]*receiverFile{}}
}

// Scan reads the folder. An error means that it could not be read: nothing has
// changed then.
func (d *Dir) Scan() (scan, error) {
	// Opened each time: the folder may be another one by now. What is
	// opened through root cannot lie outside, wherever symbolic links lead.
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return scan{}, err
	}
	defer root.Close()
	names, err := d.list(root)
	if err != nil {
		return scan{}, err
	}
	var s scan
	used := 0
	before := d.known
	d.known = make(map[string]*receiverFile, len(names))
	for _, name := range names {
		f := before[name]
		if f == nil {
			f = &receiverFile{}
		}
		d.known[name] = f
		if used >= maxReceiverFiles {
			f.target = nil
			s.find(f, name, f.digest, skip(skipTooMany, fmt.Sprintf("the folder gives %d receivers at most", maxReceiverFiles)))
			continue
		}
		d.look(root, name, f, &s)
		if f.target != nil {
			used++
			s.Targets = append(s.Targets, f.target)
		}
	}
	slices.SortFunc(s.Targets, func(a, b *endpoint.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// list returns the names that are not hidden, those that gave a receiver first:
// a new file never takes the place of one that is in use.
func (d *Dir) list(root *os.Root) ([]string, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxFolderEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxFolderEntries {
		return nil, fmt.Errorf("holds more than %d entries", maxFolderEntries)
	}
	var names []string
	for _, e := range entries {
		// Kubernetes keeps its own files under ..data and the like.
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	rank := func(name string) int {
		if f := d.known[name]; f != nil && f.target != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// look judges one file.
func (d *Dir) look(root *os.Root, name string, f *receiverFile, s *scan) {
	switch {
	case !endpoint.NamePattern.MatchString(name):
		s.find(f, name, f.digest, skip(skipInvalidName, "is no receiver's name: 1 to 63 letters, digits, dots, dashes or underscores, the first a letter or digit"))
		return
	case d.taken[name]:
		s.find(f, name, f.digest, skip(skipTaken, "is the name of a receiver in the configuration, which stays in force"))
		return
	}
	raw, skipped := d.read(root, name)
	if skipped != nil && skipped.passing {
		if f.passing++; f.passing < passingScans {
			s.again = true
			return
		}
	} else {
		f.passing = 0
	}
	if skipped != nil {
		s.find(f, name, f.digest, skipped)
		return
	}
	digest := sha256.Sum256(raw)
	if digest == f.digest && (f.reason == SkipNone || isContentFault(f.reason)) {
		return // as it was
	}
	t, badTimeout, skipped := fileTarget(name, raw, d.guard, d.defaults)
	if skipped != nil {
		s.find(f, name, digest, skipped)
		return
	}
	if badTimeout {
		s.Findings = append(s.Findings, finding{Name: name, Text: fmt.Sprintf(`its "timeout" is no duration above 0, as in "10s": %v is used`, t.Timeout)})
	}
	f.target, f.digest, f.reason = t, digest, SkipNone
}

// isContentFault reports whether the reason lies in what a file holds, so that
// the same content need not be judged again.
func isContentFault(reason skipReason) bool {
	switch reason {
	case skipEmptyValue, skipInvalidJSON, skipEmptyURL, skipInvalid, skipNotText:
		return true
	default:
		return false
	}
}

// find notes why a file is not used, if that is new.
func (s *scan) find(f *receiverFile, name string, digest [sha256.Size]byte, skipped *skipError) {
	if f.reason == skipped.reason && f.digest == digest {
		return
	}
	f.reason, f.digest = skipped.reason, digest
	s.Findings = append(s.Findings, finding{Name: name, Reason: skipped.reason, Text: skipped.text, kept: f.target != nil})
}

// read returns what a file holds, whole: it is read again where it was changed
// or replaced meanwhile.
func (d *Dir) read(root *os.Root, name string) ([]byte, *skipError) {
	for range readTries {
		raw, same, err := d.readOnce(root, name)
		if err != nil || same {
			return raw, err
		}
	}
	return nil, errChanging
}

func (d *Dir) readOnce(root *os.Root, name string) (_ []byte, same bool, _ *skipError) {
	// Looked at before it is opened: opening alone means something to a device.
	info, err := root.Stat(name)
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	if skipped := d.judge(info); skipped != nil {
		return nil, false, skipped
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe put here meanwhile must not block
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	if skipped := d.judge(before); skipped != nil {
		return nil, false, skipped
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxReceiverFile+1))
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	if len(raw) > maxReceiverFile {
		return nil, false, errTooLarge
	}
	if d.duringRead != nil {
		d.duringRead(name)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	current, err := root.Stat(name)
	if err != nil {
		return nil, false, explain(root, name, err)
	}
	same = os.SameFile(after, current) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
	return raw, same, nil
}

var (
	errTooLarge = skip(skipTooLarge, fmt.Sprintf("is larger than %d bytes", maxReceiverFile))
	errChanging = &skipError{reason: skipChanging, text: "is written all the time", passing: true}
	// While Kubernetes takes a key away, its name leads nowhere for a moment.
	errNowhere = &skipError{reason: skipUnreadable, text: "leads nowhere", passing: true}
)

// judge refuses what need not be read.
func (d *Dir) judge(info fs.FileInfo) *skipError {
	age := d.now().Sub(info.ModTime())
	switch {
	case !info.Mode().IsRegular():
		return skip(skipNotAFile, "is not a regular file")
	case info.Size() > maxReceiverFile:
		return errTooLarge
	case age >= 0 && age < d.settle:
		return errChanging
	}
	return nil
}

// explain returns why a file could not be opened or read.
func explain(root *os.Root, name string, err error) *skipError {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNowhere
	case errors.Is(err, fs.ErrPermission):
		return skip(skipUnreadable, "may not be read by the Collector's user")
	case errors.Is(err, syscall.ELOOP):
		return skip(skipNotAFile, "is a symbolic link that leads to itself")
	}
	if info, lerr := root.Lstat(name); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return skip(skipOutside, "is a symbolic link that is absolute or leads out of the folder")
	}
	return skip(skipUnreadable, "cannot be read")
}
