// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// mortal is the Collector's own file storage, until the process is killed.
type mortal struct {
	storage.Extension
	storage.Client
	mu   sync.RWMutex
	dead chan struct{}
}

func fileStorage(t testing.TB, folder string) *mortal {
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = folder
	ext, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(context.Background(), componenttest.NewNopHost()))
	return &mortal{Extension: ext.(storage.Extension), dead: make(chan struct{})}
}

func (m *mortal) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	var err error
	m.Client, err = m.Extension.GetClient(ctx, kind, id, name)
	return m, err
}

func (m *mortal) Batch(ctx context.Context, ops ...*storage.Operation) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	select {
	case <-m.dead:
		return os.ErrClosed
	default:
		return m.Client.Batch(ctx, ops...)
	}
}

// kill ends all writing, and copies what is on the disk by then.
func (m *mortal) kill(t *testing.T, from string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.dead)
	to := t.TempDir()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// faulty is a webhook that fails in many ways, and knows what it took.
type faulty struct {
	*hook
	mu   sync.Mutex
	took []string // ids, in order
}

func newFaulty(t *testing.T, seed uint64) *faulty {
	f := &faulty{}
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
	f.hook = newHook(t, func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch chance.IntN(10) {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		case 3:
			w.WriteHeader(http.StatusNotFound)
		default:
			f.took = append(f.took, r.Header.Get(signing.HeaderID))
		}
	})
	return f
}

// stillStored returns the deliveries that a start would resume.
func stillStored(t *testing.T, folder string) []*delivery.Delivery {
	disk := fileStorage(t, folder)
	unwritten := func(operation string, err error) { t.Errorf("%s: %v", operation, err) }
	store, _, err := spool.Open(context.Background(), host{diskID: disk}, diskID, component.NewID(metadata.Type), unwritten, nil)
	require.NoError(t, err)
	found, err := store.Load(context.Background())
	require.NoError(t, err)
	require.NoError(t, store.Close(context.Background()))
	require.NoError(t, disk.Extension.Shutdown(context.Background()))
	assert.NotEmpty(t, found.Events, "it is the storage that was used")
	return found.Deliveries
}

// endsDelivery reports whether nothing follows the record. What it returns false for
// is tried again: by this process, or by the next one.
func endsDelivery(r *audit.Record) bool {
	return r.Outcome == audit.Succeeded || r.NextAttempt.IsZero()
}

func deliveryOf(r *audit.Record) string { return r.Receiver + " " + r.Events[0].ID }

