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
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// BenchmarkConsole measures a fleet, and has a benchmark for each thing that came
// of it. Run it with -benchtime 1x.
func BenchmarkConsole(b *testing.B) {
	for _, gpus := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) { measure(b, gpus) })
	}
}

// figures are what is reported, by unit.
type figures map[string]float64

// report is a benchmark that took place before.
func report(b *testing.B, name string, all figures) {
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(0, "ns/op") // means nothing here
		for unit, value := range all {
			b.ReportMetric(value, unit)
		}
	})
}

func measure(b *testing.B, gpus int) {
	directory, last, samples := day(b, gpus)
	onDisk := size(b, directory)
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
	alone, refusedAlone := together(ours)
	shares, refusedShared := together(shared)
	memories := figures{
		"series": float64(len(fleet(gpus))), "day-disk-MiB": onDisk / (1 << 20), "disk-B/sample": onDisk / float64(samples),
	}
	for name, pid := range map[string]int{"embedded": inside.pid, "prometheus": p.pid, "console-alone": outside.pid} {
		all, anonymous := memory(b, pid)
		memories[name+"-MiB"], memories[name+"-anonymous-MiB"] = float64(all), float64(anonymous)
	}
	memories["ratio"] = memories["embedded-MiB"] / (memories["prometheus-MiB"] + memories["console-alone-MiB"])
	pages := browse(b, ours, theirs)
	close(ended)
	inside.stop()
	outside.stop()

	for _, q := range questions {
		a, z := took[q][0], took[q][1]
		slices.Sort(a)
		slices.Sort(z)
		report(b, strings.TrimRight(strings.TrimSuffix(q, service), "?&"), figures{
			"requests": float64(len(a)), "embedded-p50-ms": at(a, .5), "embedded-p99-ms": at(a, .99), "prometheus-p50-ms": at(z, .5), "prometheus-p99-ms": at(z, .99),
			"p50-ratio": at(a, .5) / at(z, .5), "p99-ratio": at(a, .99) / at(z, .99),
		})
	}
	fives := figures{"alone-refused": float64(refusedAlone), "shared-refused": float64(refusedShared)}
	if refusedShared == 0 { // what is refused is quick, and proves nothing
		fives["shared-ms"], fives["shared-max-ms"] = at(shares, .5), at(shares, 1)
	}
	if refusedAlone == 0 {
		fives["alone-ms"], fives["alone-max-ms"] = at(alone, .5), at(alone, 1)
	}
	if refusedAlone+refusedShared == 0 {
		fives["ratio"] = at(shares, .5) / at(alone, .5)
	}
	report(b, "viewers", fives)
	report(b, "memory", memories)
	for _, view := range slices.Sorted(maps.Keys(pages)) {
		report(b, "browser/"+view, pages[view])
	}
}

// size is how much a directory's files take.
func size(b *testing.B, directory string) (bytes float64) {
	require.NoError(b, filepath.WalkDir(directory, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += float64(info.Size())
		}
		return err
	}))
	return bytes
}

// day returns a directory with a day of a fleet, when that ends, and how many
// samples it has.
func day(b *testing.B, gpus int) (string, time.Time, int) {
	directory := b.TempDir()
	filler := (&job{Fill: true, Directory: directory, GPUs: gpus}).start(b)
	var f filled
	require.NoError(b, json.Unmarshal(filler.line(b), &f))
	filler.stop()
	return directory, f.Last, f.Samples
}

// feed writes what the fleet reports from then on into a Prometheus server.
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
	took, err := try(url)
	require.NoError(b, err)
	return took
}

// try sends a request; an invalid answer is an error.
func try(url string) (ms float64, err error) {
	began := time.Now()
	answer, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	ms = time.Since(began).Seconds() * 1000
	_ = answer.Body.Close()
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return ms, err
}

// viewers are as many as max_concurrent_requests allows, of two requests each.
const viewers = 5

// together is how long it takes until all have the fleet, in milliseconds, by round,
// and how many requests were not answered: a store that has too much to do refuses them.
func together(address string) (took []float64, refused int) {
	for range 5 {
		time.Sleep(2100 * time.Millisecond) // what is shared is forgotten
		began := time.Now()
		var group sync.WaitGroup
		var failed atomic.Int32
		for range viewers {
			for _, q := range questions[:2] {
				group.Go(func() {
					if _, err := try("http://" + address + "/api/v1/" + q); err != nil {
						failed.Add(1)
					}
				})
			}
		}
		group.Wait()
		took = append(took, float64(time.Since(began).Milliseconds()))
		refused += int(failed.Load())
	}
	slices.Sort(took)
	return took, refused
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

// loaded is what browser/load.mjs prints.
var loaded = regexp.MustCompile(`^(\d+) requests, (\d+) bytes .*; (\d+) ms \(median\)`)

// browse opens the fleet and a service in a browser, if npm ci has installed what
// the console's browser tests need. It returns figures by view.
func browse(b *testing.B, ours, theirs string) map[string]figures {
	web := filepath.Join(root, "extension", "gpuconsoleextension", "web")
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		fmt.Println("no browser: run npm ci in extension/gpuconsoleextension/web")
		return nil
	}
	pages := map[string]figures{}
	for name, view := range map[string]string{"fleet": "#/", "service": "#/service?" + service + "&window=24h"} {
		f := figures{}
		for side, address := range map[string]string{"embedded": ours, "prometheus": theirs} {
			cmd := exec.Command("node", "browser/load.mjs", "http://"+address+"/"+view, "9")
			cmd.Dir = web
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, "%s", out)
			got := loaded.FindSubmatch(out)
			require.NotNil(b, got, "%s", out)
			for i, unit := range []string{"requests", side + "-bytes", side + "-ms"} {
				f[unit], err = strconv.ParseFloat(string(got[i+1]), 64)
				require.NoError(b, err)
			}
		}
		f["ratio"] = f["embedded-ms"] / f["prometheus-ms"]
		pages[name] = f
	}
	return pages
}
