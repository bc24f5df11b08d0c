// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// A crash ends the process alone: the next one reads everything.
func TestCrashes(t *testing.T) {
	t.Parallel()
	scenario(t, "20 times", Options{}, func(w *world) {
		for n := range 20 {
			w.Fault("0", power, []string{"segv", "abort"}[n%2])
			w.helper.Request()
			require.NotZero(w.T, w.helper.Exit(limit))
			w.Clear()
			w.helper = w.StartHelper()
			w.right(w.scrape())
		}
	})
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]string{
		"no length": "\x00\x00\x00\x00", "too long": "\x7f\x00\x00\x00", "not JSON": "\x00\x00\x00\x02no",
	} {
		scenario(t, name, Options{Boards: 1}, func(w *world) {
			_, err := w.helper.stdin.Write([]byte(bytes))
			require.NoError(w.T, err)
			assert.Equal(w.T, 1, w.helper.Exit(limit))
			assert.Contains(w.T, w.helper.Text(), "the frame cannot be read")
		})
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	type report struct {
		System nvmlproto.System   `json:"system"`
		Boards []*nvmlproto.Board `json:"boards"`
		Calls  []nvmlproto.Call   `json:"calls"`
	}
	once := func(w *world, library string) (r report, err error) {
		out, err := exec.Command(w.Helper(), "-once", "-library", library).Output()
		require.NoError(w.T, json.Unmarshal(out, &r))
		return r, err
	}
	scenario(t, "all boards", Options{}, func(w *world) {
		r, err := once(w, w.Library)
		require.NoError(w.T, err)
		assert.Equal(w.T, w.Library, r.System.Library)
		require.Len(w.T, r.Boards, 3)
		for i, b := range r.Boards {
			assert.Equal(w.T, w.Truth()[i].UUID, b.UUID)
			_, measured := Value(b.Values, "gpm.sm")
			assert.True(w.T, measured)
		}
		assert.Equal(w.T, "nvmlInit_v2", r.Calls[0].Name)
		assert.Equal(w.T, "nvmlShutdown", r.Calls[len(r.Calls)-1].Name)
	})
	scenario(t, "no driver", Options{}, func(w *world) {
		w.Fault("-", "nvmlInit_v2", "return", nvmlproto.DriverNotLoaded)
		r, err := once(w, w.Library)
		require.Error(w.T, err)
		assert.Equal(w.T, nvmlproto.DriverNotLoaded, r.System.Return)
		assert.Equal(w.T, nvmlproto.DriverNotLoaded, r.Calls[0].Return)
	})
	scenario(t, "no library", Options{}, func(w *world) {
		r, err := once(w, w.Library+".missing")
		require.Error(w.T, err)
		assert.Len(w.T, r.System.Missing, 1)
	})
}
