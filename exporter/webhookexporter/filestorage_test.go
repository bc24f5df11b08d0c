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
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
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

// Three kills in the middle of everything, on the Collector's own file storage:
// each event is delivered to each receiver, or there is a record that it was
// given up; each attempt has exactly one record.
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
	var records []audit.Record
	for life := range kills + 1 {
		disk, f := fileStorage(t, folder), &file{records: records, dead: &atomic.Bool{}}
		h := newHarness(t, receivers, fast, f.audits)
		require.NoError(t, h.Start(context.Background(), host{diskID: disk}))
		logs := plog.NewLogs()
		for i := range events {
			addPartial(logs, fmt.Sprintf("%d-%d", life, i), names.EventRaised, plog.SeverityNumberWarn).
				Attributes().PutStr(names.GPUEventKey, fmt.Sprint(i%keys))
		}
		h.send(logs)
		if life == kills {
			require.Eventually(t, func() bool {
				left := int64(0)
				for _, r := range h.set.All() {
					waiting, _ := r.Lengths()
					left += waiting
				}
				return left == 0 // what is on its way ends before the shutdown
			}, 5*patience, 10*time.Millisecond)
			require.NoError(t, h.Shutdown(context.Background()))
			records = f.copied()
			require.NoError(t, disk.Extension.Shutdown(context.Background()))
			break
		}
		for range 30 * receiverCount {
			h.record()
		}
		f.mu.Lock() // between two records; file and storage die together
		folder = disk.kill(t, folder)
		f.dead.Store(true)
		records = f.records
		f.mu.Unlock()
		shutdownNow(t, h)
		require.NoError(t, disk.Extension.Shutdown(context.Background()))
	}

	ids, attempts, end := map[string]int{}, map[string]int{}, map[string]bool{}
	interrupted := 0
	for _, r := range records {
		ids[r.ID]++
		delivery := r.Receiver + " " + r.Events[0].ID
		if r.Attempt > 0 {
			attempts[fmt.Sprint(delivery, " ", r.Attempt)]++
		}
		if r.ErrorType == audit.ErrorInterrupted {
			interrupted++
		}
		if r.Outcome == audit.Succeeded || r.NextAttempt.IsZero() {
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
