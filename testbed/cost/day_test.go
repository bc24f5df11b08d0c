// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

const (
	// shortDay is what is played unless COST_DAY is set.
	shortDay = 3 * time.Hour
	kills    = 20
	flush    = time.Minute
)

// downs are how long the gateway is away after a kill, in turn.
var downs = []time.Duration{0, 10 * time.Second, time.Minute, 4 * time.Minute}

// prices of the boards, in USD an hour; the third model has none.
var prices = map[string]float64{"NVIDIA H100 80GB HBM3": 2.95, "NVIDIA A100-SXM4-40GB": 1.10}

// day is the script: a fleet, in which at parts of the day things happen.
func day(lasts time.Duration) gpusim.Config {
	at := func(part float64) gpusim.Duration { // no poll, and no scrape
		return gpusim.Duration((time.Duration(part * float64(lasts))).Truncate(time.Minute) + 7*time.Second)
	}
	const minute = gpusim.Duration(time.Minute)
	pod := func(service, name string, load gpusim.Load, devices ...string) gpusim.Pod {
		return gpusim.Pod{Namespace: "ml", Name: name, Container: "main", Labels: map[string]string{"app": service}, Devices: devices, Load: load}
	}
	node := func(name, model string, devices int, refresh time.Duration, pods ...gpusim.Pod) gpusim.Node {
		return gpusim.Node{Name: name, Version: "4.6", Model: model, Devices: devices, Fields: "all", Refresh: gpusim.Duration(refresh), Pods: pods}
	}
	first, second := pod("chat", "chat-1", gpusim.Inference, "2"), pod("batch", "batch-1", gpusim.Training, "3")
	old := pod("notebook", "notebook-0", gpusim.Idle, "0")
	unseen := pod("unseen", "unseen-0", gpusim.Training, "3") // comes while the gateway is away
	return gpusim.Config{
		Seed: 1,
		Nodes: []gpusim.Node{
			node("a", "H100", 4, 30*time.Second, pod("chat", "chat-0", gpusim.Inference, "0", "1")),
			node("b", "A100-SXM4-40GB", 2, slowest, pod("train", "train-0", gpusim.Training, "0", "1")),
			node("c", "T4", 1, 0, old),
		},
		Faults: []gpusim.Fault{
			{Node: "a", Kind: gpusim.ExporterDown, After: at(.2), For: 20 * minute},
			{Node: "b", Kind: gpusim.PageCut, After: at(.3), For: 10 * minute},
			{Node: "b", Kind: gpusim.DriverReload, After: at(.5), For: minute},
			{Node: "a", Kind: gpusim.NewPod, After: at(.1), Pod: &first},
			{Node: "a", Kind: gpusim.NewPod, After: at(.4), Pod: &second, For: 45 * minute},
			{Node: "a", Kind: gpusim.NewPod, After: at(3./(kills+1)) + 2*minute, Pod: &unseen, For: 20 * minute},
			{Node: "c", Kind: gpusim.PodGone, After: at(.6), Pod: &old},
		},
	}
}

