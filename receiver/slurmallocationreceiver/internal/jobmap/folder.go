// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package jobmap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	maxNameFile = 1 << 10 // bytes
	// unmapped is the owner that files of others have in a user namespace, such as the one of a
	// unit of systemd with PrivateUsers.
	unmapped = 65534
)

// ErrUnsafe is that others than root may change the folder.
var ErrUnsafe = errors.New("the folder of the job map decides who has a GPU")

// Folder is the folder of a job map. It is not safe for concurrent use.
type Folder struct {
	Path        string
	Format      *Format
	MaxFiles    int
	MaxFileSize int

	known map[string]*file // by name
	// namesErr is why no names are read: others may change their folder.
	namesErr error
}

// file is what is known of a file as it was when it was read.
type file struct {
	mark mark
	jobs []Job
	err  error
	// refusedName is the state of the file with the job's name that was refused.
	refusedName mark
	// naming is the first complete name of this run. The job's user may write to the file for as
	// long as the job runs, and every other name would be another series.
	naming *naming
	clock  bool // a start in the future was counted
}

// mark is another one where a file was written or replaced.
type mark struct {
	inode, size uint64
	at          time.Time
}

// Finding is a file that was not refused before.
type Finding struct {
	File string
	Err  error
}

// Reading is what the folder had.
type Reading struct {
	Jobs     []Job // by id as a number
	Findings []Finding
	// Incomplete: files are left out, so that a device without a job may have one.
	Incomplete bool
}

// Check is an error where the folder, or one above it, can be changed by others than root and the
// user of this process. fs.ErrNotExist: it is not there.
func (f *Folder) Check() error {
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return err
	}
	return check(path)
}

func check(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		uid, _, ok := statOf(info)
		switch {
		case !info.IsDir():
			return fmt.Errorf("%w: %s is no folder", ErrUnsafe, at)
		case !ok:
			return fmt.Errorf("%w: the owner of %s is not known", ErrUnsafe, at)
		case uid != 0 && int(uid) != os.Geteuid():
			return fmt.Errorf("%w: %s belongs to user %d: chown root it", ErrUnsafe, at, uid)
		// In a sticky folder others make files, and do not replace those of root.
		case info.Mode().Perm()&0o022 != 0 && (at == path || info.Mode()&fs.ModeSticky == 0):
			return fmt.Errorf("%w: %s may be written by others (%04o): chmod go-w it", ErrUnsafe, at, info.Mode().Perm())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// Read reads what changed since the last call. An error is that of the folder: nothing is known.
func (f *Folder) Read(now time.Time) (Reading, error) {
	if err := f.Check(); err != nil {
		f.known = nil
		return Reading{}, err
	}
	entries, err := os.ReadDir(f.Path) // by name
	if err != nil {
		return Reading{}, err
	}
	f.namesErr = nil
	if names := filepath.Join(f.Path, "names"); f.Format.Names {
		if err := check(names); errors.Is(err, ErrUnsafe) {
			f.namesErr = refuse(Owner, "%s", err.Error())
		}
	}
	var r Reading
	found := make(map[string]*file, len(entries))
	limited := false
	for _, e := range entries {
		if e.Name()[0] == '.' || e.IsDir() || !f.Format.is(e.Name()) {
			continue
		}
		if len(found) >= f.MaxFiles {
			limited = true
			break
		}
		one, err := f.read(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		found[e.Name()] = one
		if one.err != nil {
			r.Incomplete = true
			if one != f.known[e.Name()] {
				r.Findings = append(r.Findings, Finding{e.Name(), one.err})
			}
			continue
		}
		f.add(&r, e.Name(), one, now)
	}
	if limited {
		r.Incomplete = true
		if f.known["\x00"] == nil {
			r.Findings = append(r.Findings, Finding{"", refuse(FilesLimit, "there are more than %d files", f.MaxFiles)})
		}
		found["\x00"] = &file{}
	}
	f.known = found
	r.join()
	return r, nil
}

// add takes the jobs of a file into a reading.
func (f *Folder) add(r *Reading, name string, one *file, now time.Time) {
	start := one.mark.at
	if start.After(now.Add(time.Minute)) {
		if !one.clock {
			r.Findings = append(r.Findings, Finding{name, refuse(Clock, "the file is from the future: a clock was set back")})
		}
		one.clock = true
	}
	for _, j := range one.jobs {
		j.Start = start
		j.Devices = slices.Clone(j.Devices)
		if f.Format.Names {
			if err := f.name(&j, one); err != nil {
				r.Findings = append(r.Findings, Finding{filepath.Join("names", j.ID), err})
			}
		}
		r.Jobs = append(r.Jobs, j)
	}
}

// join makes one job of those with one id.
func (r *Reading) join() {
	slices.SortStableFunc(r.Jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) })
	out := r.Jobs[:0]
	for _, j := range r.Jobs {
		if n := len(out); n > 0 && out[n-1].ID == j.ID {
			out[n-1].Devices = append(out[n-1].Devices, j.Devices...)
			continue
		}
		out = append(out, j)
	}
	r.Jobs = out
}

func markOf(info fs.FileInfo) mark {
	_, inode, _ := statOf(info)
	return mark{inode: inode, size: uint64(info.Size()), at: info.ModTime()}
}

// read is a file as it is known, or read again where it is another.
func (f *Folder) read(name string) (*file, error) {
	path := filepath.Join(f.Path, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	m := markOf(info)
	if known := f.known[name]; known != nil && known.mark == m {
		return known, nil
	}
	one := &file{mark: m}
	text, _, err := open(path, info, f.MaxFileSize)
	if err == nil {
		one.jobs, err = f.Format.Parse(name, text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	one.err = err
	return one, nil
}

// open reads a regular file of at most so many bytes. A link is not followed.
func open(path string, info fs.FileInfo, most int) ([]byte, fs.FileInfo, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, refuse(Link, "a link is not followed")
	case !info.Mode().IsRegular():
		return nil, nil, refuse(NotRegular, "it is no file")
	}
	opened, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	if info, err = opened.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, refuse(NotRegular, "it is no file")
	}
	text, err := io.ReadAll(io.LimitReader(opened, int64(most)+1))
	if err == nil && len(text) > most {
		return nil, nil, refuse(TooLarge, "it is larger than %d bytes", most)
	}
	return text, info, err
}

// name sets the job's name, from a file that the job's user wrote. An error is one that was not
// returned before.
func (f *Folder) name(j *Job, one *file) error {
	if one.naming != nil {
		j.naming = *one.naming
		return nil
	}
	path := filepath.Join(f.Path, "names", j.ID)
	info, err := os.Lstat(path)
	if err != nil || info.Size() == 0 {
		return nil
	}
	m := markOf(info)
	text, info, err := open(path, info, maxNameFile)
	if err == nil {
		// Prolog alone makes files there, so an owner that is not known is the user.
		if uid, _, ok := statOf(info); !ok || j.UID < 0 || int64(uid) != j.UID && uid != unmapped {
			err = refuse(Owner, "it does not belong to the job's user")
		}
	}
	err = cmp.Or(f.namesErr, err)
	if err != nil {
		if one.refusedName == m {
			return nil
		}
		one.refusedName = m
		return err
	}
	if name, array, task, complete := parseName(text); complete {
		one.naming = &naming{name, array, task, info.ModTime()}
		j.naming = *one.naming
	}
	return nil
}
