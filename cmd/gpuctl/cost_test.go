// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/costtable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// ledger is a console that has rows of a ledger, two lines a page.
type ledger struct {
	rows    []usage.Row
	budgets []consoleapi.CostBudget
	reason  *string
	asked   []string
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/cost" {
		_ = json.NewEncoder(w).Encode(consoleapi.StatusAnswer{})
		return
	}
	q := r.URL.Query()
	l.asked = append(l.asked, q.Encode())
	o := costreport.Options{By: costreport.By(q.Get("by")), Step: costreport.Step(q.Get("step")), ShareUnheld: q.Get("share_unheld") != ""}
	o.From, _ = time.Parse(time.RFC3339, q.Get("from")) // zero without
	o.To, _ = time.Parse(time.RFC3339, q.Get("to"))
	report := costreport.Build(l.rows, o)
	if q.Get("format") == "csv" {
		_ = costreport.WriteCSV(w, &report)
		return
	}
	a := consoleapi.CostAnswer{
		Freshness: consoleapi.Freshness{Told: consoleapi.Told{DataAge: ref(1.0)}}, CostReport: costreport.JSON(&report), Budgets: l.budgets, Reason: l.reason,
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	if to := from + 2; to < len(a.Lines) {
		a.Next, a.Lines = ref(strconv.Itoa(to)), a.Lines[from:to]
	} else {
		a.Lines = a.Lines[from:]
	}
	_ = json.NewEncoder(w).Encode(a)
}

// usageRow is some time at 2.95 an hour in an hour of a day.
func usageRow(hour int, state, tenant, model string, ms int64) usage.Row {
	r := usage.Row{
		Key: usage.Key{
			Cluster: "c", Model: model, HostType: "h100x8", CapacityType: "on_demand", State: state, Tenant: tenant,
			Currency: "USD", RateNano: 2_950_000_000, RatePer: 1, Kind: "list",
		},
		Hour: time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC), Revision: 1, Amounts: usage.Amounts{Time: ms, Carbon: -1},
	}
	if state == usage.Held {
		r.Namespace, r.Service, r.Used = "ns", "s", ms/2
	}
	return r
}

const anHour = 3_600_000

func newLedger() *ledger {
	return &ledger{rows: []usage.Row{
		usageRow(8, usage.Held, "ml", "H100", 2*anHour), usageRow(9, usage.Held, "web\x1b[2J", "H100", anHour), usageRow(9, usage.Free, "", "H100", 5*anHour),
	}}
}

func open(t *testing.T, handler http.Handler) string {
	t.Setenv(tokenVariable, "")
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// squeezed are the lines of a table without its layout.
func squeezed(out string) (all []string) {
	for _, line := range lines(out) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestCostTable(t *testing.T) {
	l := newLedger()
	l.budgets = []consoleapi.CostBudget{{Name: "ml", Kind: "cost", Used: ref(json.Number("5.9")), Limit: ref(json.Number("4")), Ratio: ref(1.475),
		Start: ref(time.Date(2026, 2, 28, 23, 0, 0, 0, time.UTC)), End: ref(time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC))}}
	url := open(t, l)
	code, out, errOut := ask("cost", "--endpoint", url, "--since", "7d")
	require.Equal(t, exitOK, code, errOut)
	assert.Equal(t, []string{
		"TENANT STATE GPU-HOURS USED IDLE COST USD IDLE-COST KWH KG-CO2 NOTES",
		"ml held 2.00 1.00 0.00 5.90 0.00 - - -",
		"web[2J held 1.00 0.50 0.00 2.95 0.00 - - -",
		"- free 5.00 - - 14.75 - - - -",
		"- stranded 0.00 - - 0.00 - 0.00 - -",
		"- unavailable 0.00 - - 0.00 - 0.00 - -",
		"- unknown 0.00 - - 0.00 - 0.00 - -",
		"- fleet 8.00 1.50 0.00 23.60 0.00 - - -",
		"",
		"Budget ml: 148 % used, 5.90 of 4.00 USD, 2026-02-28 23:00 to 2026-03-31 22:00 UTC, EXCEEDED",
	}, squeezed(out))
	assert.Contains(t, l.asked[0], "since=7d")
	assert.Len(t, l.asked, 3, "pages")
	code, _, _ = ask("cost", "--endpoint", url, "--check")
	assert.Equal(t, exitFailed, code)
	l.budgets[0].Ratio = ref(1.0)
	code, _, _ = ask("cost", "--endpoint", url, "--check")
	assert.Equal(t, exitOK, code, "all of it is not more than all of it")
	l.budgets[0].Ratio = nil
	code, _, errOut = ask("cost", "--endpoint", url, "--check")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "budget ml")
	l.budgets = nil
	code, _, errOut = ask("cost", "--endpoint", url, "--check")
	assert.Equal(t, exitUsage, code, "no budget is no success")
	assert.Contains(t, errOut, "no budget is known")
}

