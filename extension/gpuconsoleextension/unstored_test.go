// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// What the store refused is no device's silence: neither "not enabled" nor "the
// scraper is down", and no exporter, node or service is blamed for it.
func TestWhatTheStoreRefusedIsNoSilence(t *testing.T) {
	const stopped = 5 * time.Minute // so long ago the store stopped taking samples
	fleet := func(w *world) {
		w.exporter("n", 1, stopped.Seconds())
		w.gpu(gpu{tags: device("n", uuid+"0", 0, held("ml", "chat", "chat-0")), values: busy(0.5), until: stopped})
		w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1}, figures: averages(0.5), until: stopped})
	}
	nothing := func(*world) {}
	full := store.Problem{Part: store.Samples, Reason: store.DiskFull, Since: ago(stopped), Last: ago(0), Refused: 900, Detail: "make room"}
	with := func(p store.Problem, change func(*store.Problem)) store.Problem {
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		fill     func(*world)
		problem  store.Problem
		want     consoleapi.State
		blames   bool
		problems int
	}{
		"full from the start":       {nothing, full, consoleapi.NotStored, false, 1},
		"full later":                {fleet, full, consoleapi.NotStored, false, 1},
		"full, and nothing arrives": {nothing, with(full, func(p *store.Problem) { p.Refused, p.Last = 0, time.Time{} }), consoleapi.NotEnabled, false, 1},
		"just emptied":              {fleet, with(full, func(p *store.Problem) { p.Ended = ago(10 * time.Second) }), consoleapi.NotStored, false, 1},
		"emptied long ago":          {fleet, with(full, func(p *store.Problem) { p.Ended = ago(3 * time.Minute) }), consoleapi.ScraperDown, true, 0},
		"silent long before":        {fleet, with(full, func(p *store.Problem) { p.Since = ago(time.Minute) }), consoleapi.NotStored, true, 1},
		"read only":                 {fleet, with(full, func(p *store.Problem) { p.Reason = store.DiskReadOnly }), consoleapi.NotStored, false, 1},
		"max_series":                {nothing, with(full, func(p *store.Problem) { p.Reason = store.SeriesLimit }), consoleapi.NotStored, true, 1},
		"the log alone":             {fleet, with(full, func(p *store.Problem) { p.Part = store.Events }), consoleapi.ScraperDown, true, 1},
		"clocks":                    {nothing, with(full, func(p *store.Problem) { p.Reason = store.TooNew }), consoleapi.NotStored, true, 1},
		"a clock that was wrong":    {nothing, with(full, func(p *store.Problem) { p.Reason, p.Last = store.TooNew, ago(stopped) }), consoleapi.NotEnabled, true, 0},
		"duplicates":                {fleet, with(full, func(p *store.Problem) { p.Reason = store.Duplicate }), consoleapi.ScraperDown, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.fill(w)
			p := test.problem
			for _, at := range []*time.Time{&p.Since, &p.Last, &p.Ended} {
				if !at.IsZero() {
					*at = at.Add(w.now.Sub(epoch))
				}
			}
			w.store.(*tsdbStore).problems = []store.Problem{p}
			c := serveAPI(t, w.store, w.now, nil)
			got := ok[consoleapi.StatusAnswer](c, "status", nil)
			assert.Equal(t, test.want, got.State)
			require.Len(t, got.Store.Problems, test.problems)
			assert.Nil(t, got.Store.Error, "it can be read")
			services := ok[consoleapi.ServicesAnswer](c, "services", nil)
			nodes := ok[consoleapi.NodesAnswer](c, "nodes", nil)
			var blamed []consoleapi.Attention
			for _, r := range services.Summary.Reasons {
				if r.Kind == consoleapi.DownExporter || r.Kind == consoleapi.LostNode {
					blamed = append(blamed, r.Kind)
				}
			}
			if !test.blames {
				assert.Nil(t, got.Telemetry.ExportersDown)
				assert.Empty(t, got.Telemetry.DownExporters)
				assert.Empty(t, blamed)
				for _, n := range nodes.Nodes {
					assert.Equal(t, consoleapi.NodeUnknown, n.State)
				}
			} else if len(nodes.Nodes) > 0 {
				assert.Equal(t, 1, *got.Telemetry.ExportersDown)
				assert.NotEmpty(t, blamed)
			}
			for _, s := range services.Services {
				assert.True(t, s.Stale, "it was so, and is shown")
			}
		})
	}
}

// epoch stands for the moment of a world, which is not known in a table.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return epoch.Add(-d) }

// While data is current, a fault of the store is a problem and no state; and a
// store that cannot be read either reports both.
func TestAFaultOfTheStoreBesideItsData(t *testing.T) {
	for _, why := range []store.Refusal{store.DiskFull, store.SeriesLimit} {
		t.Run(string(why), func(t *testing.T) { faultBesideData(t, why) })
	}
}

func faultBesideData(t *testing.T, why store.Refusal) {
	w := newWorld(t)
	fleetOfNodes(w)
	w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1}, figures: averages(0.5)})
	p := store.Problem{Part: store.Samples, Reason: why, Since: w.now.Add(-20 * time.Second), Last: w.now, Refused: 7, Detail: "make room"}
	w.store.(*tsdbStore).problems = []store.Problem{p, {Part: store.Events, Reason: store.DiskFull, Since: p.Since, Refused: 1}, {Part: store.Samples, Reason: store.Duplicate, Since: p.Since, Last: w.now, Refused: 1}}
	got := ok[consoleapi.StatusAnswer](serveAPI(t, w.store, w.now, nil), "status", nil)
	assert.Equal(t, consoleapi.Ready, got.State)
	require.Len(t, got.Store.Problems, 2)
	assert.Equal(t, consoleapi.StoreProblem{Part: "samples", Reason: string(why), Since: p.Since.UTC(), Last: pointer(p.Last.UTC()), Refused: 7, Detail: "make room"}, got.Store.Problems[0])

	f := &fakeStore{problems: []store.Problem{p}}
	f.set(&store.Error{Kind: store.Internal, Err: errors.New("input/output error")})
	got = ok[consoleapi.StatusAnswer](serveAPI(t, f, w.now, nil), "status", nil)
	assert.Equal(t, consoleapi.StoreUnreachable, got.State)
	assert.Len(t, got.Store.Problems, 1)
}
