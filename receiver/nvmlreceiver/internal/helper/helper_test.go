// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const a, b = "0000:17:00.0", "0000:65:00.0"

// fake is a helper in this process. It ends when it is asked to, unless it hangs.
type fake struct {
	t     *testing.T
	hangs atomic.Bool // is not ended by signals
	child *Child
	in    *io.PipeReader
	out   *io.PipeWriter
	errs  *io.PipeWriter
	once  sync.Once
	ended chan struct{}
	err   error
	kills atomic.Int32
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, ended: make(chan struct{})}
	c := &Child{Wait: func() error { <-f.ended; return f.err }}
	f.child = c
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	stderr, errs := io.Pipe()
	f.in, f.out, f.errs = in, out, errs
	c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
	c.Terminate = func() error {
		if !f.hangs.Load() {
			f.end(nil)
		}
		return nil
	}
	c.Kill = func() error { f.kills.Add(1); return c.Terminate() }
	return f
}

func (f *fake) end(err error) {
	f.once.Do(func() {
		f.err = err
		_, _, _ = f.in.Close(), f.out.Close(), f.errs.Close()
		close(f.ended)
	})
}

func (f *fake) write(frames ...nvmlproto.Frame) {
	for _, frame := range frames {
		_ = nvmlproto.Write(f.out, frame)
	}
}

func (f *fake) hello() {
	f.write(nvmlproto.Frame{Hello: &nvmlproto.Hello{Version: nvmlproto.Version, Build: "0.1.0"}})
}

// request is the next one, nil at the end.
func (f *fake) request() *nvmlproto.Request {
	var r nvmlproto.Request
	if _, err := nvmlproto.Read(f.in, &r, nil); err != nil {
		return nil
	}
	return &r
}

func begin(thread, call string) nvmlproto.Frame {
	return nvmlproto.Frame{Begin: &nvmlproto.Call{Thread: thread, Name: call}}
}

func end(thread, call string) nvmlproto.Frame {
	return nvmlproto.Frame{End: &nvmlproto.Call{Thread: thread, Name: call}}
}

func system(id uint64, answering ...string) nvmlproto.Frame {
	return nvmlproto.Frame{System: &nvmlproto.System{ID: id, Library: "l", Answering: answering}}
}

func answer(id uint64, thread string) nvmlproto.Frame {
	return nvmlproto.Frame{Board: &nvmlproto.Board{ID: id, Thread: thread}}
}

var options = Options{CallTimeout: 5 * time.Second, InitTimeout: time.Minute}

func threadsOf(late []Late) (threads []string) {
	for _, l := range late {
		threads = append(threads, l.Thread)
	}
	return threads
}

