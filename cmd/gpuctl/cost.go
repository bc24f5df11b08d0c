// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/costtable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	outputCSV   = "csv"
	outputFOCUS = "focus"

	costLines = 5000 // of a page
)

const costLong = `GPU time, cost, energy and carbon dioxide of owners, of what has no owner (free,
stranded, unavailable, unknown), and of the fleet, which is the last line. With --tenant or
--namespace there are only these owners, and their sum. A cost is absent where a part of the
time has no price; the hours without one are named. Hours are whole ones of UTC. The ledger
is that of gpu_cost, which keeps hours for 35 days, and days after that.

-o csv has seconds, joules and grams, exact and without the fleet, so that columns add up.
-o focus has the columns of FOCUS 1.2 and the allocations of 1.3, a line for each row of the
ledger and day: it divides what boards cost, and is no bill.
--prices computes the costs of another price list, of the rules as they are under prices of
gpu_cost, from its valid_from on. It cannot compare the GPUs of an instance with the node.
--check is about budgets: 1 where more than one is used than it is.
` + consoleLong + `Exit code: 0 well, 1 with --check where a budget is exceeded, 2 nothing is known (wrong
arguments, no console there, no budget, or one of which the use is not known).`

// costQuery is what is asked for.
type costQuery struct {
	by, step, since, from, to          string
	tenant, namespace, cluster, shares string
	prices, currency                   string
	top                                int
}

func newCost() *command {
	c := &consoleClient{more: []string{outputCSV, outputFOCUS}}
	var q costQuery
	return &command{
		name: "cost", args: "[--by tenant] [--since 7d | --from TIME --to TIME] [--step hour|day] [--check] [--endpoint URL] [--token-file FILE] [-o csv]",
		short: "GPU hours, cost and energy by tenant, service or model, and what nothing used",
		long:  costLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			c.checkFlag(f)
			f.StringVar(&q.by, "by", string(costreport.ByTenant), "tenant, namespace, service, model, capacity, node-pool or row")
			f.StringVar(&q.since, "since", "", "how far back, as 24h, 7d or 4w; without it and --from: 7d")
			f.StringVar(&q.from, "from", "", "the first hour, as 2026-05-01 or 2026-05-01T12:00:00Z")
			f.StringVar(&q.to, "to", "", "the end, likewise; without it: now")
			f.StringVar(&q.step, "step", "", "hour or day: a line for each")
			f.StringVar(&q.tenant, "tenant", "", "only of this tenant: then nothing without owner")
			f.StringVar(&q.namespace, "namespace", "", "only of this namespace: likewise")
			f.StringVar(&q.cluster, "cluster", "", "only of this cluster")
			f.IntVar(&q.top, "top", 0, "how many groups have lines, those with the greatest cost; 0 is all")
			f.StringVar(&q.shares, "share-unheld", "", "proportional: spread the cost of what has no owner over the owners by their time")
			f.StringVar(&q.prices, "prices", "", "file with other prices to compute costs of")
			f.StringVar(&q.currency, "currency", "", "with --prices: their currency; without it that of the ledger, else USD")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			values, err := q.values(time.Now())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			switch {
			case q.prices != "" && c.check:
				return errors.New("--prices and --check exclude each other: budgets are of the prices of the ledger")
			case q.prices != "":
				return reprice(ctx, s, c, &q, values)
			case c.output == outputCSV || c.output == outputFOCUS:
				if c.check {
					return errors.New("--check needs -o table or -o json: the files have no budgets")
				}
				values.Set("format", c.output)
				if c.output == outputFOCUS {
					values.Set("by", string(costreport.ByRow)) // it has all of them
					values.Set("step", cmp.Or(q.step, string(costreport.Daily)))
				}
				return c.get(ctx, "cost", values, s.out)
			}
			all, err := costOf(ctx, c, values, nil)
			if err != nil {
				return err
			}
			notes(ctx, c, s.err, all.Freshness)
			if c.output == outputJSON {
				err = writeIndented(s.out, all)
			} else {
				err = costtable.Write(s.out, all)
			}
			return cmp.Or(err, checkBudgets(c, all))
		}),
	}
}

// values are the parameters of the API, after what can be wrong with them.
func (q *costQuery) values(now time.Time) (url.Values, error) {
	o := costreport.Options{By: costreport.By(strings.ReplaceAll(q.by, "-", "_")), Step: costreport.Step(q.step), Top: q.top}
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("--%s", safetext.Strip(err.Error(), 200))
	}
	values := url.Values{"by": {string(o.By)}}
	for key, value := range map[string]string{"step": q.step, "tenant": q.tenant, "namespace": q.namespace, "cluster": q.cluster, "share_unheld": q.shares} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.top > 0 {
		values.Set("top", strconv.Itoa(q.top))
	}
	switch {
	case q.shares != "" && q.shares != "proportional":
		return nil, fmt.Errorf("--share-unheld %s is not proportional", safetext.Strip(q.shares, 50))
	case q.currency != "" && q.prices == "":
		return nil, errors.New("--currency belongs to --prices: nothing is converted")
	case q.since != "" && (q.from != "" || q.to != ""):
		return nil, errors.New("--since and --from exclude each other")
	case q.to != "" && q.from == "":
		return nil, errors.New("--to belongs to --from")
	case q.from == "":
		since := cmp.Or(q.since, "7d")
		if !sinceForm.MatchString(since) {
			return nil, fmt.Errorf("--since %s is no number of hours, days or weeks as in 24h, 7d or 4w", safetext.Strip(since, 50))
		}
		values.Set("since", since)
		return values, nil
	}
	from, err := parseInstant("--from", q.from)
	if err != nil {
		return nil, err
	}
	to := now
	if q.to != "" {
		if to, err = parseInstant("--to", q.to); err != nil {
			return nil, err
		}
	}
	if !from.Before(to) {
		return nil, fmt.Errorf("--to: %s is not after --from, %s", to.UTC().Format(time.RFC3339), from.UTC().Format(time.RFC3339))
	}
	values.Set("from", from.UTC().Format(time.RFC3339))
	values.Set("to", to.UTC().Format(time.RFC3339))
	return values, nil
}

