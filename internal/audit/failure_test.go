// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package audit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// fullDisk is a write that fails while it is on, halfway through the line if
// half is on.
type fullDisk struct {
	on, half atomic.Bool
}

func (d *fullDisk) write(f *os.File, b []byte) (int, error) {
	if !d.on.Load() {
		return f.Write(b)
	}
	n := 0
	if d.half.Load() {
		n, _ = f.Write(b[:len(b)/2])
	}
	return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

// states collects the arguments of OnStatus.
type states struct {
	mu   sync.Mutex
	list []error
}

func (s *states) add(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, err)
}

func (s *states) get() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.list...)
}

func TestFullDiskDelaysNoOneAndLosesNothingThatFits(t *testing.T) {
	for _, half := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			key, keys := keyPair(t)
			path := logPath(t)
			var disk fullDisk
			var status states
			core, logs := observer.New(zap.WarnLevel)
			l := open(t, Options{Path: path, CheckpointKey: key, write: disk.write, OnStatus: status.add, Logger: zap.New(core), bufferBytes: 20_000})
			write(t, l, 2)

			disk.on.Store(true)
			disk.half.Store(half)
			start := time.Now()
			var ids []string
			for range 10 {
				r := sample()
				ids = append(ids, r.ID)
				_, written := l.Append(r)
				assert.False(t, written)
			}
			assert.Zero(t, time.Since(start), "a disk that answers, if badly, delays nobody")
			for range 100 {
				l.Write(sample()) // more than the buffer holds
			}
			stats := l.Stats()
			assert.EqualValues(t, 2, stats.Written)
			assert.EqualValues(t, 110, stats.Buffered+stats.Lost)
			assert.Positive(t, stats.Lost)
			assert.GreaterOrEqual(t, stats.Buffered, int64(10))
			time.Sleep(5 * time.Minute)
			require.Len(t, status.get(), 1)
			assert.ErrorIs(t, status.get()[0], syscall.ENOSPC)
			assert.Equal(t, 1, logs.Len(), "one cause is told once")
			assert.Greater(t, l.Stats().Failures, int64(5), "every try is counted")
			requireClean(t, path, keys) // also while it fails

			disk.on.Store(false)
			time.Sleep(lastRetry)
			synctest.Wait()
			require.Len(t, status.get(), 2)
			assert.NoError(t, status.get()[1])
			later := write(t, l, 1)
			require.NoError(t, l.Close())
			assert.Zero(t, l.Stats().Buffered)

			report := requireClean(t, path, keys)
			assert.EqualValues(t, stats.Lost, report.LostRecords)
			assert.EqualValues(t, 2+stats.Buffered+1, report.Records)
			assert.Equal(t, []verify.FindingKind{verify.LostRecords}, kinds(report))
			l = open(t, Options{Path: path})
			assert.Len(t, l.Find(append(ids, later...)), 11, "what fitted into the buffer is in the file")
			require.NoError(t, l.Close())
		})
	}
}

func TestHangingDiskDelaysNoOneForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, keys := keyPair(t)
		path := logPath(t)
		var status states
		hang := make(chan struct{})
		var hangs atomic.Bool
		l := open(t, Options{Path: path, CheckpointKey: key, OnStatus: status.add, write: func(f *os.File, b []byte) (int, error) {
			if hangs.Load() {
				<-hang
			}
			return f.Write(b)
		}})
		write(t, l, 1)
		hangs.Store(true)
		start := time.Now()
		for range 100 {
			l.Write(sample())
		}
		assert.Equal(t, time.Second, time.Since(start), "the first one waits, for a second")
		require.Len(t, status.get(), 1)
		assert.ErrorContains(t, status.get()[0], "did not answer for 1s")

		err := l.Close()
		assert.ErrorContains(t, err, "100 records were not written")
		assert.Equal(t, 5*time.Second, time.Since(start), "Close gives up too")
		hangs.Store(false)
		close(hang) // only so that the test can end
		<-l.done
		require.NoError(t, l.lock.Close())
		assert.EqualValues(t, 101, requireClean(t, path, keys).Records)
		require.Len(t, status.get(), 2)
	})
}

// A real file size limit: the kernel, not a hook, refuses in mid-line.
func TestRealLimitOfTheFileSystem(t *testing.T) {
	if path := os.Getenv(writerEnv + "_LIMIT"); path != "" {
		limit := syscall.Rlimit{Cur: 6000, Max: 1 << 30}
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		var status states
		l := open(t, Options{Path: path, OnStatus: status.add, writeWait: 10 * time.Second})
		for range 20 {
			l.Append(sample())
		}
		require.Positive(t, l.Stats().Buffered)
		// Append returns before OnStatus is called.
		require.Eventually(t, func() bool { return len(status.get()) > 0 }, time.Minute, time.Millisecond)
		require.ErrorIs(t, status.get()[0], syscall.EFBIG)
		requireClean(t, path, nil)
		limit.Cur = 1 << 20
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		require.NoError(t, l.Close(), "Close tries again")
		report := requireClean(t, path, nil)
		require.EqualValues(t, 20, report.Records)
		require.Empty(t, report.Facts)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRealLimitOfTheFileSystem$")
	cmd.Env = append(os.Environ(), writerEnv+"_LIMIT="+logPath(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestClosingWithAFullDiskReportsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := logPath(t)
		var disk fullDisk
		l := open(t, Options{Path: path, write: disk.write})
		write(t, l, 1)
		disk.on.Store(true)
		for range 3 {
			l.Write(sample())
		}
		err := l.Close()
		assert.ErrorContains(t, err, "3 audit records were not written")
		assert.ErrorIs(t, err, syscall.ENOSPC)
		l.Write(sample())
		assert.EqualValues(t, 1, l.Stats().Lost, "too late")
		require.NoError(t, l.Close())
	})
}

func TestTwoWritersNeverShareAFile(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path})
	_, err := Open(Options{Path: path})
	assert.ErrorContains(t, err, "is being written by another exporter or process")
	require.NoError(t, l.Close())
	l = open(t, Options{Path: path})
	require.NoError(t, l.Close())
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path, MaxBytes: 3000})
	write(t, l, 10)
	require.NoError(t, l.Close())
	require.NoError(t, os.Chmod(path, 0o644))
	l = open(t, Options{Path: path})
	require.NoError(t, l.Close())
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	require.Greater(t, len(all), 3)
	for _, name := range all {
		info, err := os.Lstat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
}

