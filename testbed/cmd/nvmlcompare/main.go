// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Nvmlcompare compares what the nvml receiver reads on a machine with an NVIDIA GPU with
// nvidia-smi: nvidia-smi -q -x, otelcol-gpu-nvml -once, nvidia-smi -q -x. Its last line is
// "N compared, N differ, N absent here, N absent there"; a difference fails.
//
//	nvmlcompare                            on an idle machine
//	nvmlcompare -load 'gpu_burn 60'        also while that command runs
//	nvmlcompare -runs 1000                 what each call of the library takes
//	nvmlcompare -page http://localhost:9464/metrics -wait 20s
//	                                       a collector's page in place of the helper
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

type options struct {
	smi, helper, library, page, load string
	wait, warm                       time.Duration
	runs                             int
}

func main() {
	var o options
	flag.StringVar(&o.smi, "smi", "nvidia-smi", "the program")
	flag.StringVar(&o.helper, "helper", beside("otelcol-gpu-nvml"), "path of otelcol-gpu-nvml")
	flag.StringVar(&o.library, "library", "", "path of libnvidia-ml.so.1; empty: where the helper looks")
	flag.StringVar(&o.page, "page", "", "a collector's Prometheus page, in place of the helper")
	flag.DurationVar(&o.wait, "wait", 20*time.Second, "with -page: time for the collector to scrape, more than its interval")
	flag.StringVar(&o.load, "load", "", "a shell command that keeps GPUs busy: compared idle, then under it")
	flag.DurationVar(&o.warm, "warm", 10*time.Second, "with -load: time until the load is even")
	flag.IntVar(&o.runs, "runs", 0, "run the helper so often, and print what each call takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nvmlcompare:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// beside is the path of a program next to this one.
func beside(name string) string {
	path, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

// run does what the options ask, and returns whether nothing differs.
func run(ctx context.Context, o options, w io.Writer) (bool, error) {
	if o.runs > 0 {
		return true, o.cost(ctx, w)
	}
	total, err := o.compare(ctx)
	if err != nil || o.load == "" {
		total.print(w)
		return total.differ == 0, err
	}
	_, _ = fmt.Fprintln(w, "idle:")
	total.print(w)
	load := exec.CommandContext(ctx, "sh", "-c", o.load)
	load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := load.Start(); err != nil {
		return false, fmt.Errorf("-load: %w", err)
	}
	defer func() {
		_ = syscall.Kill(-load.Process.Pid, syscall.SIGTERM)
		_ = load.Wait()
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(o.warm):
	}
	loaded, err := o.compare(ctx)
	if err != nil {
		return false, err
	}
	_, _ = fmt.Fprintln(w, "under load:")
	loaded.print(w)
	return total.differ+loaded.differ == 0, nil
}

// compare reads nvidia-smi, ours, and nvidia-smi again.
func (o options) compare(ctx context.Context) (result, error) {
	before, err := o.readSMI(ctx)
	if err != nil {
		return result{}, err
	}
	ours, has, err := o.ours(ctx)
	if err != nil {
		return result{}, err
	}
	after, err := o.readSMI(ctx)
	if err != nil {
		return result{}, err
	}
	return compare(before, ours, after, has), nil
}

func (o options) readSMI(ctx context.Context) (side, error) {
	text, err := output(ctx, o.smi, "-q", "-x")
	if err != nil {
		return nil, err
	}
	return readSMI(bytes.NewReader(text))
}

// ours is what the helper or the page has, and which quantities it can have.
func (o options) ours(ctx context.Context) (side, func(quantity) bool, error) {
	if o.page == "" {
		_, s, err := o.once(ctx)
		return s, func(quantity) bool { return true }, err
	}
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(o.wait):
	}
	families, err := collector.Scrape(ctx, o.page)
	if err != nil {
		return nil, nil, err
	}
	return readPage(families), func(q quantity) bool { return q.page != "" || q.name == "uuid" }, nil
}

func (o options) once(ctx context.Context) (once, side, error) {
	arguments := []string{"-once"}
	if o.library != "" {
		arguments = append(arguments, "-library", o.library)
	}
	text, err := output(ctx, o.helper, arguments...)
	if err != nil && len(text) == 0 {
		return once{}, nil, err
	}
	return readOnce(text)
}

// cost runs the helper often.
func (o options) cost(ctx context.Context, w io.Writer) error {
	c := costs{}
	for range o.runs {
		one, _, err := o.once(ctx)
		if err != nil {
			return err
		}
		c.add(one.Calls)
	}
	c.print(w, o.runs)
	return nil
}

func output(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	text, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", program, arguments, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return text, err
}