// An account of Slurm is another owner than a namespace of its name.
func TestCostOfJobs(t *testing.T) {
	l := newLedger()
	job := usageRow(9, usage.Held, "physics", "H100", 3*anHour)
	job.SlurmCluster = "hpc"
	l.rows = append(l.rows, job)
	code, out, errOut := ask("cost", "--endpoint", open(t, l), "--since", "7d", "--by", "namespace")
	require.Equal(t, exitOK, code, errOut)
	table := squeezed(out)
	assert.Equal(t, "CLUSTER SLURM-CLUSTER NAMESPACE STATE GPU-HOURS USED IDLE COST USD IDLE-COST KWH KG-CO2 NOTES", table[0])
	assert.Regexp(t, "^c - ns held 3.00 ", table[1])
	assert.Regexp(t, "^c hpc ns held 3.00 ", table[2])
}

// Without prices there are hours and no money.
// A name that is too long for a table is whole in the files.
func TestLongNamesOfCost(t *testing.T) {
	long := strings.Repeat("x", 256)
	url := open(t, &ledger{rows: []usage.Row{usageRow(8, usage.Held, long, "H100", anHour)}})
	_, out, _ := ask("cost", "--endpoint", url)
	assert.Equal(t, long[:62]+"… held 1.00 0.50 0.00 2.95 0.00 - - -", squeezed(out)[1])
	_, out, _ = ask("cost", "--endpoint", url, "-o", "csv")
	assert.Contains(t, out, long)
}

func TestCostWithoutPrices(t *testing.T) {
	l := newLedger()
	for i := range l.rows {
		l.rows[i].RateNano, l.rows[i].RatePer, l.rows[i].Kind = 0, 0, ""
	}
	url := open(t, l)
	_, out, _ := ask("cost", "--endpoint", url)
	got := squeezed(out)
	assert.Equal(t, "ml held 2.00 1.00 0.00 - - - - -", got[1])
	assert.Equal(t, "- fleet 8.00 1.50 0.00 - - - - -", got[7])
	assert.Equal(t, "Nothing has a price: gpu_cost has no prices, or none that matches.", got[9])
	l.rows = nil
	l.reason = ref("no_usage")
	_, out, _ = ask("cost", "--endpoint", url)
	assert.Contains(t, out, "No hour has come from gpu_cost yet.")
}

func TestCostNotes(t *testing.T) {
	l := newLedger()
	l.rows[0].RateNano, l.rows[0].RatePer, l.rows[0].Kind, l.rows[0].Model = 0, 0, "", "L40S"
	l.rows[1].Open, l.rows[1].Contested, l.rows[1].Unmeasured, l.rows[1].Tenant = true, true, anHour/2, "ml"
	l.rows = append(l.rows, usageRow(9, usage.Unknown, "", "H100", anHour))
	url := open(t, l)
	_, out, _ := ask("cost", "--endpoint", url, "--step", "hour", "--share-unheld", "proportional")
	got := squeezed(out)
	assert.Equal(t, "2026-05-01 08:00 ml held 2.00 1.00 0.00 - - - - - -", got[1])
	assert.Equal(t, "2026-05-01 09:00 ml held 1.00 0.50 0.00 2.95 0.00 20.65 - - open, unknown > 1 %, contested, 0.50 h not measured", got[6])
	assert.Equal(t, "- - fleet 9.00 1.50 0.00 - - - - - open, unknown > 1 %, contested, 2.00 h without a price, the others 20.65, 0.50 h not measured", got[11])
	assert.Contains(t, out, "Without a price: 2.00 h of L40S h100x8 on_demand.\n")
	assert.Contains(t, out, "Not closed, and growing: 2026-05-01 09:00.\n")
	assert.Contains(t, out, "More than 1 % of the fleet is unknown: 2026-05-01 09:00.\n")
}

func TestCostOfAPartOfADay(t *testing.T) {
	l := &ledger{rows: []usage.Row{usageRow(0, usage.Held, "ml", "H100", 2*anHour)}}
	l.rows[0].Day = true
	_, out, errOut := ask("cost", "--endpoint", open(t, l), "--from", "2026-05-01T12:00:00Z", "--to", "2026-05-02T12:00:00Z")
	assert.Contains(t, out, "Of days as old as the first or the last, hours are not kept: the report is from 2026-05-01 00:00 to 2026-05-02 12:00.", errOut)
	assert.Contains(t, squeezed(out)[1], "ml held 2.00")
}

func TestCostFiles(t *testing.T) {
	url := open(t, newLedger())
	code, out, errOut := ask("cost", "--endpoint", url, "-o", "csv", "--by", "service")
	require.Equal(t, exitOK, code, errOut)
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	assert.Len(t, records, 6)
	_, out, _ = ask("cost", "--endpoint", url, "-o", "json", "--by", "node-pool")
	var a consoleapi.CostAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	assert.Equal(t, "node_pool", a.By)
	assert.Equal(t, json.Number("23.6"), *a.Total.Cost)
}

