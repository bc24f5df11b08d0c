// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The report command measures otelcol-gpu beside its peers and writes
// docs/performance.md, in which no figure is typed by hand, and the figures that
// guides repeat. What each turn gave goes to bin/, which is not committed.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/agents"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/binaries"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/correctness"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gateways"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gobench"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/webhooks"
)

var (
	// footprint does its work every five minutes: from there to there and beyond.
	agent15 = agents.At(15*time.Second, 6*time.Minute)
	agent1  = agents.At(time.Second, 0)

	entries = []*frame.Entry{
		&agent15, &agent1, &agents.ScrapeEntry, &agents.PartitionsEntry, &gateways.GatewayEntry, &gateways.GrowthEntry,
		&correctness.Entry, &webhooks.Entry, &webhooks.FaultsEntry, &binaries.StartEntry, &binaries.BuildEntry,
		&gobench.Mapping, &gobench.Components, &gobench.Vendors, &gobench.Cost, &gobench.Scheduling, &gobench.Attribution, &gobench.Inference, &gobench.Summary,
		&gobench.Delivery, &gobench.Alarm, &gobench.Console, &gobench.Embedded,
	}
)

func main() {
	log.SetFlags(log.Ltime)
	w := &frame.World{}
	only := flag.String("only", "", "entries to measure, separated by commas; the others keep what they have. Default: all")
	rendering := flag.Bool("render", false, "measure nothing: write the report, and the figures in the guides, from docs/performance.json")
	keep := flag.Bool("keep", false, "leave logs behind, and print where")
	flag.IntVar(&w.Turns, "turns", 0, fmt.Sprintf("turns of each entry. Default: %d, fewer of those that take long", frame.UsualTurns))
	window := flag.Duration("window", 0, fmt.Sprintf("length of a measurement. Default: %v, more where less would be worthless", frame.UsualWindow))
	flag.DurationVar(&w.Warmup, "warmup", 45*time.Second, "time before it")
	flag.Parse()
	if *rendering {
		if err := rerender(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, w, *only, *window, *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rerender writes what there is without measuring.
func rerender() error {
	root, err := frame.Repository()
	if err != nil {
		return err
	}
	results, err := open(dataPath(root))
	if err != nil {
		return err
	}
	turns, err := open(turnsPath(root))
	if err != nil {
		return err
	}
	if len(turns) > 0 {
		if err := os.WriteFile(fullPath(root), full(turns), 0o644); err != nil {
			return err
		}
	}
	return write(root, results)
}

func run(ctx context.Context, w *frame.World, only string, window time.Duration, keep bool) (err error) {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if w.Root, err = frame.Repository(); err != nil {
		return err
	}
	if w.Work, err = os.MkdirTemp("", "report-"); err != nil {
		return err
	}
	if keep {
		log.Print("logs are in ", w.Work)
	} else {
		defer os.RemoveAll(w.Work)
	}
	defer w.Close()
	path := dataPath(w.Root)
	if _, err := open(path); err != nil { // before hours of measuring
		return err
	}
	failed, written := 0, error(nil)
	for _, e := range chosen {
		machine, err := w.Machine()
		if err != nil {
			return err
		}
		sources, err := frame.NewTree(w.Root).Hashes(e.Sources)
		if err != nil {
			return err
		}
		w.Window = e.WindowOf(window)
		got, err := e.Run(ctx, w)
		if err != nil {
			return err
		}
		got.Machine, got.Sources = machine, sources
		got.Command = fmt.Sprintf("make bench BENCH='-only %s -turns %d -window %v -warmup %v'", e.Name, e.TurnsOf(w), w.Window, w.Warmup)
		// Another run may have written meanwhile.
		results, err := open(path)
		if err != nil {
			return err
		}
		turns, err := open(turnsPath(w.Root))
		if err != nil {
			return err
		}
		turns[e.Name] = got
		if err := save(turnsPath(w.Root), turns); err != nil {
			return err
		}
		if err := os.WriteFile(fullPath(w.Root), full(turns), 0o644); err != nil {
			return err
		}
		results[e.Name] = medians(map[string]frame.Result{e.Name: got})[e.Name]
		for _, r := range got.Rows {
			failed += len(r.Failed)
		}
		// After each: an interrupted run keeps what it has.
		if err := save(path, results); err != nil {
			return err
		}
		// A guide that names what is not there does not stop a measurement of hours.
		if written = write(w.Root, results); written != nil {
			log.Print(written)
		}
	}
	if written != nil {
		return written
	}
	if failed > 0 {
		return fmt.Errorf("%d measurements failed; the report names them", failed)
	}
	return nil
}

// choose finds entries by their names.
func choose(only string) ([]*frame.Entry, error) {
	if only == "" {
		return entries, nil
	}
	var all []*frame.Entry
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(entries, func(e *frame.Entry) bool { return e.Name == name })
		if i < 0 {
			var known []string
			for _, e := range entries {
				known = append(known, e.Name)
			}
			return nil, fmt.Errorf("-only: there is no %q; there are %s", name, strings.Join(known, ", "))
		}
		all = append(all, entries[i])
	}
	return all, nil
}
