// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/costs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const (
	// mostCostLines bounds a page of a report, and mostReportLines a report, which takes
	// 1.4 KB for each while it is made: mostReports are made at once.
	mostCostLines   = 5_000
	mostReportLines = 50_000
	mostReports     = 2
	// budgetTimeout is how long a report waits for budgets, which are metrics.
	budgetTimeout = 5 * time.Second

	costSince = "7d"
)

// Formats of a report.
const (
	formatJSON  = "json"
	formatCSV   = "csv"
	formatFOCUS = "focus"
)

// costParameters are those of a report.
var costParameters = []string{
	"by", "since", "from", "to", "step", "share_unheld", "top", "tenant", "namespace", "cluster", "limit", "cursor", "format",
}

// download is an answer that is a file.
type download struct {
	name string
	text []byte
}

// costQuestion is what a request wants.
type costQuestion struct {
	costs.Query
	format string
	limit  int
	after  *cursor
}

// reports answers what GPUs cost.
type reports struct {
	store      store.Store
	now        func() time.Time
	timeout    time.Duration // of a request
	staleAfter time.Duration
	// read reads metrics.
	read  func(context.Context, func() error) error
	turns chan struct{} // one for each report that is made
}

func (s *reports) answer(ctx context.Context, p *parameters) (any, error) {
	now := s.now()
	q := p.cost(now)
	if p.err != nil {
		return nil, p.err
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, timed(ctx, s.timeout, store.Errorf(store.Canceled, "%d other reports are being made", cap(s.turns)))
	}
	r, err := costs.Read(ctx, s.store, &q.Query)
	switch {
	case errors.Is(err, costs.ErrTooManyLines):
		return nil, exceeded(fmt.Sprintf("The report has more than %d lines: ask for a shorter time, longer steps, or the top groups alone.", q.MaxLines))
	case err != nil:
		return nil, timed(ctx, s.timeout, err)
	case q.format != formatJSON:
		return fileOf(r, q.format)
	}
	return s.pageOf(ctx, now, q, r), nil
}

// fileOf is a report as a file.
func fileOf(r *costreport.Report, format string) (*download, error) {
	write, name := costreport.WriteCSV, fileName("gpu-cost-by-"+string(r.By), &r.Options)
	if format == formatFOCUS {
		write, name = costreport.WriteFOCUS, fileName("gpu-cost-focus", &r.Options)
	}
	var text bytes.Buffer
	if err := write(&text, r); err != nil {
		return nil, err
	}
	return &download{name, text.Bytes()}, nil
}

// pageOf is a page of a report.
func (s *reports) pageOf(ctx context.Context, now time.Time, q *costQuestion, r *costreport.Report) *consoleapi.CostAnswer {
	span := s.store.UsageSpan()
	out := &consoleapi.CostAnswer{Freshness: costs.Freshness(span, now, s.staleAfter), Budgets: s.budgets(ctx, now)}
	out.Oldest, out.Newest, out.Reason = timeOf(span.Oldest), timeOf(span.Newest), whyNothing(&span)
	page := pageOf(q.after, q.limit, len(r.Lines), func(i int) string { return lineKey(&r.Lines[i]) })
	out.LineCount, out.Next = len(r.Lines), page.next
	r.Lines = r.Lines[page.from:page.to]
	out.CostReport = costreport.JSON(r)
	return out
}

// budgets are null where the metric store does not answer: reports do not depend on it.
func (s *reports) budgets(ctx context.Context, now time.Time) (budgets []consoleapi.CostBudget) {
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()
	if s.read(ctx, func() (err error) {
		budgets, err = costs.Budgets(ctx, s.store, now)
		return err
	}) != nil {
		return nil
	}
	return budgets
}

