// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

// vital are the fields of which one has to be on a page for its boards to be ok. Those of
// errors since the driver was loaded are read for boards, not for instances.
var vital = []string{
	"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_ROW_REMAP_FAILURE",
	"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_EXP_XID_ERRORS_COUNT", "dcgm_xid_errors", "dcgm_ecc_dbe_volatile_total",
}

// unwell are the boards of pages that report a fault.
var unwell = map[string]string{"names-of-46.prom": verdict("degraded", []string{"dcgm_watch"}, "run_diagnostics")}

// Pages as exporters in the field have them: a board without a fault is ok, with a coverage,
// where the page has something that decides about its health, and otherwise unknown. Nothing
// is raised for what a page lacks.
func TestPagesOfTheField(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "receiver", "dcgmreceiver", "testdata", "corpus", "own", "*.prom"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	real, err := filepath.Glob(filepath.Join(root, "..", "shared", "data", "dcgm", "*.prom"))
	require.NoError(t, err)
	known := 0
	for _, page := range append(pages, real...) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			decides := false
			for line := range strings.Lines(string(body)) {
				for _, name := range vital {
					decides = decides || strings.HasPrefix(line, name+"{")
				}
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(body)
			}))
			server.Config.SetKeepAlivesEnabled(false)
			server.Start()
			defer server.Close()
			synctest.Test(t, func(t *testing.T) {
				into := newReported()
				a := start(t, disk.New(), into,
					map[string]any{"endpoints": []any{server.URL + "/metrics"}, "collection_interval": "15s", "node_name": nodeName},
					map[string]any{"rules": []any{"device"}, "storage": disk.ID.String()})
				// Not longer: values that stand still for a minute are those of a frozen exporter.
				time.Sleep(50 * time.Second)
				synctest.Wait()
				into.mu.Lock()
				for id, b := range into.boards {
					now, odd := b.now()
					assert.Empty(t, odd, id)
					want, faulty := unwell[filepath.Base(page)]
					assert.Equal(t, want, b.event, "the last event about %s", id)
					if !faulty {
						want = verdict("ok", nil, "none")
						assert.True(t, decides, "%s is %s, and the page has nothing that decides", id, now)
					}
					assert.Equal(t, want, now, id)
					known++
				}
				assert.Empty(t, into.wrong)
				into.mu.Unlock()
				a.stop(t, false)
			})
		})
	}
	assert.Positive(t, known)
}