// TestDay plays a day of a fleet and compares the accounts with what was true: time to the
// millisecond beside the poll of the kubelets, energy and cost to a thousandth.
func TestDay(t *testing.T) {
	lasts := shortDay
	if text := os.Getenv("COST_DAY"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	now := &clock{}
	now.Store(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()) // when a bubble begins
	fleet, err := gpusim.New(day(lasts), now.now)
	require.NoError(t, err)
	truth, err := gpusim.New(day(lasts), now.now)
	require.NoError(t, err)
	urls := exporting(t, fleet)
	into, o := newLedger(), newOracle(flush)
	synctest.Test(t, func(t *testing.T) { play(t, lasts, now, fleet, urls, into, o) })
	j := &judge{t: t, lasts: lasts, truth: truth, into: into, oracle: o}
	j.time()
	j.energy()
	j.money()
	j.files()
	assert.Empty(t, into.wrong)
	t.Logf("%s of a day, %d kills, %d rows, %s unknown", lasts, kills, len(into.rows), o.held()[unknownOwner])
}

// play is the day in the bubble.
func play(t *testing.T, lasts time.Duration, now *clock, fleet *gpusim.Fleet, urls map[string]string, into *ledger, o *oracle) {
	config := map[string]any{
		"currency": "USD", "flush_interval": flush.String(), "storage": disk.ID.String(),
		"prices": []any{
			map[string]any{"match": map[string]any{"hw.model": "*H100*"}, "gpu_hour": "2.95"},
			map[string]any{"match": map[string]any{"hw.model": "*A100*"}, "instance_hour": "2.20", "gpus": 2},
		},
	}
	var mu sync.Mutex // guards what follows
	var g *gateway
	life := 0
	give := func(_ context.Context, md pmetric.Metrics) error {
		mu.Lock()
		defer mu.Unlock()
		if g != nil { // else it is lost
			g.take(t, md)
			o.given(md, life)
		}
		return nil
	}
	next, err := consumer.NewMetrics(give)
	require.NoError(t, err)
	begun := time.Now()
	require.Equal(t, fleet.Start().UnixNano(), begun.UnixNano())
	const offset = 2 * time.Second
	kill, back, started := lasts/(kills+1), time.Duration(0), begun
	agents := scraping(t, urls, next)
	for at := time.Duration(0); at <= lasts; at += time.Second {
		synctest.Wait()
		mu.Lock()
		switch {
		case g == nil && at >= back+offset && at%poll != 0: // so no flush is at the time of a poll
			started = time.Now()
			life++
			g = start(t, into, config)
		case g != nil && at >= kill+offset && life <= kills:
			g.stop(t, true)
			o.killed(started, time.Now(), life)
			g, kill, back = nil, kill+lasts/(kills+1), (at + downs[life%len(downs)]).Truncate(poll)
		}
		mu.Unlock()
		if at%poll == 0 {
			snapshot := fleet.TruthAt(time.Now())
			for i := range snapshot.Nodes {
				require.NoError(t, give(t.Context(), allocations(&snapshot.Nodes[i], time.Now())))
			}
		}
		time.Sleep(time.Second)
		now.Store(time.Now().UnixNano())
	}
	for _, a := range agents {
		require.NoError(t, a.Shutdown(t.Context()))
	}
	require.Equal(t, kills+1, life)
	g.stop(t, false)
}

// judge compares the rows with the truth.
type judge struct {
	t      *testing.T
	lasts  time.Duration
	truth  *gpusim.Fleet
	into   *ledger
	oracle *oracle
}

// report is what was accounted for.
func (j *judge) report(by costreport.By) costreport.Report {
	rows := slices.Collect(maps.Values(j.into.rows))
	return costreport.Build(rows, costreport.Options{By: by})
}

// services is the time of each owner, and of each state without one.
func services(r *costreport.Report, of func(*costreport.Line) int64) map[string]time.Duration {
	sums := map[string]time.Duration{}
	for i := range r.Lines {
		l := &r.Lines[i]
		name := l.Group.Service
		switch l.State {
		case usage.Free:
			name = ""
		case usage.Unknown:
			name = unknownOwner
		case usage.Stranded, usage.Unavailable:
			name = l.State
		}
		if ms := of(l); ms > 0 {
			sums[name] += time.Duration(ms) * time.Millisecond
		}
	}
	return sums
}

func (j *judge) time() {
	r := j.report(costreport.ByService)
	held := j.oracle.held()
	assert.Equal(j.t, held, services(&r, func(l *costreport.Line) int64 { return l.Time }), "time, to the millisecond")
	assert.Positive(j.t, held[unknownOwner], "a pod came or went while the gateway was away")
	missing := services(&r, func(l *costreport.Line) int64 { return l.Unmeasured })
	assert.Equal(j.t, j.oracle.unmeasured(), missing, "without utilization, to the millisecond")

	// What was true, of which the accounts know the owners at polls.
	seconds := map[string]time.Duration{}
	for _, u := range j.usage(0, j.lasts) {
		seconds[u.Service] += time.Duration(u.Seconds) * time.Second
	}
	for service, got := range held {
		if service != unknownOwner {
			slack := float64(held[unknownOwner] + 10*poll)
			assert.InDelta(j.t, float64(seconds[service]), float64(got), slack, "%q: %s, %s", service, seconds[service], got)
		}
	}
}

func (j *judge) usage(from, to time.Duration) []gpusim.UsageTruth {
	all, err := j.truth.UsageOf(from, to)
	require.NoError(j.t, err)
	return all
}

// thousandth is how far from the truth a sum may be.
const thousandth = 1e-3

func (j *judge) energy() {
	r := j.report(costreport.ByService)
	burnt := map[string]float64{}
	all := 0.0
	for _, u := range j.usage(0, j.lasts) {
		burnt[u.Service] += u.BoardMilliJoules
		all += u.BoardMilliJoules
	}
	// What no counter shows: the time before the first point and after the last one, and the
	// intervals of the counters that began again.
	const page = scrape + slowest // of one value, at most
	lost := 0.0
	for _, span := range [][2]time.Duration{{0, scrape + page}, {j.lasts - scrape - page, j.lasts}} {
		for _, u := range j.usage(span[0], span[1]) {
			lost += u.BoardMilliJoules
		}
	}
	reload := time.Duration(j.lasts / 2).Truncate(time.Minute)
	for _, u := range j.usage(reload-page, reload+2*time.Minute+slowest) {
		if u.Node == "b" {
			lost += u.BoardMilliJoules
		}
	}
	got := float64(r.Total.AllEnergy())
	assert.LessOrEqual(j.t, got, all*(1+thousandth))
	assert.GreaterOrEqual(j.t, got, (all-lost)*(1-thousandth), "%v of %v mJ, %v may be lost", got, all, lost)
	assert.Zero(j.t, r.Total.Energy[2], "nothing is integrated from power")
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Group.Service == "chat" { // which has its boards to itself
			assert.InEpsilon(j.t, burnt["chat"], float64(l.AllEnergy()), thousandth+lost/all)
		}
	}
}

