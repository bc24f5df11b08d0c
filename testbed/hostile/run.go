// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ErrSucceeded is returned by Run when an attack succeeded or could not be played.
var ErrSucceeded = errors.New("attacks succeeded, or could not be played")

// Options are what to run.
type Options struct {
	Bin     string // folder with otelcol-gpu and gpuctl
	Configs string // folder with the shipped configurations
	Dir     string // where the processes write
	Only    string // a regular expression of names; "" is all
	Out     io.Writer
}

// attack is one thing that a hostile party does.
type attack struct {
	name string
	// play returns what the attacker achieved, in one line each: nothing where it
	// was held. An error means that the attack could not be played.
	play func(ctx context.Context, l *lab) (achieved []string, err error)
}

// attackLimit bounds one attack, maxLines what is printed about one.
const (
	attackLimit = 4 * time.Minute
	maxLines    = 5
)

// Run plays all attacks, one after the other, and reports each.
func Run(ctx context.Context, o Options) error {
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	played, succeeded, failed := 0, 0, 0
	shared := &stage{options: o}
	for _, a := range attacks {
		if !only.MatchString(a.name) {
			continue
		}
		began := time.Now()
		achieved, err := playOne(ctx, o, shared, a)
		took := time.Since(began).Round(100 * time.Millisecond)
		played++
		switch {
		case err != nil:
			failed++
			fmt.Fprintf(o.Out, "NOT PLAYED %s (%v): %v\n", a.name, took, err)
		case len(achieved) > 0:
			succeeded++
			fmt.Fprintf(o.Out, "SUCCEEDED  %s (%v)\n", a.name, took)
			for i, line := range achieved {
				if i == maxLines {
					fmt.Fprintf(o.Out, "           and %d more\n", len(achieved)-i)
					break
				}
				fmt.Fprintf(o.Out, "           %.300s\n", line)
			}
		default:
			fmt.Fprintf(o.Out, "held       %s (%v)\n", a.name, took)
		}
	}
	if err := shared.clear(); err != nil {
		failed++
		fmt.Fprintf(o.Out, "NOT PLAYED to the end: %v\n", err)
	}
	if failed > 0 {
		fmt.Fprintf(o.Out, "not played: %d; what the processes wrote is in %s\n", failed, o.Dir)
	}
	fmt.Fprintf(o.Out, "attacks %d, succeeded %d\n", played, succeeded)
	if succeeded > 0 || failed > 0 {
		return ErrSucceeded
	}
	return nil
}

func playOne(ctx context.Context, o Options, shared *stage, a attack) (achieved []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, attackLimit)
	defer cancel()
	dir := filepath.Join(o.Dir, strings.ReplaceAll(a.name, " ", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &lab{Options: o, dir: dir, shared: shared}
	achieved, err = a.play(ctx, l)
	err = errors.Join(err, l.close())
	if err != nil || len(achieved) > 0 {
		err = errors.Join(err, shared.clear())
	}
	return achieved, err
}
