// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Fields with other names are counted, and logged once with what they may be, until they are
// known again; those beside all that is known are not.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	const beside = `DCGM_FI_DEV_ONE{gpu="0",UUID="GPU-0"} 1` + "\n" + `DCGM_FI_DEV_TWO{gpu="0",UUID="GPU-0"} 2` + "\n"
	watts := `DCGM_FI_DEV_POWER_USAGE_MILLIWATTS{gpu="0",UUID="GPU-0"} 9` + "\n"
	for name, tt := range map[string]struct {
		page         string
		unknown      int64
		unrecognized float64
		logged       []string // empty: nothing is
	}{
		"none":   {goodPage, 0, 0, nil},
		"beside": {goodPage + beside, 0, 0, nil},
		"one": {goodPage + beside + watts, 1, 0, []string{
			"lacks quantities that they may have", "DCGM_FI_DEV_POWER_USAGE_MILLIWATTS (hw.power? It is like DCGM_FI_DEV_POWER_USAGE)", "may be newer than this version of otelcol-gpu",
		}},
		"all": {strings.ReplaceAll(goodPage, "{", "_V2{") + beside, 4, 1, []string{
			"the exporter's fields are not known", "DCGM_FI_DEV_GPU_UTIL_V2 (hw.gpu.utilization (general)? It is like DCGM_FI_DEV_GPU_UTIL)", "DCGM_FI_DEV_ONE",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var known atomic.Bool
			server := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
				page := tt.page
				if known.Load() {
					page = goodPage
				}
				_, _ = w.Write([]byte(page))
			})
			r := start(t, []string{server.URL + "/metrics"})
			r.await(fetch.OK, 2)
			r.awaitTarget(server, 2, name)
			unrecognized, there := r.last(server, "gpu.exporter.unrecognized")
			assert.True(t, there)
			assert.Equal(t, tt.unrecognized, unrecognized)
			assert.Equal(t, tt.unknown, r.count("unknown_fields")[""])
			if len(tt.logged) == 0 {
				assert.Zero(t, contains(r.warnings(), "not known"))
				return
			}
			assert.Equal(t, 1, contains(r.warnings(), "not known"))
			var logged []string
			for _, e := range r.logs.All() {
				logged = append(logged, e.Message+fmt.Sprint(e.ContextMap()["first"], e.ContextMap()["remedy"]))
			}
			assert.Equal(t, 1, contains(logged, tt.logged...), logged)
			known.Store(true)
			require.Eventually(t, func() bool {
				v, _ := r.last(server, "gpu.exporter.unrecognized")
				return v == 0 && r.count("unknown_fields")[""] == 0 && r.logs.FilterMessage("the exporter's fields are known again").Len() == 1
			}, patience, 20*time.Millisecond)
		})
	}
}