// Three kills and a shutdown in the middle of everything, on the Collector's own
// file storage: each event is delivered to each receiver, or there is a record that
// it was given up; each attempt has exactly one record.
func TestNothingIsLostByKills(t *testing.T) {
	const events, kills, receiverCount, keys = 100, 3, 3, 17
	hooks := map[string]*faulty{}
	receivers := map[string]endpoint.Config{}
	for i := range receiverCount {
		name := fmt.Sprint("r", i)
		hooks[name] = newFaulty(t, uint64(i))
		receivers[name] = to(hooks[name].URL)
	}
	fast := func(c *Config, _ *environment) {
		c.Retry = delivery.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond, MaxAttempts: 20}
		c.Storage = &diskID
	}
	folder := t.TempDir()
	f := &file{}
	open := map[string]bool{} // deliveries without an end
	t.Cleanup(func() {
		for d := range open {
			t.Log(d, "has not ended; its records:")
			for _, r := range f.copied() {
				if deliveryOf(&r) == d {
					t.Logf("  attempt %d, %s, %s, next at %v", r.Attempt, r.Outcome, r.ErrorType, r.NextAttempt)
				}
			}
		}
	})
	for life := range kills + 2 {
		disk := fileStorage(t, folder)
		f = &file{records: f.records, dead: &atomic.Bool{}}
		h := newHarness(t, receivers, fast, f.audits)
		require.NoError(t, h.Start(context.Background(), host{diskID: disk}))
		if life > kills {
			// The last life ends what the others left. An empty queue is not the end: an
			// attempt that is on its way may fail, and the delivery waits again.
			for _, r := range f.copied() {
				if endsDelivery(&r) {
					delete(open, deliveryOf(&r))
				}
			}
			for len(open) > 0 {
				if r := h.record(); endsDelivery(r) {
					delete(open, deliveryOf(r))
				}
			}
			require.NoError(t, h.Shutdown(context.Background()))
			require.NoError(t, disk.Extension.Shutdown(context.Background()))
			break
		}
		logs := plog.NewLogs()
		for i := range events {
			id := fmt.Sprintf("%d-%d", life, i)
			addPartial(logs, id, names.EventRaised, plog.SeverityNumberWarn).
				Attributes().PutStr(names.GPUEventKey, fmt.Sprint(i%keys))
			for name := range receivers {
				open[name+" "+id] = true
			}
		}
		h.send(logs)
		for range 30 * receiverCount {
			h.record()
		}
		if life == kills { // what waits for its next attempt stays in the storage
			require.NoError(t, h.Shutdown(context.Background()))
			require.NoError(t, disk.Extension.Shutdown(context.Background()))
			continue
		}
		f.mu.Lock() // between two records; file and storage die together
		folder = disk.kill(t, folder)
		f.dead.Store(true)
		f.mu.Unlock()
		shutdownNow(t, h)
		require.NoError(t, disk.Extension.Shutdown(context.Background()))
	}

	ids, attempts, end := map[string]int{}, map[string]int{}, map[string]bool{}
	interrupted := 0
	for _, r := range f.copied() {
		ids[r.ID]++
		delivery := deliveryOf(&r)
		if r.Attempt > 0 {
			attempts[fmt.Sprint(delivery, " ", r.Attempt)]++
		}
		if r.ErrorType == audit.ErrorInterrupted {
			interrupted++
		}
		if endsDelivery(&r) {
			end[delivery] = end[delivery] || r.Outcome == audit.Succeeded
		}
	}
	t.Logf("%d deliveries, %d attempts, %d of them interrupted", len(end), len(attempts), interrupted)
	for _, counted := range []map[string]int{ids, attempts} {
		for what, n := range counted {
			assert.Equal(t, 1, n, what)
		}
	}
	assert.Equal(t, events*(kills+1)*receiverCount, len(end), "delivered or given up") //nolint:testifylint // no one reads them all
	assert.Empty(t, stillStored(t, folder))
	for name, hook := range hooks {
		last, seen := map[int]int{}, map[string]bool{}
		for _, id := range hook.took {
			if seen[id] {
				continue // reported twice: no harm to the order
			}
			seen[id] = true
			var life, i int
			_, err := fmt.Sscanf(id, "%d-%d", &life, &i)
			require.NoError(t, err)
			at := life*events + i + 1
			assert.Greater(t, at, last[i%keys], "%s: %s has been overtaken", name, id)
			last[i%keys] = at
		}
		for delivery, succeeded := range end {
			if id, ours := strings.CutPrefix(delivery, name+" "); ours && succeeded {
				assert.True(t, seen[id], "%s says that it was delivered", delivery)
			}
		}
	}
}

// A database that is damaged beyond opening does not stop the start.
func TestDamagedDatabase(t *testing.T) {
	folder := t.TempDir()
	server := newHook(t, nil)
	run := func() *harness {
		disk := fileStorage(t, folder)
		h := newHarness(t, only(to(server.URL)), onDisk)
		require.NoError(t, h.Start(context.Background(), host{diskID: disk}))
		assert.Equal(t, audit.Succeeded, h.one().Outcome)
		require.NoError(t, h.Shutdown(context.Background()))
		require.NoError(t, disk.Extension.Shutdown(context.Background()))
		return h
	}
	run()
	databases, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Len(t, databases, 1)
	require.NoError(t, os.WriteFile(databases[0], []byte("this is no database, whatever its name says"), 0o600))
	h := run()
	assert.Equal(t, 1, h.logs.FilterMessageSnippet("file is damaged").Len())
}
