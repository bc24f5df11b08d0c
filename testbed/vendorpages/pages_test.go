// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
)

// receivers by vendor.
var receivers = map[string]receiver.Factory{
	vendors.AMD:   amdgpureceiver.NewFactory(),
	vendors.Gaudi: gaudireceiver.NewFactory(),
	vendors.Intel: intelgpureceiver.NewFactory(),
}

// total is what `make test-vendors` prints at its end.
var total struct{ pages, differences, allocations, unknown, wrong int }

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	fmt.Printf("allocations %d, unknown %d\n", total.allocations, total.unknown)
	fmt.Printf("pages %d, differences %d, wrong owners %d\n", total.pages, total.differences, total.wrong)
	os.Exit(code)
}

// fromEnv is a number that `make test-vendors` was given.
func fromEnv(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "%s=%s: use a number", name, text)
	return n
}

// kinds of differences, with an example each.
type kinds struct {
	count   map[string]int
	example map[string]string
}

var (
	ids     = regexp.MustCompile(`^page \d+: [^ ]+`)
	figures = regexp.MustCompile(`-?\b\d[\d.e+-]*`)
)

func (k *kinds) add(w *world, seed uint64, i int, difference string) {
	kind := w.node.Model[:2] + ": " + figures.ReplaceAllString(ids.ReplaceAllString(difference, "ID"), "N")
	if k.count[kind]++; k.count[kind] == 1 {
		k.example[kind] = fmt.Sprintf("seed %d, world %d, %v: %s", seed, i, w, difference)
	}
}

// TestPages: what the receivers make of simulated pages is what is true, faults included.
func TestPages(t *testing.T) {
	pages, seed := int(fromEnv(t, "PAGES", 300)), fromEnv(t, "SEED", 1)
	found := kinds{map[string]int{}, map[string]string{}}
	done, differences := 0, 0
	for i := 0; done < pages; i++ {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		vendor := []string{vendors.AMD, vendors.AMD, vendors.Gaudi, vendors.Intel}[i%4]
		if receivers[vendor] == nil || os.Getenv("VENDOR") != "" && os.Getenv("VENDOR") != vendor {
			continue
		}
		w := randomWorld(t, rng, vendor, i%8 > 3)
		for _, d := range judge(t, w) {
			found.add(w, seed, i, d)
			differences++
		}
		done += scrapes
	}
	for _, kind := range slices.Sorted(maps.Keys(found.count)) {
		t.Errorf("%d × %s\n    such as %s", found.count[kind], kind, found.example[kind])
	}
	total.pages, total.differences = done, differences
}

// judge scrapes a world and lists what differs.
func judge(t *testing.T, w *world) (differences []string) {
	s := receive(t, w)
	for page, md := range s.batches {
		truth := s.truth[page]
		want := truth.Devices
		for _, kind := range truth.Faults {
			switch kind {
			case vendors.EmptyPage, vendors.RateLimit:
				want = nil
			case vendors.BadPage: // half a page may be used, or not; nothing of it is another value
				want = partly(want)
			}
		}
		got := read(md)
		for _, d := range compare(got, want) {
			differences = append(differences, fmt.Sprintf("page %d: %s", page, d))
		}
		for id, address := range got.pci {
			if w.node.Sysfs && address == "" { // from the first page on
				differences = append(differences, fmt.Sprintf("page %d: %s: gpu.pci.address is absent", page, id))
			}
		}
	}
	return differences
}

// partly are devices of which readings may be absent, or another if parts are missing.
func partly(devices []vendors.Device) []vendors.Device {
	for i := range devices {
		for j := range devices[i].Readings {
			devices[i].Readings[j].State = vendors.Open
		}
	}
	return devices
}

// receive scrapes the pages of a world with its receiver.
func receive(t *testing.T, w *world) *served {
	s := &served{batches: map[int]pmetric.Metrics{}, truth: map[int]vendors.NodeTruth{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		text, err := w.fleet.Page(w.node.Name, at(s.page))
		s.truth[s.page] = w.fleet.TruthAt(at(s.page)).Nodes[0]
		switch {
		case errors.Is(err, vendors.ErrRateLimit):
			http.Error(out, err.Error(), http.StatusTooManyRequests)
		case err != nil:
			http.Error(out, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = out.Write(text)
		}
	}))
	server.Config.SetKeepAlivesEnabled(false) // an open connection would stop the fake clock
	server.Start()
	defer server.Close()
	synctest.Test(t, func(t *testing.T) {
		factory := receivers[w.fleet.Vendor(w.node.Name)]
		cfg := factory.CreateDefaultConfig()
		keys := map[string]any{"endpoints": []any{server.URL + "/metrics"}, "collection_interval": interval.String(), "node_name": w.node.Name}
		if w.node.Sysfs {
			dir, err := os.MkdirTemp(memory(), "sys")
			require.NoError(t, err)
			defer os.RemoveAll(dir)
			require.NoError(t, w.fleet.WriteSysfs(w.node.Name, dir, begin))
			keys["sysfs_root"] = dir
		}
		require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
		telemetry := componenttest.NewTelemetry()
		set := receivertest.NewNopSettings(factory.Type())
		set.ID = component.NewID(factory.Type())
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		r, err := factory.CreateMetrics(t.Context(), set, cfg, s)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(scrapes*interval - 1)
		require.NoError(t, r.Shutdown(t.Context()))
		require.NoError(t, telemetry.Shutdown(context.WithoutCancel(t.Context())))
	})
	require.Equal(t, scrapes, s.page, "%v", w)
	return s
}

// served counts the pages by the batches that the receiver made of them.
type served struct {
	mu      sync.Mutex
	page    int
	truth   map[int]vendors.NodeTruth
	batches map[int]pmetric.Metrics
}

func (*served) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *served) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := pmetric.NewMetrics()
	md.CopyTo(copied)
	s.batches[s.page] = copied
	s.page++
	return nil
}
