// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kmsg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is what a Follower reported.
type log struct {
	lines      []string
	lost, long int
	states     []string
}

func (l *log) follower(path string) *Follower {
	return &Follower{
		Path: path,
		Line: func(text string) { l.lines = append(l.lines, text) },
		Lost: func(n int) { l.lost += n },
		Long: func(n int) { l.long += n },
		State: func(err error) {
			l.states = append(l.states, fmt.Sprint(err))
		},
	}
}

// kernel is a file that returns one record, or an error, for each read.
type kernel struct {
	reads []any
	done  chan struct{} // closed by Close
}

func (k *kernel) Read(p []byte) (int, error) {
	if len(k.reads) == 0 {
		<-k.done
		return 0, os.ErrClosed
	}
	next := k.reads[0]
	k.reads = k.reads[1:]
	if err, is := next.(error); is {
		return 0, &os.PathError{Op: "read", Path: "/dev/kmsg", Err: err}
	}
	return copy(p, next.(string)), nil
}

func (k *kernel) Close() error {
	close(k.done)
	return nil
}

func TestRecordsOfTheKernel(t *testing.T) {
	const xid = "NVRM: Xid (PCI:0000:3b:00): 79, the GPU is off the bus."
	for name, tc := range map[string]struct {
		reads []any
		want  log
	}{
		"lines of the driver alone": {
			[]any{"6,1,100,-;usb 1-1: new device\n SUBSYSTEM=usb\n DEVICE=+usb:1-1\n", "4,2,200,-;" + xid + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n", "4,3,300,-,caller=T1;" + xid + "; again\n"},
			log{lines: []string{xid, xid + "; again"}},
		},
		"overwritten": {
			[]any{"4,7,1,-;a\n", syscall.EPIPE, "4,107,2,-;" + xid + "\n", "4,109,2,-;b\n"},
			log{lines: []string{xid}, lost: 99},
		},
		"overwritten from the start": {[]any{syscall.EPIPE, "4,107,2,-;" + xid + "\n"}, log{lines: []string{xid}, lost: 1}},
		"too long": {
			[]any{syscall.EINVAL, "4,3,1,-;" + strings.Repeat("x", MaxLine) + "\n", "4,4,1,-;" + xid + "\n"},
			log{lines: []string{xid}, long: 2},
		},
		"without end": {
			[]any{strings.Repeat("x", MaxLine), strings.Repeat("x", MaxLine), strings.Repeat("x", MaxLine), "x\n" + xid + "\n"},
			log{lines: []string{xid}, long: 1},
		},
		"without prefix": {[]any{"\n" + xid + "\n1,x,3;" + xid + "\n"}, log{lines: []string{xid, "1,x,3;" + xid}}},
		"interrupted":    {[]any{syscall.EINTR, "4,1,1,-;" + xid + "\n"}, log{lines: []string{xid}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got log
				f := got.follower("")
				f.open = func() (io.ReadCloser, error) { return &kernel{tc.reads, make(chan struct{})}, nil }
				ctx, cancel := context.WithCancel(t.Context())
				go f.Run(ctx)
				synctest.Wait()
				cancel()
				synctest.Wait()
				tc.want.states = []string{"<nil>"}
				assert.Equal(t, tc.want, got)
			})
		})
	}
}

// After an error the file is read from its start, without what was read before.
func TestFollowerOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		f := got.follower("")
		files := []any{
			os.ErrPermission, os.ErrPermission,
			&kernel{[]any{"4,5,1,-;NVRM: five\n", syscall.ENODEV}, make(chan struct{})},
			&kernel{[]any{"4,4,1,-;NVRM: four\n", "4,5,1,-;NVRM: five\n", "4,6,1,-;NVRM: six\n"}, make(chan struct{})},
		}
		f.open = func() (io.ReadCloser, error) {
			next := files[0]
			files = files[1:]
			if err, is := next.(error); is {
				return nil, err
			}
			return next.(*kernel), nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		go f.Run(ctx)
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		assert.Equal(t, []string{"NVRM: five", "NVRM: six"}, got.lines)
		assert.Equal(t, []string{
			"permission denied", "permission denied", "<nil>", "read /dev/kmsg: no such device", "<nil>",
		}, strings.Split(strings.ReplaceAll(strings.Join(got.states, "|"), os.ErrPermission.Error(), "permission denied"), "|"))
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

// Where no record was read before an error, old records look like newer ones: those
// that were there before the program are not counted.
func TestOldRecordsAreNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, os.WriteFile(path, []byte("4,1,1,-;NVRM: old\n"), 0o600))
	f := (&log{}).follower(path)
	for range 2 {
		file, err := f.openFile()
		require.NoError(t, err)
		text, err := io.ReadAll(file)
		require.NoError(t, err)
		assert.Empty(t, text)
		require.NoError(t, file.Close())
	}
	f.known = true
	file, err := f.openFile()
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	assert.NotEmpty(t, text, "what was written meanwhile is behind what is known")
	require.NoError(t, file.Close())
}

// Containers have other devices in the place of the log, such as /dev/null or a terminal.
func TestAnotherDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, os.Symlink(os.DevNull, path))
	_, err := (&log{}).follower(path).openFile()
	require.ErrorIs(t, err, errOther)
}

// A pipe in place of the kernel's file is followed over its ends, and closing ends a reading.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	lines := make(chan string, 8)
	f := (&log{}).follower(path)
	opened := make(chan struct{})
	f.Line = func(text string) { lines <- text }
	f.State = func(err error) {
		require.NoError(t, err)
		close(opened)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	<-opened
	for i, text := range []string{"NVRM: one", "NVRM: two"} {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "4,%d,1,-;%s\n", i, text), 0o600))
		select {
		case got := <-lines:
			assert.Equal(t, text, got)
		case <-time.After(10 * time.Second):
			t.Fatal("the line did not arrive")
		}
	}
	cancel()
	<-done
}

// The kernel's own file can be waited for, where this machine has one that may be read.
func TestKernelsFile(t *testing.T) {
	var got log
	f := got.follower("/dev/kmsg")
	file, err := f.openFile()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Skip("/dev/kmsg:", err)
	}
	require.NoError(t, err)
	assert.NoError(t, file.(*os.File).SetReadDeadline(time.Now().Add(time.Hour)), "it cannot be waited for")
	require.NoError(t, file.Close())
}

// A program may write records of its own, and its name stands in those of the kernel.
func TestRecordsOfPrograms(t *testing.T) {
	var got log
	f := got.follower("")
	f.record([]byte("12,1,100,-;NVRM: Xid (PCI:0000:64:00): 79\n"), false)
	f.record([]byte("4,2,200,-;python3[7]: segfault in NVRM: Xid (PCI:0000:64:00): 79\n"), false)
	assert.Empty(t, got.lines)
	f.record([]byte("4,3,300,-;NVRM: Xid (PCI:0000:64:00): 79\n"), false)
	assert.Equal(t, []string{"NVRM: Xid (PCI:0000:64:00): 79"}, got.lines)
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("4,2,200,-;NVRM: Xid (PCI:0000:3b:00): 79\n SUBSYSTEM=pci\n"), true)
	f.Add([]byte("4,18446744073709551615,200,-;NVRM: \n"), true)
	f.Fuzz(func(t *testing.T, data []byte, lost bool) {
		var got log
		follower := got.follower("")
		for line := range strings.Lines(string(data)) {
			follower.record([]byte(line), lost)
		}
		for _, line := range got.lines {
			assert.Contains(t, line, "NVRM: ")
			assert.NotContains(t, line, "\n")
		}
		assert.GreaterOrEqual(t, got.lost, 0)
	})
}
