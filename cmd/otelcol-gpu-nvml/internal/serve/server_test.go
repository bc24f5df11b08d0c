// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hanging = "0000:03:00.0"

func TestOneRequest(t *testing.T) {
	inLab(t, &fake{boards: 2}, func(l *lab) {
		synctest.Wait()
		assert.Equal(t, []nvmlproto.Frame{{Hello: &nvmlproto.Hello{Version: 1, Build: "0.1.0"}}}, l.take())
		system, boards := l.ask(0, nvmlproto.GroupPower)
		assert.Equal(t, &nvmlproto.System{
			ID: 1, Library: "/lib/libnvidia-ml.so.1", Driver: "550.54", NVML: "12.550", Boards: 2, Answering: l.all(),
		}, system)
		require.Len(t, boards, 2)
		board := boards["0000:01:00.0"]
		assert.Equal(t, "GPU-1", board.UUID)
		assert.Equal(t, []string{"power.usage", "power.limit.management", "power.limit.enforced", "energy"}, names(board.Values))
		l.ask(0, nvmlproto.GroupPower)
		assert.Equal(t, 1, l.fake.called("init"))
		assert.Equal(t, 2, l.fake.called("identify"), "once a board")
	})
}

func TestEveryCallIsAnnounced(t *testing.T) {
	inLab(t, &fake{boards: 8}, func(l *lab) {
		l.Ask(&nvmlproto.Request{ID: 1, Boards: l.all(), Groups: []nvmlproto.Group{nvmlproto.GroupPower}})
		synctest.Wait()
		in, calls := map[string]string{}, 0
		for _, f := range l.take() {
			switch {
			case f.Begin != nil:
				assert.Empty(t, in[f.Begin.Thread], "one call at a time")
				in[f.Begin.Thread] = f.Begin.Name
			case f.End != nil:
				assert.Equal(t, in[f.End.Thread], f.End.Name)
				in[f.End.Thread] = ""
				calls++
			case f.Board != nil:
				assert.Empty(t, in[f.Board.Thread], "the last call of a board has ended")
			}
		}
		assert.Equal(t, len(l.fake.calls), calls)
	})
}

func TestAHangCostsItsBoardAlone(t *testing.T) {
	inLab(t, &fake{boards: 8}, func(l *lab) {
		release := make(chan struct{})
		l.fake.fault(hanging+" power.usage", fault{hang: release})
		for range 3 {
			_, boards := l.ask(0, nvmlproto.GroupPower)
			assert.Len(t, boards, 7)
			assert.NotContains(t, boards, hanging)
		}
		assert.Equal(t, 1, l.fake.called(hanging+" power.usage"), "no second call to a board in a call")
		l.fake.fault(hanging+" power.usage", fault{})
		close(release)
		synctest.Wait()
		system, boards := l.ask(0, nvmlproto.GroupPower)
		assert.Len(t, system.Answering, 8)
		assert.Len(t, boards, 8)
	})
}

func TestAHangInGPM(t *testing.T) {
	inLab(t, &fake{boards: 8, gpm: true}, func(l *lab) {
		_, boards := l.ask(0, nvmlproto.GroupPower, nvmlproto.GroupProfiling)
		require.Len(t, boards, 8)
		release := make(chan struct{})
		l.fake.fault(hanging+" sample", fault{hang: release})
		time.Sleep(15 * time.Second)
		_, boards = l.ask(3*time.Second, nvmlproto.GroupPower, nvmlproto.GroupProfiling)
		assert.Len(t, boards, 7)
		time.Sleep(15 * time.Second)
		_, boards = l.ask(0, nvmlproto.GroupPower, nvmlproto.GroupProfiling)
		assert.Len(t, boards, 7, "at once, since the turn did not come the last time")
		for _, b := range boards {
			assert.Equal(t, []string{"power.usage", "power.limit.management", "power.limit.enforced", "energy"}, names(b.Values))
			assert.Equal(t, []nvmlproto.Refused{{Call: "nvmlGpmMetricsGet", Reason: nvmlproto.ReasonBusy, N: 1}}, b.Refused)
		}
		close(release)
		synctest.Wait()
		l.fake.fault(hanging+" sample", fault{})
		for range 2 {
			time.Sleep(15 * time.Second)
			_, boards = l.ask(0, nvmlproto.GroupProfiling)
		}
		require.Len(t, boards, 8)
		for _, b := range boards {
			assert.Contains(t, names(b.Values), "gpm.sm")
		}
	})
}

