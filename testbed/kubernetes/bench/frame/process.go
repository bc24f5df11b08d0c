// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

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

// Usage is what a process has used until a moment.
type Usage struct {
	CPU       time.Duration // of all threads that live
	RSS, anon float64       // MiB
}

// Read reads a process' usage from /proc.
func Read(pid int) (u Usage, err error) {
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
		u.CPU += time.Duration(ns)
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
			u.RSS = kib / 1024
		case "RssAnon:":
			u.anon = kib / 1024
		}
	}
	if u.RSS == 0 {
		return u, fmt.Errorf("process %d has ended", pid)
	}
	return u, nil
}

// Window is what a process used over a time.
type window struct {
	CPU       time.Duration
	Took      time.Duration
	RSS, Anon float64 // MiB, medians of the samples
	Most      float64 // MiB resident, of all samples
}

// Core is the part of a core that it took.
func (w window) Core() float64 { return w.CPU.Seconds() / w.Took.Seconds() }

// Watch measures a process.
func Watch(ctx context.Context, pid int, length time.Duration) (w window, err error) {
	first, err := Read(pid)
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
			u, err := Read(pid)
			if err != nil {
				return w, err
			}
			rss, anon = append(rss, u.RSS), append(anon, u.anon)
		case <-end.C:
			running = false
		}
	}
	last, err := Read(pid)
	if err != nil {
		return w, err
	}
	return window{CPU: last.CPU - first.CPU, Took: time.Since(begin), RSS: Median(rss), Anon: Median(anon), Most: slices.Max(rss)}, nil
}

// Sleep waits, or returns with an error when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
