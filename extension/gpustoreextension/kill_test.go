// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// childDirectory marks the test as the process to be killed.
const childDirectory = "GPU_STORE_TEST_DIRECTORY"

// What Append, AppendEvents and AppendUsage acknowledged is there after kill -9, and the
// directory is not locked.
func TestKill9LosesNothingThatWasAcknowledged(t *testing.T) {
	if directory := os.Getenv(childDirectory); directory != "" {
		writeUntilKilled(t, directory)
		return
	}
	directory := t.TempDir()
	from := time.Now().Truncate(time.Second).Add(-time.Hour)
	acknowledged := 0
	unwritten := map[int]bool{} // rows that a kill left out, though their event was stored
	for round := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), childDirectory+"="+directory, "FIRST="+strconv.Itoa(acknowledged), "FROM="+strconv.FormatInt(from.Unix(), 10))
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for target := acknowledged + 40 + 7*round; acknowledged < target && lines.Scan(); {
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				require.Equal(t, acknowledged, n)
				acknowledged++
			}
		}
		require.NoError(t, child.Process.Kill())
		// What it wrote before the signal came is acknowledged too.
		for lines.Scan() {
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				require.Equal(t, acknowledged, n)
				acknowledged++
			}
		}
		require.Error(t, child.Wait())

		g := begin(t, configured(t, func(c *Config) { c.Directory = directory }))
		r, err := g.Range(t.Context(), `m`, store.Range{Start: from, End: from.Add(time.Duration(acknowledged-1) * time.Second), Step: time.Second})
		require.NoError(t, err)
		m := r.Value.(model.Matrix)
		require.Len(t, m, 1)
		require.Len(t, m[0].Values, acknowledged)
		for i, p := range m[0].Values {
			require.Equal(t, model.SampleValue(i), p.Value)
		}
		events := g.Events(store.EventQuery{Limit: 10_000})
		assert.GreaterOrEqual(t, len(events), acknowledged)
		assert.LessOrEqual(t, len(events), acknowledged+1)
		for i, e := range events {
			assert.Equal(t, strconv.Itoa(len(events)-1-i), e.ID)
		}
		var want []usage.Row
		for i := range events {
			if !unwritten[i] {
				want = append(want, rowOfUsage(from, i))
			}
		}
		rows := g.rows(t)
		if last := len(events) - 1; last == acknowledged && len(rows) == len(want)-1 {
			unwritten[last], want = true, want[:len(rows)] // killed between the event and its row
		}
		assert.Equal(t, want, rows)
		require.NoError(t, g.Shutdown(t.Context()))
		// The one in flight may have been stored: the next round begins behind it.
		acknowledged = len(events)
		if r, err = g.Instant(t.Context(), "1", time.Now()); err == nil {
			t.Fatal("a stopped store answers", r)
		}
	}
}

func writeUntilKilled(t *testing.T, directory string) {
	first, err := strconv.Atoi(os.Getenv("FIRST"))
	require.NoError(t, err)
	seconds, err := strconv.ParseInt(os.Getenv("FROM"), 10, 64)
	require.NoError(t, err)
	from := time.Unix(seconds, 0)
	g := begin(t, configured(t, func(c *Config) { c.Directory = directory }))
	for i := first; ; i++ {
		a, err := g.Append(context.Background(), []store.Series{sample("m", from.Add(time.Duration(i)*time.Second), float64(i))})
		require.NoError(t, err)
		require.Empty(t, a.Refused)
		require.NoError(t, g.AppendEvents(context.Background(), []*store.Event{{ID: strconv.Itoa(i), Name: "e"}}))
		require.NoError(t, g.AppendUsage(context.Background(), []usage.Row{rowOfUsage(from, i)}))
		fmt.Println(i)
	}
}

// rowOfUsage is the i-th row of an hour.
func rowOfUsage(at time.Time, i int) usage.Row {
	return usage.Row{
		Key: usage.Key{State: usage.Held, Service: fmt.Sprintf("%06d", i)}, Hour: at.UTC().Truncate(time.Hour), Revision: 1,
		Amounts: usage.Amounts{Time: int64(i), Carbon: -1},
	}
}

// rows are all rows of usage.
func (g *gpuStore) rows(t *testing.T) (rows []usage.Row) {
	require.NoError(t, g.QueryUsage(t.Context(), store.UsageQuery{To: time.Now().Add(time.Hour)}, func(r *usage.Row) { rows = append(rows, *r) }))
	return rows
}
