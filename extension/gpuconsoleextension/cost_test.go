// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// usageStore has rows of usage.
type usageStore struct {
	fakeStore
	rows    []usage.Row
	limits  model.Vector // of budgets
	arrived time.Time
	fail    error
	wait    chan struct{} // until it is closed; nil: do not
}

func (s *usageStore) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	if result, err := s.fakeStore.Instant(ctx, query, at); err != nil || query != queries.BudgetLimits(queries.All) {
		return result, err
	}
	return &store.Result{Value: s.limits}, nil
}

func (s *usageStore) QueryUsage(ctx context.Context, q store.UsageQuery, each func(*usage.Row)) error {
	if s.fail != nil {
		return s.fail
	}
	if s.wait != nil {
		<-s.wait
	}
	for _, r := range s.rows {
		if s.wait == nil && ctx.Err() != nil {
			return store.Errorf(store.Canceled, "the query was canceled")
		}
		if !r.Hour.Before(q.From) && r.Hour.Before(q.To) && (q.Match == nil || q.Match(&r.Key)) {
			each(&r)
		}
	}
	return nil
}

func (s *usageStore) UsageSpan() store.UsageSpan {
	span := store.UsageSpan{Kept: true, Arrived: s.arrived}
	if len(s.rows) > 0 {
		span.Oldest, span.Newest = s.rows[0].Hour, s.rows[len(s.rows)-1].Hour
	}
	return span
}

// costNow is in the last hour of costStore.
var costNow = time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)

// costStore is ten hours of two tenants, and of what had no owner.
func costStore() *usageStore {
	s := &usageStore{arrived: costNow.Add(-time.Minute)}
	for hour := 1; hour <= 10; hour++ {
		for i, owner := range []struct{ tenant, namespace, service, cluster string }{
			{"team-a", "ml", "vllm", "c1"}, {"team-b", "ml", "train", "c2"}, {"", "", "", "c1"},
		} {
			r := usage.Row{
				Key: usage.Key{
					Cluster: owner.cluster, Model: "H100", State: usage.Held, Tenant: owner.tenant, Namespace: owner.namespace, Service: owner.service,
					Currency: "USD", RateNano: 23_600_000_000, RatePer: 8, Kind: "list",
				},
				Hour: costNow.Truncate(24 * time.Hour).Add(time.Duration(hour) * time.Hour), Revision: 1,
				Amounts: usage.Amounts{Time: int64(1_000_003 * (i + 1)), Used: 500_001, Idle: 7, Energy: [3]int64{1001, 0, 3}, Carbon: 13},
			}
			if owner.tenant == "" {
				r.State, r.Used, r.Idle = usage.Free, 0, 0
			}
			r.Open = hour == 10
			s.rows = append(s.rows, r)
		}
	}
	return s
}

// sum adds decimals exactly.
func sum(t *testing.T, texts []string) string {
	total := new(big.Rat)
	for _, text := range texts {
		n, ok := new(big.Rat).SetString(text)
		require.True(t, ok, text)
		total.Add(total, n)
	}
	return total.FloatString(9)
}

// The lines of all pages, those of the file and the rows have the same sums.
func TestCostOfPagesAndFilesIsThatOfTheRows(t *testing.T) {
	s := costStore()
	c := serveAPI(t, s, costNow, nil)
	ms := int64(0)
	for _, r := range s.rows {
		ms += r.Time
	}
	wholeTime := strconv.FormatInt(ms/1000, 10) + fmt.Sprintf(".%03d000000", ms%1000)
	for _, by := range []string{"tenant", "namespace", "service", "model", "capacity", "node_pool", "row"} {
		for _, step := range []string{"", "hour", "day"} {
			query := values("by", by, "since", "24h", "limit", "4")
			if step != "" {
				query.Set("step", step)
			}
			var seconds, money []string
			lines, total := 0, ""
			for pages := 0; ; pages++ {
				require.Less(t, pages, 40)
				got := ok[consoleapi.CostAnswer](c, "cost", query)
				require.LessOrEqual(t, len(got.Lines), 4)
				for _, l := range got.Lines {
					lines++
					seconds, money = append(seconds, l.Time.String()), append(money, l.Cost.String())
				}
				assert.Equal(t, wholeTime, sum(t, []string{got.Total.Time.String()}))
				total = got.Total.Cost.String()
				if got.Next == nil {
					assert.Equal(t, got.LineCount, lines)
					break
				}
				query.Set("cursor", *got.Next)
			}
			assert.Equal(t, wholeTime, sum(t, seconds), "%s %s", by, step)
			assert.Equal(t, sum(t, []string{total}), sum(t, money))

			query.Del("limit")
			query.Del("cursor")
			query.Set("format", "csv")
			assert.Equal(t, []string{sum(t, seconds), sum(t, money)}, columns(t, c.get("cost", query), "gpu_seconds", "cost"))
		}
	}
	focus := c.get("cost", values("format", "focus", "since", "24h"))
	assert.Equal(t, `attachment; filename="gpu-cost-focus-20260303T11Z-20260304T10Z.csv"`, focus.header.Get("Content-Disposition"))
	total := ok[consoleapi.CostAnswer](c, "cost", values("since", "24h")).Total.Cost.String()
	assert.Equal(t, []string{sum(t, []string{total})}, columns(t, focus, "ListCost"))
}

