// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used until a moment.
type usage struct {
	cpu       time.Duration // of all threads that live
	rss, anon float64       // MiB
}

// read reads a process' usage from /proc.
func read(pid int) (u usage, err error) {
	directory := filepath.Join("/proc", strconv.Itoa(pid))
	tasks, err := filepath.Glob(filepath.Join(directory, "task", "*", "schedstat"))
	if err != nil {
		return u, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended meanwhile
		}
		first, _, _ := bytes.Cut(text, []byte(" "))
		ns, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return u, fmt.Errorf("%s: %w", task, err)
		}
		u.cpu += time.Duration(ns)
	}
	status, err := os.ReadFile(filepath.Join(directory, "status"))
	if err != nil {
		return u, err
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			u.rss = kib / 1024
		case "RssAnon:":
			u.anon = kib / 1024
		}
	}
	if u.rss == 0 {
		return u, fmt.Errorf("process %d has ended", pid)
	}
	return u, nil
}

// window is what a process used over a time.
type window struct {
	cpu       time.Duration
	took      time.Duration
	rss, anon float64 // MiB, medians of the samples
	most      float64 // MiB resident, of all samples
}

// core is the part of a core that it took.
func (w window) core() float64 { return w.cpu.Seconds() / w.took.Seconds() }

// watch measures a process.
func watch(ctx context.Context, pid int, length time.Duration) (w window, err error) {
	first, err := read(pid)
	if err != nil {
		return w, err
	}
	begin := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(length)
	defer end.Stop()
	var rss, anon []float64
	for running := true; running; {
		select {
		case <-ctx.Done():
			return w, ctx.Err()
		case <-tick.C:
			u, err := read(pid)
			if err != nil {
				return w, err
			}
			rss, anon = append(rss, u.rss), append(anon, u.anon)
		case <-end.C:
			running = false
		}
	}
	last, err := read(pid)
	if err != nil {
		return w, err
	}
	return window{cpu: last.cpu - first.cpu, took: time.Since(begin), rss: median(rss), anon: median(anon), most: slices.Max(rss)}, nil
}

// sleep waits, or returns with an error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