var sinceForm = regexp.MustCompile(`^[1-9][0-9]{0,3}[hdw]$`)

// parseInstant reads a day of UTC, or a time.
func parseInstant(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %s is no time as in 2026-05-01 or 2026-05-01T12:00:00Z", flag, safetext.Strip(text, 50))
}

// costOf asks for all pages. each takes the lines in place of the answer; nil keeps them.
func costOf(ctx context.Context, c *consoleClient, query url.Values, each func(*consoleapi.CostLine) error) (*consoleapi.CostAnswer, error) {
	all := &consoleapi.CostAnswer{CostReport: consoleapi.CostReport{Lines: []consoleapi.CostLine{}}}
	query.Set("limit", strconv.Itoa(costLines))
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.CostAnswer
		if err := c.get(ctx, "cost", query, &page); err != nil {
			return nil, err
		}
		next, lines := page.Next, page.Lines
		page.Lines, page.Next = all.Lines, nil
		if each == nil {
			page.Lines = append(page.Lines, lines...)
		} else {
			for i := range lines {
				if err := each(&lines[i]); err != nil {
					return nil, err
				}
			}
		}
		*all = page
		return next, nil
	})
}

// checkBudgets fails if a budget is exceeded. That none is known is no success.
func checkBudgets(c *consoleClient, all *consoleapi.CostAnswer) error {
	if !c.check {
		return nil
	}
	if slices.ContainsFunc(all.Budgets, costtable.Over) {
		return errFailed
	}
	if len(all.Budgets) == 0 {
		return errors.New("no budget is known: set budgets of gpu_cost")
	}
	if i := slices.IndexFunc(all.Budgets, func(b consoleapi.CostBudget) bool { return b.Ratio == nil }); i >= 0 {
		return fmt.Errorf("how much of the budget %s is used is not known: nothing of it has a price", name(all.Budgets[i].Name))
	}
	return nil
}

// reprice reports rows of the ledger with the prices of a file.
func reprice(ctx context.Context, s streams, c *consoleClient, q *costQuery, values url.Values) error {
	rules, err := readPriceList(q.prices)
	if err != nil {
		return err
	}
	o := costreport.Options{By: costreport.By(values.Get("by")), Step: costreport.Step(q.step), Top: q.top, ShareUnheld: q.shares != "", Owned: q.tenant != "" || q.namespace != ""}
	if c.output == outputFOCUS {
		o.By, o.Top = costreport.ByRow, 0
		o.Step = costreport.Step(cmp.Or(q.step, string(costreport.Daily)))
	}
	currency := q.currency
	if currency == "" {
		currency = "USD"
		values.Set("limit", "1")
		var first consoleapi.CostAnswer
		if err := c.get(ctx, "cost", values, &first); err != nil {
			return err
		}
		if first.Currency != nil {
			currency = *first.Currency
		}
	}
	p, err := costreport.NewRepricer(currency, rules)
	if err != nil {
		return fmt.Errorf("%s: %w", safetext.Strip(q.prices, 200), err)
	}
	if o.Step == costreport.Hourly {
		p.Step = costreport.Hourly
	}
	values.Set("by", string(costreport.ByRow))
	values.Set("step", string(p.Step))
	values.Del("share_unheld")
	values.Del("top")
	b := costreport.New(o)
	all, err := costOf(ctx, c, values, func(l *consoleapi.CostLine) error {
		if l.Group.Pod == nil {
			return nil // a state that there is nothing of
		}
		r, err := costreport.Row(l, p.Step)
		if err != nil {
			return fmt.Errorf("%s is no console that gpuctl understands: %w", c.base.Host, err)
		}
		p.Price(&r)
		b.Add(&r)
		return nil
	})
	if err != nil {
		return err
	}
	report := b.Report()
	switch c.output {
	case outputCSV:
		return costreport.WriteCSV(s.out, &report)
	case outputFOCUS:
		return costreport.WriteFOCUS(s.out, &report)
	}
	notes(ctx, c, s.err, all.Freshness)
	opened, unknown, parts, from, to := all.OpenHours, all.UnknownHours, all.PartDays, all.From, all.To
	all.CostReport, all.Budgets = costreport.JSON(&report), []consoleapi.CostBudget{}
	all.OpenHours, all.UnknownHours, all.PartDays, all.From, all.To = opened, unknown, parts, from, to
	if c.output == outputJSON {
		return writeIndented(s.out, all)
	}
	return costtable.Write(s.out, all)
}

// readPriceList reads the rules of a file.
func readPriceList(path string) ([]prices.RuleConfig, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rules, err := prices.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", safetext.Strip(path, 200), err)
	}
	return rules, nil
}