// columns are the sums of some columns of a file.
func columns(t *testing.T, got answer, names ...string) (sums []string) {
	require.Equal(t, http.StatusOK, got.status, "%s", got.body)
	require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
	all, err := csv.NewReader(strings.NewReader(string(got.body))).ReadAll()
	require.NoError(t, err)
	for _, name := range names {
		var cells []string
		for i, column := range all[0] {
			if column == name {
				for _, line := range all[1:] {
					cells = append(cells, line[i])
				}
			}
		}
		require.NotEmpty(t, cells, name)
		sums = append(sums, sum(t, cells))
	}
	return sums
}

func TestCostAnswer(t *testing.T) {
	s := costStore()
	s.value = model.Vector{
		{Metric: model.Metric{queries.Budget: "ml", queries.BudgetKind: "hours"}, Value: 0.25},
		{Metric: model.Metric{queries.Budget: "all", queries.BudgetKind: "cost"}, Value: 1.5},
	}
	c := serveAPI(t, s, costNow, nil)
	got := ok[consoleapi.CostAnswer](c, "cost", values("since", "2h"))
	assert.Equal(t, time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC), *got.From)
	assert.Equal(t, costNow, *got.To)
	assert.Equal(t, []time.Time{s.rows[29].Hour}, got.OpenHours)
	assert.Equal(t, "2000.006", got.Lines[1].Time.String())
	assert.Len(t, got.Lines, 6)
	assert.Len(t, got.States, 5)
	assert.Equal(t, "USD", *got.Currency)
	assert.Equal(t, []time.Time{s.rows[0].Hour, s.rows[29].Hour}, []time.Time{*got.Oldest, *got.Newest})
	assert.Nil(t, got.Reason)
	require.Len(t, got.Budgets, 2)
	assert.Equal(t, "all", got.Budgets[0].Name)
	assert.Equal(t, 1.5, *got.Budgets[0].Ratio)
	assert.Equal(t, 60.0, *got.Freshness.DataAge)
	assert.False(t, got.Freshness.Stale)

	shared := ok[consoleapi.CostAnswer](c, "cost", values("share_unheld", "proportional"))
	assert.NotNil(t, shared.Lines[0].SharedCost)
	only := ok[consoleapi.CostAnswer](c, "cost", values("tenant", "team-b"))
	assert.Equal(t, "20000.06", only.Total.Time.String())
	assert.Equal(t, "0", only.States[1].Time.String(), "nothing without owner")
	require.Len(t, only.Lines, 1, "what has no owner is not selected, and not 0")
	assert.Equal(t, usage.Held, *only.Lines[0].State)
	sharp := ok[consoleapi.CostAnswer](serveAPI(t, s, s.rows[29].Hour, nil), "cost", values("since", "1h"))
	assert.Equal(t, s.rows[26].Hour, *sharp.From, "where no hour runs it is the last one")
	cluster := ok[consoleapi.CostAnswer](c, "cost", values("cluster", "c1", "from", "2026-03-04T05:00:00Z", "to", "2026-03-04T06:00:00Z"))
	assert.Equal(t, "4000.012", cluster.Total.Time.String())
	assert.Equal(t, "1000.003", ok[consoleapi.CostAnswer](c, "cost", values("namespace", "ml", "cluster", "c1", "since", "1h")).Total.Time.String())

	top := ok[consoleapi.CostAnswer](c, "cost", values("by", "service", "top", "1", "step", "hour", "limit", "5000"))
	assert.Len(t, top.Lines, 10*(1+1+4))
	assert.Equal(t, "train", *top.Lines[0].Group.Service)
	assert.True(t, top.Lines[1].Others)
	assert.Equal(t, got.Total.Group, top.Total.Group)
	assert.Equal(t, ok[consoleapi.CostAnswer](c, "cost", nil).Total.Cost, top.Total.Cost)
}

