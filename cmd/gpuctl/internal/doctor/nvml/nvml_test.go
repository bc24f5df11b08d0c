// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	doctorconfig "github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// helper is a program that prints what a helper does.
func helper(t *testing.T, script string, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "helper")
	require.NoError(t, os.WriteFile(path, []byte(script), mode))
	return path
}

func prints(json string) string { return "#!/bin/sh\ncat <<'EOF'\n" + json + "\nEOF\n" }

// What each outcome shows, and that it has the remedy of its cause.
func TestOutcomes(t *testing.T) {
	const hello = `"hello":{"version":1,"build":"1"}`
	for name, tt := range map[string]struct {
		script string
		mode   os.FileMode
		want   []probe.Status
		seen   string // of the last
		cause  nvmlproto.Cause
	}{
		"two boards": {
			prints(`{` + hello + `,"system":{"library":"/lib/x.so","driver":"570.1","nvml":"12.570.1","boards":2},"boards":[
				{"thread":"0000:01:00.0","uuid":"GPU-1","name":"H100","pci":"00000000:01:00.0","values":[{"n":"a","v":1},{"n":"b","r":3}]},
				{"thread":"0000:02:00.0","uuid":"GPU-2","name":"H100","pci":"00000000:02:00.0","instances":[{"gi":1,"values":[{"n":"a","v":1},{"n":"memory.used","r":4},{"n":"gpm.sm","r":4}]}]}]}`),
			0o700, []probe.Status{probe.OK, probe.OK, probe.Warn}, "H100 at 00000000:02:00.0: 1 values, 1 MIG instances; without rights for memory.used, gpm.sm", "",
		},
		"a call that hangs":         {prints(`{` + hello + `,"system":{"library":"/l","boards":1},"late":[{"t":"0000:01:00.0","c":"nvmlDeviceGetPowerUsage"}]}`), 0o700, []probe.Status{probe.OK, probe.Fail}, "nvmlDeviceGetPowerUsage has not returned", nvmlproto.CauseStuck},
		"lost":                      {prints(`{` + hello + `,"system":{"library":"/l","boards":1},"boards":[{"thread":"0000:01:00.0","lost":true}]}`), 0o700, []probe.Status{probe.OK, probe.Fail}, "it has fallen off the bus", ""},
		"no library":                {prints(`{`+hello+`,"system":{"missing":["/a: no such file"],"boards":0}}`) + "exit 1\n", 0o700, []probe.Status{probe.Fail}, "libnvidia-ml.so.1 is in none of: /a: no such file", nvmlproto.CauseNoLibrary},
		"no driver":                 {prints(`{`+hello+`,"system":{"library":"/l","r":9,"error":"Driver Not Loaded","boards":0}}`) + "exit 1\n", 0o700, []probe.Status{probe.Fail}, "nvmlInit_v2 returns 9: Driver Not Loaded", nvmlproto.CauseNoDriver},
		"another kernel module":     {prints(`{`+hello+`,"system":{"library":"/l","r":18,"error":"Mismatch","boards":0}}`) + "exit 1\n", 0o700, []probe.Status{probe.Fail}, "nvmlInit_v2 returns 18: Mismatch", nvmlproto.CauseVersionMismatch},
		"no boards":                 {prints(`{` + hello + `,"system":{"library":"/l","driver":"570.1","boards":0}}`), 0o700, []probe.Status{probe.Fail}, "driver 570.1 has no boards", nvmlproto.CauseNoBoards},
		"another version":           {prints(`{"hello":{"version":99},"system":{"boards":0}}`), 0o700, []probe.Status{probe.Fail}, "it is of another version", nvmlproto.CauseFrames},
		"no report":                 {prints("hello"), 0o700, []probe.Status{probe.Fail}, "what it prints is no report", nvmlproto.CauseFrames},
		"it crashes":                {"#!/bin/sh\necho SIGSEGV: segmentation violation >&2\nexit 2\n", 0o700, []probe.Status{probe.Fail}, "exit status 2: SIGSEGV: segmentation violation", nvmlproto.CauseCrashed},
		"its interpreter is absent": {"#!/no/such/loader\n", 0o700, []probe.Status{probe.Fail}, "", nvmlproto.CauseLoader},
		"another architecture":      {"\x7fELF", 0o700, []probe.Status{probe.Fail}, "", nvmlproto.CauseMachine},
		"not executable":            {"#!/bin/sh\n", 0o600, []probe.Status{probe.Fail}, "", nvmlproto.CauseNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			got := examine(t.Context(), &config{Helper: helper(t, tt.script, tt.mode)}, time.Now(), false)
			var statuses []probe.Status
			for _, r := range got {
				statuses = append(statuses, r.Status)
			}
			require.Equal(t, tt.want, statuses, "%v", got)
			last := got[len(got)-1]
			if tt.seen != "" {
				assert.Equal(t, tt.seen, last.Seen)
			}
			if tt.cause != "" {
				assert.Equal(t, tt.cause.Remedy(false), last.Remedy)
			}
			assert.NotEmpty(t, last.Remedy)
		})
	}
}

func TestProbe(t *testing.T) {
	probed := func(ctx context.Context, receivers map[string]any, used ...any) []probe.Result {
		conf := confmap.NewFromStringMap(map[string]any{
			"receivers": receivers,
			"service":   map[string]any{"pipelines": map[string]any{"metrics": map[string]any{"receivers": used}}},
		})
		return Probe(ctx, probe.Env{Config: doctorconfig.New(conf), Now: time.Now()})
	}
	assert.Empty(t, probed(t.Context(), map[string]any{"dcgm": nil}, "dcgm"))

	file := filepath.Join(t.TempDir(), "release")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	got := probed(t.Context(), map[string]any{"nvml": map[string]any{"release_file": file}}, "nvml")
	require.Len(t, got, 1)
	assert.Equal(t, probe.Warn, got[0].Status)

	t.Setenv("PATH", t.TempDir())
	got = probed(t.Context(), map[string]any{"nvml": nil}, "nvml")
	require.Len(t, got, 1)
	assert.Equal(t, nvmlproto.CauseHelperMissing.Remedy(nvmlhelper.InContainer()), got[0].Remedy)

	late, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	got = probed(late, map[string]any{"nvml": map[string]any{"helper": helper(t, "#!/bin/sh\nexec /bin/sleep 600\n", 0o700)}}, "nvml")
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Seen, "has not ended")
}