func TestTheNewestRequestWaitsForInit(t *testing.T) {
	inLab(t, &fake{boards: 1}, func(l *lab) {
		release := make(chan struct{})
		l.fake.fault("init", fault{hang: release})
		for range 3 {
			system, _ := l.ask(0, nvmlproto.GroupPower)
			assert.Nil(t, system)
		}
		close(release)
		synctest.Wait()
		var answered []uint64
		for _, f := range l.take() {
			if f.Board != nil {
				answered = append(answered, f.Board.ID)
			}
		}
		assert.Equal(t, []uint64{3}, answered)
	})
}

func TestInitThatFailsIsTriedAgain(t *testing.T) {
	inLab(t, &fake{boards: 1}, func(l *lab) {
		l.fake.fault("init", fault{returns: 9})
		system, boards := l.ask(0, nvmlproto.GroupPower)
		assert.Equal(t, 9, system.Return)
		assert.Equal(t, "error 9", system.Error)
		assert.Empty(t, boards)
		l.fake.fault("init", fault{})
		system, boards = l.ask(0, nvmlproto.GroupPower)
		assert.Empty(t, system.Error)
		assert.Len(t, boards, 1)
	})
}

func TestNoLibrary(t *testing.T) {
	r := Once(func() (Library, string, []string) { return nil, "", []string{"/lib: no such file"} }, "0.1.0", time.Minute)
	assert.False(t, r.Answered())
	assert.Equal(t, []string{"/lib: no such file"}, r.System.Missing)
	assert.Empty(t, r.Boards)
}

func TestBoardsThatDoNotAnswer(t *testing.T) {
	for _, test := range []struct {
		call    string
		returns nvml.Return
		want    nvmlproto.Board
	}{
		{"handle", 6, nvmlproto.Board{Return: 6, Error: "error 6"}},
		{"handle", 15, nvmlproto.Board{Return: 15, Error: "error 15", Lost: true}},
		{"identify", 15, nvmlproto.Board{Return: 15, Error: "error 15", Lost: true}},
		{"energy", 15, nvmlproto.Board{UUID: "GPU-3", Lost: true}},
		{"energy", 28, nvmlproto.Board{UUID: "GPU-3", Lost: true}},
	} {
		t.Run(test.call, func(t *testing.T) {
			inLab(t, &fake{boards: 4}, func(l *lab) {
				l.fake.fault(hanging+" "+test.call, fault{returns: test.returns})
				_, boards := l.ask(0, nvmlproto.GroupPower)
				assert.Len(t, boards, 4)
				test.want.ID, test.want.Thread = 1, hanging
				assert.Equal(t, &test.want, boards[hanging])
				l.fake.fault(hanging+" "+test.call, fault{})
				_, boards = l.ask(0, nvmlproto.GroupPower)
				assert.Len(t, boards[hanging].Values, 4)
			})
		})
	}
}

func TestRequestsOfBoards(t *testing.T) {
	inLab(t, &fake{boards: 2}, func(l *lab) {
		l.Ask(&nvmlproto.Request{ID: 1, ByIndex: true})
		synctest.Wait()
		l.Ask(&nvmlproto.Request{ID: 2, Boards: []string{"0000:00:00.0", "0000:00:00.0", "GPU-1"}})
		synctest.Wait()
		var threads []string
		for _, f := range l.take() {
			if f.System != nil {
				threads = append(threads, f.System.Answering...)
			}
			if f.Board != nil && f.Board.Thread == "GPU-1" {
				assert.Equal(t, nvmlproto.InvalidArgument, f.Board.Return)
			}
		}
		assert.Equal(t, []string{"#0", "#1", "0000:00:00.0", "GPU-1"}, threads)
	})
}

func TestStopFinishesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, fake: &fake{boards: 2, types: nvml.EventXID}}
		release := make(chan struct{})
		l.fake.fault(hanging[:6]+"1:00.0 power.usage", fault{hang: release})
		l.Server = New(func() (Library, string, []string) { return l.fake, "", nil }, l, "", func(error) {})
		l.ask(0, nvmlproto.GroupPower, nvmlproto.GroupXID)
		stopped := make(chan struct{})
		go func() {
			l.Stop()
			close(stopped)
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Zero(t, l.fake.called("shutdown"), "a call has not returned")
		close(release)
		<-stopped
		assert.Equal(t, " shutdown", l.fake.calls[len(l.fake.calls)-1])
	})
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	inLab(t, &fake{}, func(l *lab) {
		require.ErrorIs(t, l.Requests(bytes.NewBufferString("\x00\x00\x00\x02no")), nvmlproto.ErrFrame)
		require.NoError(t, l.Requests(bytes.NewBuffer(nil)))
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAReaderThatIsGone(t *testing.T) {
	failed := make(chan error, 2)
	s := New(func() (Library, string, []string) { return &fake{boards: 1}, "", nil }, brokenPipe{}, "", func(err error) { failed <- err })
	s.Ask(&nvmlproto.Request{ByIndex: true})
	s.Stop()
	require.Len(t, failed, 1, "once")
}