// Where nothing is kept, or the store fails, it is reported as that.
func TestCostWithoutUsage(t *testing.T) {
	s := &usageStore{}
	c := serveAPI(t, s, costNow, nil)
	got := ok[consoleapi.CostAnswer](c, "cost", nil)
	assert.Equal(t, consoleapi.NoUsage, *got.Reason)
	assert.Nil(t, got.Freshness.DataTime)
	assert.Nil(t, got.Currency)
	assert.Len(t, got.Lines, 4)
	assert.NotNil(t, got.Budgets)
	none := &fakeStore{}
	assert.Equal(t, consoleapi.UsageNotKept, *ok[consoleapi.CostAnswer](serveAPI(t, none, costNow, nil), "cost", nil).Reason)

	s = costStore()
	s.arrived = time.Time{}
	c = serveAPI(t, s, costNow.Add(3*time.Hour), nil)
	f := ok[consoleapi.CostAnswer](c, "cost", nil).Freshness
	assert.Equal(t, 2.5*3600, *f.DataAge, "since the end of the newest hour")
	assert.True(t, f.Stale)

	s.err = store.Errorf(store.Unavailable, "the server at url cannot be reached")
	got = ok[consoleapi.CostAnswer](serveAPI(t, s, costNow, nil), "cost", nil)
	assert.Nil(t, got.Budgets, "these are metrics")
	assert.Equal(t, "60000.18", got.Total.Time.String(), "rows are not")

	s.fail = store.Errorf(store.Busy, "5 queries of usage are running")
	answer := serveAPI(t, s, costNow, nil).get("cost", nil)
	assert.Equal(t, http.StatusBadGateway, answer.status)
	assert.Equal(t, consoleapi.UpstreamTimeout, reasonOf(t, answer).Reason)
}