func TestCostIsPricedAgain(t *testing.T) {
	l := newLedger()
	url := open(t, l)
	list := filepath.Join(t.TempDir(), "prices.yaml")
	require.NoError(t, os.WriteFile(list, []byte("- {match: {host.type: h100x*}, instance_hour: \"8\", gpus: 8}\n"), 0o600))
	code, out, errOut := ask("cost", "--endpoint", url, "--prices", list)
	require.Equal(t, exitOK, code, errOut)
	got := squeezed(out)
	assert.Equal(t, "ml held 2.00 1.00 0.00 2.00 0.00 - - -", got[1])
	assert.Equal(t, "- fleet 8.00 1.50 0.00 8.00 0.00 - - -", got[7])
	assert.Contains(t, l.asked[len(l.asked)-1], "by=row")
	_, out, _ = ask("cost", "--endpoint", url, "--prices", list, "-o", "focus", "--currency", "EUR")
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, "EUR", records[1][3])
	_, out, _ = ask("cost", "--endpoint", url, "--prices", list, "-o", "csv", "--step", "hour")
	assert.Contains(t, out, "2026-05-01T09:00:00Z")

	require.NoError(t, os.WriteFile(list, []byte("- {match: {gpu.mig.profile: 1g.10gb}, gpu_hour: \"8\"}\n"), 0o600))
	code, _, errOut = ask("cost", "--endpoint", url, "--prices", list)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "gpu.mig.profile")
}

// What was not asked for is not 0, and the owners that were are not the fleet.
func TestCostOfOneTenant(t *testing.T) {
	b := costreport.New(costreport.Options{By: costreport.ByTenant, Owned: true})
	row := usageRow(8, usage.Held, "ml", "H100", 2*anHour)
	b.Add(&row)
	report := b.Report()
	var out bytes.Buffer
	require.NoError(t, costtable.Write(&out, &consoleapi.CostAnswer{CostReport: costreport.JSON(&report)}))
	assert.Equal(t, []string{
		"TENANT STATE GPU-HOURS USED IDLE COST USD IDLE-COST KWH KG-CO2 NOTES",
		"ml held 2.00 1.00 0.00 5.90 0.00 - - -",
		"- sum 2.00 1.00 0.00 5.90 0.00 - - -",
	}, squeezed(out.String()))
}

func TestCostArguments(t *testing.T) {
	url := open(t, newLedger())
	for args, want := range map[string]string{
		"--by pod":                          "--by:",
		"--step week":                       "--step:",
		"--since 7":                         "--since 7 is no number of hours",
		"--since 7d --from 2026-05-01":      "exclude each other",
		"--to 2026-05-01":                   "belongs to --from",
		"--from yesterday":                  "is no time",
		"--from 2026-05-01 --to 2026-05-01": "is not after",
		"--share-unheld equal":              "is not proportional",
		"--currency EUR":                    "belongs to --prices",
		"--check --prices x":                "exclude each other",
		"--check -o csv":                    "no budgets",
		"--prices /nowhere":                 "no such file",
		"-o wide":                           "table, csv, focus or json",
	} {
		code, _, errOut := ask(append([]string{"cost", "--endpoint", url}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errOut, want, args)
	}
	q := costQuery{by: "tenant", from: "2026-05-01", to: "2026-05-02T12:00:00+02:00"}
	values, err := q.values(time.Now())
	require.NoError(t, err)
	assert.Equal(t, "by=tenant&from=2026-05-01T00%3A00%3A00Z&to=2026-05-02T10%3A00%3A00Z", values.Encode())
}

func TestPricesImport(t *testing.T) {
	const list = "../../internal/prices/testdata/skypilot.csv"
	code, out, errOut := ask("prices", "import", "--format", "skypilot", "--date", "2026-05-01", "--source", "list", list)
	require.Equal(t, exitOK, code, errOut)
	rules, err := prices.Read(strings.NewReader(out))
	require.NoError(t, err, "what is written is a list for gpu_cost")
	_, err = prices.New("USD", rules)
	require.NoError(t, err)
	assert.Equal(t, "2026-05-01", rules[0].ValidFrom)
	assert.Equal(t, "list", rules[0].Source)

	file := filepath.Join(t.TempDir(), "prices.yaml")
	code, message, errOut := ask("prices", "import", "--format", "skypilot", "--date", "2026-05-01", "--source", "list", "-o", file, list)
	require.Equal(t, exitOK, code, errOut)
	assert.Contains(t, message, strconv.Itoa(len(rules))+" rules")
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, out, string(written))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "prices may be confidential")
	for args, want := range map[string]string{
		"--format skypilot -o " + file + " " + list: "exists",
		list:                                   "--format skypilot",
		"--format skypilot":                    "a file",
		"--format skypilot cost.go":            "no column",
		"--format skypilot --date May " + list: "--date May",
	} {
		code, _, errOut := ask(append([]string{"prices", "import"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errOut, want, args)
	}
}
