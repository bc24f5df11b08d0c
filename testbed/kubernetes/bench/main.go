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
)

var (
	// footprint does its work every five minutes: from there to there and beyond.
	agent15 = agentAt(15*time.Second, 6*time.Minute)
	agent1  = agentAt(time.Second, 0)

	entries = []*entry{
		&agent15, &agent1, &scrapeEntry, &gatewayEntry, &growthEntry, &correctnessEntry, &webhooksEntry, &webhookFaultsEntry, &startEntry, &buildEntry,
		&mapping, &components, &attribution, &summary, &delivery, &alarm, &console,
		&embedded,
	}
)

func main() {
	log.SetFlags(log.Ltime)
	w := &world{}
	only := flag.String("only", "", "entries to measure, separated by commas; the others keep what they have. Default: all")
	rendering := flag.Bool("render", false, "measure nothing: write the report, and the figures in the guides, from docs/performance.json")
	keep := flag.Bool("keep", false, "leave logs behind, and print where")
	flag.IntVar(&w.turns, "turns", 0, fmt.Sprintf("turns of each entry. Default: %d, fewer of those that take long", usualTurns))
	window := flag.Duration("window", 0, fmt.Sprintf("length of a measurement. Default: %v, more where less would be worthless", usualWindow))
	flag.DurationVar(&w.warmup, "warmup", 45*time.Second, "time before it")
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
	root, err := repository()
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

func run(ctx context.Context, w *world, only string, window time.Duration, keep bool) (err error) {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if w.root, err = repository(); err != nil {
		return err
	}
	if w.work, err = os.MkdirTemp("", "report-"); err != nil {
		return err
	}
	if keep {
		log.Print("logs are in ", w.work)
	} else {
		defer os.RemoveAll(w.work)
	}
	defer w.close()
	path := dataPath(w.root)
	if _, err := open(path); err != nil { // before hours of measuring
		return err
	}
	failed, written := 0, error(nil)
	for _, e := range chosen {
		machine, err := w.machine()
		if err != nil {
			return err
		}
		w.window = e.windowOf(window)
		got, err := e.run(ctx, w)
		if err != nil {
			return err
		}
		got.Machine = machine
		got.Command = fmt.Sprintf("make bench BENCH='-only %s -turns %d -window %v -warmup %v'", e.name, e.turnsOf(w), w.window, w.warmup)
		// Another run may have written meanwhile.
		results, err := open(path)
		if err != nil {
			return err
		}
		turns, err := open(turnsPath(w.root))
		if err != nil {
			return err
		}
		turns[e.name] = got
		if err := save(turnsPath(w.root), turns); err != nil {
			return err
		}
		if err := os.WriteFile(fullPath(w.root), full(turns), 0o644); err != nil {
			return err
		}
		results[e.name] = medians(map[string]result{e.name: got})[e.name]
		for _, r := range got.Rows {
			failed += len(r.Failed)
		}
		// After each: an interrupted run keeps what it has.
		if err := save(path, results); err != nil {
			return err
		}
		// A guide that names what is not there does not stop a measurement of hours.
		if written = write(w.root, results); written != nil {
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
func choose(only string) ([]*entry, error) {
	if only == "" {
		return entries, nil
	}
	var all []*entry
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(entries, func(e *entry) bool { return e.name == name })
		if i < 0 {
			var known []string
			for _, e := range entries {
				known = append(known, e.name)
			}
			return nil, fmt.Errorf("-only: there is no %q; there are %s", name, strings.Join(known, ", "))
		}
		all = append(all, entries[i])
	}
	return all, nil
}