// The limit of a budget comes with what it is of, also while nothing is known to be used.
func TestBudgets(t *testing.T) {
	s := costStore()
	at := func(name, kind string, value float64, more ...model.LabelValue) *model.Sample {
		m := model.Metric{queries.Budget: model.LabelValue(name), queries.BudgetKind: model.LabelValue(kind)}
		for i, label := range []model.LabelName{queries.Tenant, queries.BudgetPeriod, queries.BudgetTimezone, "source"}[:len(more)] {
			if more[i] != "" {
				m[label] = more[i]
			}
		}
		return &model.Sample{Metric: m, Value: model.SampleValue(value)}
	}
	s.value = model.Vector{at("ml", "cost", 1.1), at("fleet", "hours", 0.25), at("old", "cost", 0.4), at("moved", "cost", 0.5)}
	s.limits = model.Vector{
		at("ml", "cost", 5000.3, "ml-*", "month", "Europe/Berlin", "a"), at("ml", "cost", 5000.3, "ml-*", "month", "Europe/Berlin", "b"),
		at("fleet", "hours", 720*3600, "", "day", "UTC"), at("unpriced", "cost", 7, "x", "year", "Mars"),
		at("moved", "cost", 5, "a", "day", "UTC"), at("moved", "cost", 5, "b", "day", "UTC"),
	}
	got, err := json.Marshal(ok[consoleapi.CostAnswer](serveAPI(t, s, costNow, nil), "cost", nil).Budgets)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"name":"fleet","kind":"hours","tenant":null,"used":180,"limit":720,"ratio":0.25,"start":"2026-03-04T00:00:00Z","end":"2026-03-05T00:00:00Z"},
		{"name":"ml","kind":"cost","tenant":"ml-*","used":5500.33,"limit":5000.3,"ratio":1.1,"start":"2026-02-28T23:00:00Z","end":"2026-03-31T22:00:00Z"},
		{"name":"moved","kind":"cost","tenant":null,"used":null,"limit":null,"ratio":0.5,"start":null,"end":null},
		{"name":"old","kind":"cost","tenant":null,"used":null,"limit":null,"ratio":0.4,"start":null,"end":null},
		{"name":"unpriced","kind":"cost","tenant":"x","used":null,"limit":7,"ratio":null,"start":null,"end":null}
	]`, string(got))
}

func TestCostParametersThatAreRefused(t *testing.T) {
	c := serveAPI(t, costStore(), costNow, nil)
	for query, want := range map[string]string{
		"by=pod": "tenant, namespace", "by=": "by is nothing", "step=week": "hour, day", "step=": "step", "format=xml": "json, csv, focus",
		"share_unheld=equal": "proportional", "top=0": "1 to 50", "top=51": "50", "top=x": "top", "top=" + strings.Repeat("9", 40): "50",
		"since=0d": "24h, 7d or 4w", "since=7": "since", "since=7D": "since", "since=-1d": "since", "since=12345h": "since", "since=": "since is",
		"since=1d&from=2026-03-04": "use one of them", "from=yesterday": "2026-05-01", "from=1999-12-31": "from", "to=2026-03-04": "from is missing",
		"from=2026-03-05": "not after from", "from=2026-03-04&to=2026-03-04": "not after from", "from=2026-03-04&to=2200-01-01": "to is",
		"limit=0": "1 to 5000", "cursor=!": "cursor", "share_unheld=proportional&tenant=a": "leave out tenant", "share_unheld=proportional&namespace=": "leave out tenant",
		"format=focus&by=tenant": "leave it out", "format=focus&top=3": "all rows", "format=csv&limit=5": "pages", "format=focus&cursor=": "pages",
		"tenant=" + strings.Repeat("t", 257): "256", "q=x": "not known", "by=row&by=row": "more than once",
	} {
		got := c.query("cost", query)
		assert.Equal(t, http.StatusBadRequest, got.status, query)
		e := reasonOf(t, got)
		assert.Equal(t, consoleapi.InvalidParameter, e.Reason, query)
		assert.Contains(t, e.Detail, want, query)
	}
	got := c.query("cost", "limit=5001")
	assert.Equal(t, consoleapi.LimitExceeded, reasonOf(t, got).Reason)
	assert.Contains(t, reasonOf(t, got).Detail, "5000 items: ask")
}

// A report has a limit, whatever is asked for; the top groups alone fit into it.
func TestAReportWithTooManyLines(t *testing.T) {
	s := &usageStore{}
	for hour := range 30 {
		for service := range 2000 {
			s.rows = append(s.rows, usage.Row{
				Key: usage.Key{State: usage.Held, Service: strconv.Itoa(service)}, Hour: costNow.Truncate(time.Hour).Add(time.Duration(hour-29) * time.Hour),
				Revision: 1, Amounts: usage.Amounts{Time: int64(service), Carbon: -1},
			})
		}
	}
	c := serveAPI(t, s, costNow, nil)
	got := c.query("cost", "by=service&step=hour")
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.Equal(t, consoleapi.LimitExceeded, reasonOf(t, got).Reason)
	assert.Contains(t, reasonOf(t, got).Detail, "more than 50000 lines")
	assert.Equal(t, 2004, ok[consoleapi.CostAnswer](c, "cost", values("by", "service")).LineCount)
	top := ok[consoleapi.CostAnswer](c, "cost", values("by", "service", "step", "hour", "top", "8", "limit", "5000"))
	assert.Equal(t, 30*(8+1+4), len(top.Lines))
	assert.Equal(t, json.Number("59970"), top.Total.Time)
}

// A report waits until others are made, and no longer than a request may take.
func TestReportsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := costStore()
		s.wait = release
		c := serveAPI(t, s, costNow, func(c *Config) { c.QueryTimeout = 3 * time.Second })
		var wg sync.WaitGroup
		for range mostReports {
			wg.Go(func() { assert.Equal(t, http.StatusOK, c.query("cost", "").status) })
		}
		synctest.Wait()
		began := time.Now()
		got := c.query("cost", "format=csv")
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Equal(t, consoleapi.UpstreamTimeout, reasonOf(t, got).Reason)
		close(release)
		wg.Wait()
		assert.Equal(t, http.StatusOK, c.query("cost", "format=csv").status)
	})
}

// How much of an hour is unknown is of the fleet, whose lines a report has or not.
func TestUnknownHoursOfAReportOfOneTenant(t *testing.T) {
	s := costStore()
	unknown := s.rows[2]
	unknown.State = usage.Unknown
	s.rows = append(s.rows[:3:3], append([]usage.Row{unknown}, s.rows[3:]...)...)
	got := ok[consoleapi.CostAnswer](serveAPI(t, s, costNow, nil), "cost", values("tenant", "team-a", "since", "24h", "step", "hour"))
	require.Len(t, got.Lines, 10)
	for i, l := range got.Lines {
		assert.Equal(t, i == 0, l.UnknownHours, l.Start)
		assert.Equal(t, "team-a", *l.Group.Tenant)
	}
	assert.Equal(t, []time.Time{unknown.Hour}, got.UnknownHours)
}