// TestScrape: each case is what a helper writes after the request, and what comes of it.
func TestScrape(t *testing.T) {
	for name, c := range map[string]struct {
		helper func(f *fake, r *nvmlproto.Request)
		boards int
		late   []string
		stuck  []string
		takes  time.Duration
		cause  nvmlproto.Cause
	}{
		"all answer": {func(f *fake, r *nvmlproto.Request) {
			f.write(system(r.ID, b, a), answer(r.ID, b), answer(r.ID, a))
		}, 2, nil, nil, 0, ""},
		"one hangs": {func(f *fake, r *nvmlproto.Request) {
			f.write(system(r.ID, a, b), begin(a, "nvmlDeviceGetPowerUsage"), answer(r.ID, b))
		}, 1, []string{a}, []string{a}, 5 * time.Second, ""},
		"one is slow, call by call": {func(f *fake, r *nvmlproto.Request) {
			f.write(system(r.ID, a, b), answer(r.ID, b))
			for range 3 {
				f.write(begin(a, "slow"))
				time.Sleep(4 * time.Second)
				f.write(end(a, "slow"))
			}
			f.write(answer(r.ID, a))
		}, 1, []string{a}, nil, 10 * time.Second, ""},
		"one waits for the other": {func(f *fake, r *nvmlproto.Request) {
			f.write(system(r.ID, a, b), begin(a, "nvmlGpmSampleGet"))
		}, 0, []string{a, b}, []string{a}, 10 * time.Second, ""},
		"one is still in the calls of the scrape before": {func(f *fake, r *nvmlproto.Request) {
			f.write(begin(a, "slow"), system(r.ID, b), answer(r.ID, b))
		}, 1, []string{a}, nil, 0, ""},
		"late answers of the scrape before": {func(f *fake, r *nvmlproto.Request) {
			f.write(system(r.ID-1, a), answer(r.ID-1, a), system(r.ID, b), answer(r.ID, b))
		}, 1, nil, nil, 0, ""},
		"init takes long": {func(f *fake, r *nvmlproto.Request) {
			f.write(begin("", "nvmlInit_v2"))
		}, 0, nil, nil, 10 * time.Second, nvmlproto.CauseStarting},
		"silent":           {func(*fake, *nvmlproto.Request) {}, 0, nil, nil, 10 * time.Second, nvmlproto.CauseTimeout},
		"a call hangs":     {func(f *fake, _ *nvmlproto.Request) { f.write(begin("", "nvmlDeviceGetCount_v2")) }, 0, nil, nil, 5 * time.Second, nvmlproto.CauseStuck},
		"ends":             {func(f *fake, _ *nvmlproto.Request) { f.end(errors.New("signal: segmentation fault")) }, 0, nil, nil, 0, nvmlproto.CauseCrashed},
		"no frame":         {func(f *fake, _ *nvmlproto.Request) { _, _ = f.out.Write([]byte("\x00\x00\x00\x02no")) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"too long a frame": {func(f *fake, _ *nvmlproto.Request) { _, _ = f.out.Write([]byte("\x7f\x00\x00\x00")) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"an empty frame":   {func(f *fake, _ *nvmlproto.Request) { f.write(nvmlproto.Frame{}) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"a board too many": {func(f *fake, r *nvmlproto.Request) { f.write(system(r.ID, a), answer(r.ID, b)) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"of the future":    {func(f *fake, r *nvmlproto.Request) { f.write(system(r.ID + 1)) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"an answer twice":  {func(f *fake, r *nvmlproto.Request) { f.write(system(r.ID, a, b), system(r.ID, a, b)) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"a board twice":    {func(f *fake, r *nvmlproto.Request) { f.write(system(r.ID, a, b), answer(r.ID, a), answer(r.ID, a)) }, 0, nil, nil, 0, nvmlproto.CauseFrames},
		"of another release": {func(f *fake, _ *nvmlproto.Request) {
			f.write(nvmlproto.Frame{Hello: &nvmlproto.Hello{Version: nvmlproto.Version + 1}})
		}, 0, nil, nil, 0, nvmlproto.CauseFrames},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				p := run(f.child, options)
				var writes sync.WaitGroup
				writes.Go(func() {
					f.hello()
					if r := f.request(); r != nil {
						c.helper(f, r)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				got, err := p.Scrape(ctx, nvmlproto.Request{})
				assert.Equal(t, c.takes, time.Since(began))
				if c.cause != "" {
					known := &Error{}
					require.ErrorAs(t, err, &known)
					assert.Equal(t, c.cause, known.Cause)
				} else {
					require.NoError(t, err)
					assert.Len(t, got.Boards, c.boards)
					assert.Equal(t, c.late, threadsOf(got.Late))
					assert.Equal(t, c.stuck, threadsOf(p.Stuck()))
				}
				f.end(nil)
				writes.Wait()
			})
		})
	}
}

// TestInit: a scrape of which init takes long is not repeated to the helper, and the one
// after init is answered.
func TestInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		p := run(f.child, options)
		requests := 0
		go func() {
			f.hello()
			for r := f.request(); r != nil; r = f.request() {
				requests++
				if requests == 1 {
					f.write(begin("", "nvmlInit_v2"))
					time.Sleep(28 * time.Second)
					f.write(end("", "nvmlInit_v2"))
				}
				f.write(system(r.ID, a), answer(r.ID, a))
			}
		}()
		var causes []nvmlproto.Cause
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err := p.Scrape(ctx, nvmlproto.Request{})
			cancel()
			known := &Error{}
			errors.As(err, &known)
			causes = append(causes, known.Cause)
		}
		assert.Equal(t, []nvmlproto.Cause{nvmlproto.CauseStarting, nvmlproto.CauseStarting, "", ""}, causes)
		assert.Equal(t, 3, requests)
		f.end(nil)
	})
}

// TestKeeper: delays between starts, and helpers that do not end.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last *fake
		hangs := false
		k := &Keeper{Opts: options, Start: func() (*Child, error) {
			last = newFake(t)
			last.hangs.Store(hangs)
			go last.hello()
			return last.child, nil
		}}
		fail := func(cause nvmlproto.Cause) time.Duration { // until there is another
			_, _, err := k.Ready(time.Now())
			require.NoError(t, err)
			require.Error(t, k.Fail(failed(cause, "failed"), time.Now()))
			began := time.Now()
			for {
				synctest.Wait()
				_, again, err := k.Ready(time.Now())
				if err == nil {
					return time.Since(began)
				}
				assert.True(t, again)
				time.Sleep(time.Second)
			}
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			assert.Equal(t, want*time.Second, fail(nvmlproto.CauseCrashed))
		}
		for _, want := range []time.Duration{10, 20, 40, 60, 60} {
			assert.Equal(t, want*time.Second, fail(nvmlproto.CauseNoDriver))
		}
		k.Succeeded(time.Now())
		assert.Equal(t, 10*time.Second, fail(nvmlproto.CauseNoDriver), "the driver was there meanwhile")
		assert.Equal(t, time.Second, fail(nvmlproto.CauseCrashed))
		k.Succeeded(time.Now())
		time.Sleep(time.Minute)
		k.Succeeded(time.Now())
		assert.Equal(t, 2*time.Second, fail(nvmlproto.CauseCrashed), "not for long")
		k.Succeeded(time.Now())
		time.Sleep(10 * time.Minute)
		k.Succeeded(time.Now())
		assert.Equal(t, time.Second, fail(nvmlproto.CauseCrashed), "ten minutes of health")

		k.Stop(time.Now())
		hangs = true
		var left []*fake
		for range maxEnding {
			synctest.Wait()
			_, _, err := k.Ready(time.Now())
			require.NoError(t, err)
			left = append(left, last)
			k.Stop(time.Now())
		}
		time.Sleep(killAfter - time.Second)
		synctest.Wait()
		assert.Zero(t, left[0].kills.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, int32(1), left[0].kills.Load())
		_, _, err := k.Ready(time.Now())
		known := &Error{}
		require.ErrorAs(t, err, &known)
		assert.Equal(t, nvmlproto.CauseBlocked, known.Cause)
		assert.Equal(t, maxEnding, k.Ending())
		left[0].end(nil)
		synctest.Wait()
		_, _, err = k.Ready(time.Now())
		require.NoError(t, err, "one has ended")
		last.hangs.Store(false)
		left[1].end(nil)
		k.Close(t.Context())
	})
}

// TestLines: what a helper prints is bounded and safe.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var lines []string
		opts := options
		opts.Line = func(line string) { lines = append(lines, line) }
		p := run(f.child, opts)
		_, _ = f.errs.Write([]byte("a \x1b[31mline\n\n" + strings.Repeat("x", 3*maxLine) + "\nshort\n" + strings.Repeat("more\n", 20)))
		synctest.Wait()
		require.Len(t, lines, maxLines)
		assert.Equal(t, "a [31mline", lines[0])
		assert.Len(t, lines[1], maxLine)
		assert.Equal(t, "short", lines[2])
		time.Sleep(linesEvery)
		_, _ = f.errs.Write([]byte("otelcol-gpu-nvml: /lib64/libc.so.6: version `GLIBC_2.34' not found\n"))
		synctest.Wait()
		assert.Len(t, lines, maxLines+1)
		f.end(errors.New("exit status 127"))
		synctest.Wait()
		_, err := p.Scrape(t.Context(), nvmlproto.Request{})
		known := &Error{}
		require.ErrorAs(t, err, &known)
		assert.Equal(t, nvmlproto.CauseLoader, known.Cause)
	})
}

// FuzzFrames: whatever a helper writes, a scrape ends within its time.
func FuzzFrames(f *testing.F) {
	var pipe bytes.Buffer
	for _, frame := range []nvmlproto.Frame{
		{Hello: &nvmlproto.Hello{Version: nvmlproto.Version}}, begin("", "nvmlInit_v2"), end("", "nvmlInit_v2"),
		system(1, a, b), begin(a, "nvmlDeviceGetName"), answer(1, b), {Event: &nvmlproto.Event{Thread: a, MIG: true}},
	} {
		_ = nvmlproto.Write(&pipe, frame)
	}
	f.Add(pipe.Bytes())
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, written []byte) {
		synctest.Test(t, func(t *testing.T) {
			x := newFake(t)
			p := run(x.child, options)
			go func() { // before the request is read: it is in the pipe
				x.request()
				_, _ = x.out.Write(written)
				x.end(nil)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			answered, err := p.Scrape(ctx, nvmlproto.Request{})
			assert.LessOrEqual(t, len(answered.Boards), nvmlproto.MaxBoards)
			if err == nil {
				assert.Equal(t, uint64(1), answered.System.ID)
			}
		})
	})
}