func whyNothing(s *store.UsageSpan) *string {
	why := ""
	switch {
	case !s.Kept:
		why = consoleapi.UsageNotKept
	case s.Oldest.IsZero():
		why = consoleapi.NoUsage
	default:
		return nil
	}
	return &why
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// lineKey names a line of a report.
func lineKey(l *costreport.Line) string {
	g := &l.Group
	return strings.Join([]string{
		strconv.FormatInt(l.Start.Unix(), 10), l.State, strconv.FormatBool(l.Others), g.Cluster, g.Model, g.HostType, g.Region, g.CapacityType,
		g.NodePool, g.Labels, g.Profile, g.SlurmCluster, g.Namespace, g.Service, g.Tenant, g.Pod, g.Currency, g.Kind,
		strconv.FormatInt(g.RateNano, 10), strconv.FormatInt(g.RatePer, 10),
	}, "\x00")
}

// fileName has no text from outside in it.
func fileName(what string, o *costreport.Options) string {
	return what + "-" + o.From.Format("20060102T15Z") + "-" + o.To.Format("20060102T15Z") + ".csv"
}

// cost reads the parameters of a report.
func (p *parameters) cost(now time.Time) *costQuestion {
	q := &costQuestion{format: p.oneOf("format", formatJSON, formatJSON, formatCSV, formatFOCUS)}
	q.MaxLines = mostReportLines
	by := costreport.ByTenant
	if q.format == formatFOCUS {
		by = costreport.ByRow
	}
	all := make([]string, len(costreport.Groupings))
	for i, g := range costreport.Groupings {
		all[i] = string(g)
	}
	q.By = costreport.By(p.oneOf("by", string(by), all...))
	if p.has("step") {
		q.Step = costreport.Step(p.oneOf("step", "", string(costreport.Hourly), string(costreport.Daily)))
	}
	if p.has("share_unheld") {
		q.ShareUnheld = p.oneOf("share_unheld", "", "proportional") != ""
	}
	if p.has("top") {
		q.Top = p.whole("top", costreport.MaxTop)
	}
	q.From, q.To = p.span(now)
	q.Match, q.Owners = p.rows()
	q.Owned = q.Owners != nil
	q.limit, q.after = p.limited(mostCostLines, ""), p.cursor()
	switch {
	case q.ShareUnheld && q.Owned:
		p.refuse("share_unheld", "needs all owners; leave out tenant, namespace and slurm_cluster")
	case q.format == formatFOCUS && q.By != costreport.ByRow:
		p.refuse("by", "is "+string(q.By)+", and format is focus, which has all rows; leave it out")
	case q.format == formatFOCUS && q.Top > 0:
		p.refuse("top", "is there, and format is focus, which has all rows; leave it out")
	case q.format != formatJSON && (p.has("limit") || p.has("cursor")):
		p.refuse("limit", "and cursor are of pages, and a file has all lines; leave them out")
	}
	return q
}

// rows selects rows by cluster, and owners by tenant, namespace and cluster of Slurm: then nothing that has
// no owner has a line.
func (p *parameters) rows() (match, owners func(*usage.Key) bool) {
	cluster, tenant, namespace := p.text("cluster", usage.MaxText), p.text("tenant", usage.MaxText), p.text("namespace", usage.MaxText)
	slurm, bySlurm := p.text("slurm_cluster", usage.MaxText), p.has("slurm_cluster")
	byCluster, byTenant, byNamespace := p.has("cluster"), p.has("tenant"), p.has("namespace")
	if byCluster {
		match = func(k *usage.Key) bool { return k.Cluster == cluster }
	}
	if byTenant || byNamespace || bySlurm {
		owners = func(k *usage.Key) bool {
			return k.State == usage.Held && (!byTenant || k.Tenant == tenant) && (!byNamespace || k.Namespace == namespace) &&
				(!bySlurm || k.SlurmCluster == slurm)
		}
	}
	return match, owners
}

var sinceForm = regexp.MustCompile(`^([1-9][0-9]{0,3})([hdw])$`)

// span is the time of a report: whole hours, of which the last one may be running.
func (p *parameters) span(now time.Time) (from, to time.Time) {
	if p.has("from") || p.has("to") {
		from, to = p.time("from"), now
		if p.has("to") {
			to = p.time("to")
		}
		switch {
		case p.has("since"):
			p.refuse("since", "is there, and from or to is too; use one of them")
		case p.err == nil && !from.Before(to):
			p.refuse("to", "is not after from")
		}
		return from, to
	}
	since := costSince
	if p.has("since") {
		since = p.values.Get("since")
	}
	parts := sinceForm.FindStringSubmatch(since)
	if parts == nil {
		p.refuse("since", "is "+quoted(since)+"; it is a number of hours, days or weeks, such as 24h, 7d or 4w")
		return now, now
	}
	n, _ := strconv.Atoi(parts[1]) // four digits
	length := time.Duration(n) * map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[parts[2]]
	return now.Add(time.Hour - 1).Truncate(time.Hour).Add(-length), now
}

// time is a parameter that must be there: a time, or a day, which begins at 00:00 UTC.
func (p *parameters) time(name string) time.Time {
	text := p.values.Get(name)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 2000 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	if text == "" {
		p.refuse(name, "is missing")
	}
	p.refuse(name, "is "+quoted(text)+"; it is a time such as 2026-05-01 or 2026-05-01T12:00:00Z")
	return time.Time{}
}