func TestWhatCannotBeOpenedIsReported(t *testing.T) {
	folder := t.TempDir()
	elsewhere := filepath.Join(folder, "elsewhere")
	require.NoError(t, os.WriteFile(elsewhere, nil, 0o600))
	link := filepath.Join(folder, "link.jsonl")
	require.NoError(t, os.Symlink(elsewhere, link))
	pipe := filepath.Join(folder, "pipe.jsonl")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	locked := filepath.Join(folder, "locked.jsonl")
	require.NoError(t, os.Symlink(elsewhere, locked+".lock"))
	for path, want := range map[string]string{
		"":                                       "no path",
		filepath.Join(folder, "none", "a.jsonl"): "no such file or directory",
		link:                                     "is a symbolic link",
		locked:                                   "is a symbolic link",
		pipe:                                     "is not a regular file",
		folder:                                   "is a directory",
	} {
		_, err := Open(Options{Path: path})
		assert.ErrorContains(t, err, want, path)
	}
	info, err := os.Stat(elsewhere)
	require.NoError(t, err)
	assert.Zero(t, info.Size())
	for _, o := range []Options{{MaxFiles: 1}, {MaxBytes: -1}, {CheckpointInterval: -1}} {
		o.Path = filepath.Join(folder, "a.jsonl")
		_, err := Open(o)
		assert.Error(t, err)
	}
}

// The file is renamed, as by logrotate: later records are in a new one,
// and the status reports it.
func TestRenamedFileIsNotWrittenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := logPath(t)
		var status states
		l := open(t, Options{Path: path, OnStatus: status.add})
		write(t, l, 1)
		require.NoError(t, os.Rename(path, filepath.Join(filepath.Dir(path), "moved.jsonl")))
		time.Sleep(DefaultCheckpointInterval)
		synctest.Wait()
		write(t, l, 1)
		require.NoError(t, l.Close())
		report, err := verify.Files(verify.Options{}, path, filepath.Join(filepath.Dir(path), "moved.jsonl"))
		require.NoError(t, err)
		require.Nil(t, report.Break)
		assert.EqualValues(t, 2, report.Records)
		require.NotEmpty(t, status.get())
		assert.ErrorContains(t, status.get()[0], "renamed or deleted")
		report = verified(t, path, verify.Options{})
		require.NotNil(t, report.Break)
		assert.Equal(t, verify.MissingFile, report.Break.Kind)
	})
}

// A folder that is away for a while, as when its volume is mounted again, comes
// back with the file in it: the chain goes on there. A file that does not end
// where the chain stands is left alone as ever.
func TestFolderThatComesBackIsWrittenOn(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, path string)
		back      bool
	}{
		"as it was": {func(*testing.T, string) {}, true},
		"with a line too much": {func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = f.WriteString("{}\n")
			require.NoError(t, errors.Join(err, f.Close()))
		}, false},
		"without its last line": {func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			end := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
			require.NoError(t, os.Truncate(path, int64(end)))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "audit")
			require.NoError(t, os.Mkdir(folder, 0o700))
			path := filepath.Join(folder, "audit.jsonl")
			key, public := keyPair(t)
			l := open(t, Options{Path: path, CheckpointKey: key, CheckpointInterval: 20 * time.Millisecond})
			write(t, l, 3)
			require.NoError(t, os.Rename(folder, folder+"-away"))
			// The checkpoint after a record finds that it is away.
			require.Eventually(t, func() bool { l.Append(sample()); return l.Stats().Buffered > 0 }, 10*time.Second, 10*time.Millisecond)
			tc.meanwhile(t, filepath.Join(folder+"-away", "audit.jsonl"))
			require.NoError(t, os.Rename(folder+"-away", folder))
			before := l.Stats().Failures
			require.Eventually(t, func() bool { return l.Stats().Buffered == 0 || l.Stats().Failures > before }, 10*time.Second, time.Millisecond)
			assert.Equal(t, tc.back, l.Stats().Buffered == 0)
			if !tc.back {
				require.ErrorContains(t, l.Close(), "another file now")
				return
			}
			write(t, l, 2)
			require.NoError(t, l.Close())
			report := verified(t, path, verify.Options{PublicKeys: public})
			assert.True(t, report.Clean(), "%v", report.Break)
			assert.Equal(t, l.Stats().Written, report.Records)
			assert.Len(t, report.Files, 1)
		})
	}
}

// The name of the next full file is taken: the log grows on instead.
func TestRotationThatFailsStopsNothing(t *testing.T) {
	path := logPath(t)
	var status states
	l := open(t, Options{Path: path, MaxBytes: 2000, OnStatus: status.add, Now: func() time.Time { return time.Unix(1e9, 0) }})
	require.NoError(t, os.Mkdir(logfile.RotatedName(path, 1), 0o700))
	write(t, l, 10)
	require.NoError(t, l.Close())
	require.NotEmpty(t, status.get())
	assert.ErrorContains(t, status.get()[0], "is in the way")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 10, strings.Count(string(text), `"kind":"record"`))
}