func (j *judge) money() {
	r := j.report(costreport.ByModel)
	assert.Equal(j.t, "USD", r.Currency)
	require.NotEmpty(j.t, r.Unpriced)
	assert.Equal(j.t, "Tesla T4", r.Unpriced[0].Model)
	for _, u := range r.Unpriced[1:] { // before the first page
		assert.Empty(j.t, u.Model)
		assert.LessOrEqual(j.t, u.Time, int64(7*scrape/time.Millisecond))
	}
	assert.False(j.t, r.Money(&r.Total.Amounts), "of the whole fleet there is no cost")
	devices := map[string]float64{}
	for model, price := range prices {
		for i := range r.Lines {
			if l := &r.Lines[i]; l.Group.Model == model {
				assert.InDelta(j.t, float64(l.Time)/3.6e6*price, l.Cost.Float(), 1e-6)
				devices[model] += float64(l.Time) / float64(j.lasts.Milliseconds())
			}
		}
	}
	assert.InDelta(j.t, 4, devices["NVIDIA H100 80GB HBM3"], 0.02, "every board costs all the time")
	assert.InDelta(j.t, 2, devices["NVIDIA A100-SXM4-40GB"], 0.01)
}

// files compares the CSV, the counters and repeated records with the rows.
func (j *judge) files() {
	r := j.report(costreport.ByTenant)
	var file bytes.Buffer
	require.NoError(j.t, costreport.WriteCSV(&file, &r))
	lines, err := csv.NewReader(&file).ReadAll()
	require.NoError(j.t, err)
	sum := func(column string) float64 {
		at := slices.Index(lines[0], column)
		total := new(big.Rat)
		for _, l := range lines[1:] {
			if n, ok := new(big.Rat).SetString(cmp.Or(l[at], "0")); ok {
				total.Add(total, n)
			}
		}
		v, _ := total.Float64()
		return v
	}
	joules := sum("board_energy_joules") + sum("share_energy_joules") + sum("integrated_energy_joules")
	for _, same := range []struct {
		what       string
		rows, have float64
	}{
		{"CSV", float64(r.Total.Time) / 1000, sum("gpu_seconds")},
		{"CSV, money", r.Total.Cost.Float(), sum("priced_cost")},
		{"CSV, energy", float64(r.Total.AllEnergy()) / 1000, joules},
		{"counters, capacity", float64(r.Total.Time) / 1000, j.into.sum(names.CapacityTime)},
		{"counters, held", float64(r.Total.Held) / 1000, j.into.sum(names.UsageHeld)},
		{"counters, used", float64(r.Total.Used) / 1000, j.into.sum(names.UsageUsed)},
		{"counters, idle", float64(r.Total.Idle) / 1000, j.into.sum(names.UsageIdle)},
		{"counters, cost", r.Total.Cost.Float(), j.into.sum(names.CapacityCost)},
		{"counters, energy", float64(r.Total.AllEnergy()) / 1000, j.into.sum(names.CapacityEnergy)},
	} {
		assert.InDelta(j.t, same.rows, same.have, 1e-9*same.rows, same.what)
	}

	// A repeated record changes nothing, in whatever order they come.
	again := newLedger()
	records := slices.Clone(j.into.history)
	records = append(records, records...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(records), func(a, b int) { records[a], records[b] = records[b], records[a] })
	for i := range records {
		if !records[i].Open {
			again.keep(records[i])
		}
	}
	closed := maps.Clone(j.into.rows)
	maps.DeleteFunc(closed, func(_ string, r usage.Row) bool { return r.Open })
	assert.Equal(j.t, closed, again.rows, fmt.Sprint(len(records), " records"))
}
