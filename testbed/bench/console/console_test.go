// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package console measures the console on the embedded store beside the same
// console on a Prometheus server that holds the same data: what its page asks, by
// how many GPUs, and the memory of the processes.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	rounds   = 3
	perRound = 40              // requests of an endpoint to each side, at the most
	patience = 3 * time.Second // for them, but for the first five
	service  = "cluster=prod&namespace=inference&service=model-0001"
)

// questions are what the page asks, by its views.
var questions = []string{
	"status", "services?limit=100&trend=true", "nodes?limit=50", "service?" + service, "pods?limit=100&" + service,
	"range?by=service&window=1h&" + service, "range?by=service&window=24h&" + service, "range?by=pod&window=24h&" + service,
}

// BenchmarkConsole prints a table. Run it with -benchtime 1x.
func BenchmarkConsole(b *testing.B) {
	for _, gpus := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			for b.Loop() {
				measure(b, gpus)
			}
		})
	}
}

func measure(b *testing.B, gpus int) {
	directory, last := day(b, gpus)
	same := filepath.Join(b.TempDir(), "prometheus")
	require.NoError(b, os.CopyFS(same, os.DirFS(filepath.Join(directory, "metrics"))))
	_ = os.Remove(filepath.Join(same, "lock"))

	p := startPrometheus(b, same)
	ours, theirs, shared, unused := free(b), free(b), free(b), free(b)
	inside := (&job{Directory: directory, GPUs: gpus, Listen: ours, Shared: shared, Next: last.Add(interval)}).start(b)
	outside := (&job{Directory: b.TempDir(), Prometheus: p.url, Listen: theirs, Shared: unused}).start(b)
	inside.line(b)
	outside.line(b)
	ended := feed(b, p, gpus, last)
	time.Sleep(2 * interval) // both have the newest samples, and are at rest

	say("%d GPUs: %d series", gpus, len(fleet(gpus)))
	took := map[string]*[2][]float64{}
	for range rounds {
		for _, q := range questions {
			if took[q] == nil {
				took[q] = &[2][]float64{}
			}
			end := time.Now().Add(2 * patience)
			for i := 0; i < perRound && (i < 5 || time.Now().Before(end)); i++ {
				for side, address := range []string{ours, theirs} {
					took[q][side] = append(took[q][side], ask(b, "http://"+address+"/api/v1/"+q))
				}
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n| question | requests | embedded p50, ms | p99 | Prometheus p50, ms | p99 | ratio p50 | p99 |\n|---|---|---|---|---|---|---|---|\n")
	for _, q := range questions {
		a, z := took[q][0], took[q][1]
		slices.Sort(a)
		slices.Sort(z)
		fmt.Fprintf(&text, "| %s | %d | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f |\n", strings.TrimSuffix(q, "&"+service), len(a),
			at(a, .5), at(a, .99), at(z, .5), at(z, .99), at(a, .5)/at(z, .5), at(a, .99)/at(z, .99))
	}
	for name, pid := range map[string]int{"embedded store and console": inside.pid, "Prometheus server": p.pid, "console alone": outside.pid} {
		all, anonymous := memory(b, pid)
		fmt.Fprintf(&text, "%s: %d MiB resident, of which %d anonymous\n", name, all, anonymous)
	}
	say("%s", text.String())
	say("%d viewers of the fleet at once: each reading alone %v ms, shared %v ms", viewers, together(b, ours), together(b, shared))
	browse(b, "embedded", ours)
	browse(b, "Prometheus", theirs)
	close(ended)
	inside.stop()
	outside.stop()
}

// say prints: a benchmark's own log ends after ten lines.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// day returns a directory with a day of a fleet, and when that ends.
func day(b *testing.B, gpus int) (string, time.Time) {
	directory := b.TempDir()
	filler := (&job{Fill: true, Directory: directory, GPUs: gpus}).start(b)
	var f filled
	require.NoError(b, json.Unmarshal(filler.line(b), &f))
	filler.stop()
	say("%d GPUs: %d samples in %.1f s, 20 of each series at once: %.0f a second", gpus, f.Samples, f.Seconds, float64(f.Samples)/f.Seconds)
	return directory, f.Last
}

// feed writes what the fleet tells from then on into a Prometheus server.
func feed(b *testing.B, p *prometheus, gpus int, last time.Time) chan struct{} {
	series, ended := fleet(gpus), make(chan struct{})
	next := last.Add(interval)
	go func() {
		for ; ; next = next.Add(interval) {
			select {
			case <-time.After(time.Until(next)):
			case <-ended:
				return
			}
			if err := p.write(batch(series, []time.Time{next})); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	return ended
}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}}

// ask asks, and returns how long the answer took, in milliseconds.
func ask(b *testing.B, url string) float64 {
	began := time.Now()
	answer, err := client.Get(url)
	require.NoError(b, err)
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	require.NoError(b, err)
	_ = answer.Body.Close()
	require.Equal(b, http.StatusOK, answer.StatusCode, "%s: %s", url, text)
	return took.Seconds() * 1000
}

// viewers are as many as max_concurrent_requests allows, of two requests each.
const viewers = 5

// together is how long it takes until all have the fleet, in milliseconds, by round.
func together(b *testing.B, address string) (took []int) {
	for range 5 {
		time.Sleep(2100 * time.Millisecond) // what is shared is forgotten
		began := time.Now()
		var group sync.WaitGroup
		for range viewers {
			for _, q := range questions[:2] {
				group.Go(func() { ask(b, "http://"+address+"/api/v1/"+q) })
			}
		}
		group.Wait()
		took = append(took, int(time.Since(began).Milliseconds()))
	}
	slices.Sort(took)
	return took
}

func at(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*q))]
}

// memory is the resident memory of a process in MiB, and the part of it that is
// no file's.
func memory(b *testing.B, pid int) (all, anonymous int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &all)
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &anonymous)
	}
	return all >> 10, anonymous >> 10
}

// browse opens the fleet and a service in a browser, if npm ci has installed what
// the console's browser tests need.
func browse(b *testing.B, name, address string) {
	web := filepath.Join(root, "extension", "gpuconsoleextension", "web")
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		say("no browser: run npm ci in extension/gpuconsoleextension/web")
		return
	}
	for _, view := range []string{"#/", "#/service?" + service + "&window=24h"} {
		cmd := exec.Command("node", "browser/load.mjs", "http://"+address+"/"+view, "9")
		cmd.Dir = web
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, "%s", out)
		say("%s, %s: %s", name, view, strings.TrimSpace(string(out)))
	}
}
