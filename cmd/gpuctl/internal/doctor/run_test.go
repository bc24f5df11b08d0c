// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A check that breaks or hangs costs the others nothing, and what it panicked
// with is not shown.
func TestChecksAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		fine := func(name string) check {
			return check{name, func(context.Context) []Result { return []Result{{Check: name, Status: OK}} }}
		}
		results := runAll(t.Context(), []check{
			fine("first"),
			{"breaks", func(context.Context) []Result { panic("with the secret hush") }},
			{"hangs", func(context.Context) []Result { <-release; return nil }},
			{"slow", func(ctx context.Context) []Result {
				<-ctx.Done()
				return []Result{{Check: "slow", Status: Fail, Seen: "told in its last moment"}}
			}},
			fine("last"),
		}, time.Second)
		close(release)
		var got []string
		for _, r := range results {
			got = append(got, fmt.Sprintf("%s %s", r.Check, r.Status))
			assert.NotContains(t, r.Seen+r.Remedy, "hush")
		}
		assert.Equal(t, []string{"first ok", "breaks fail", "hangs fail", "slow fail", "last ok"}, got)
		assert.Contains(t, results[2].Seen, "not finished within 1s")
		assert.Equal(t, "told in its last moment", results[3].Seen)
	})
}

func TestFewChecksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		checks := make([]check, 5*atOnce)
		for i := range checks {
			checks[i] = check{"one", func(context.Context) []Result {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return nil
			}}
		}
		runAll(t.Context(), checks, time.Minute)
		assert.LessOrEqual(t, most.Load(), int32(atOnce))
	})
}

func TestWhatIsShownIsClean(t *testing.T) {
	results := clean([]Result{{Subject: "a\nb", Seen: "\x1b[31mred", Remedy: "one\ntwo\x1b"}})
	assert.Equal(t, Result{Subject: "a b", Seen: "[31mred", Remedy: "one\ntwo"}, results[0])
}

func TestSkew(t *testing.T) {
	asked := time.Date(2026, 1, 1, 12, 0, 0, 400e6, time.UTC)
	answered := asked.Add(200 * time.Millisecond)
	for _, tt := range []struct {
		date   time.Duration // from the second in which we asked
		skew   time.Duration
		status Status
		seen   string
	}{
		{0, 0, OK, "as ours"},
		{-time.Second, -400 * time.Millisecond, OK, "as ours"},
		{2 * time.Second, 1400 * time.Millisecond, OK, "1s ahead of ours"},
		{time.Minute, 59*time.Second + 400*time.Millisecond, Warn, "59s ahead of ours"},
		{-time.Minute, -59*time.Second - 400*time.Millisecond, Warn, "59s behind ours"},
	} {
		date := asked.Truncate(time.Second).Add(tt.date)
		assert.Equal(t, tt.skew, skewOf(date, asked, answered))
		r := clock("x", "them", http.Header{"Date": {date.Format(http.TimeFormat)}}, asked, answered)
		assert.Equal(t, []Result{{"x", "clock of them", tt.status, tt.seen, r[0].Remedy}}, r)
	}
	assert.Empty(t, clock("x", "them", http.Header{"Date": {"yesterday"}}, asked, answered))
}

// The chart's folder: the base, then its values, then the user's own.
func TestConfigurationsInTheUsualFolder(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"custom", "values", "agent", "agent-raw"} {
		text := "extensions: {last: {name: " + name + "}}\nservice: {extensions: [last]}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	files, err := usualFiles(folder)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	assert.Equal(t, []string{"agent.yaml", "agent-raw.yaml", "values.yaml", "custom.yaml"}, names)
	c, err := load(t.Context(), files)
	require.NoError(t, err)
	assert.Equal(t, "custom", c.of("extensions", "last")[0].conf.Get("name"))

	// An image has all of them: which is meant cannot be known.
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gateway.yaml"), []byte("{}"), 0o600))
	in, found, err := examine(t.Context(), Options{folder: folder})
	require.NoError(t, err)
	assert.Equal(t, Warn, found[0].Status)
	assert.Equal(t, roleStandalone, in.role)
}

// Which of several collectors is meant cannot be known, and that is said.
func TestSeveralCollectorsAndNoConfiguration(t *testing.T) {
	for running, want := range map[int]Status{0: Skipped, 1: Skipped, 3: Warn} {
		in, found, err := examine(t.Context(), Options{Running: running, folder: t.TempDir()})
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, want, found[0].Status, running)
		assert.Contains(t, found[0].Seen, "is assumed")
		assert.Equal(t, want == Warn, strings.HasPrefix(found[0].Seen, "3 collectors run here"), found[0].Seen)
		assert.Equal(t, want == Warn, strings.Contains(found[0].Remedy, "--config"), found[0].Remedy)
		assert.Equal(t, roleStandalone, in.role)
	}
}

// The shipped configurations are understood: what each is, and what it names.
func TestShippedConfigurations(t *testing.T) {
	t.Setenv("K8S_NODE_NAME", "n1")
	t.Setenv("GATEWAY_ENDPOINT", "gateway.example:4317")
	t.Setenv("STATE_DIRECTORY", "/state")
	for file, want := range map[string]struct {
		role   string
		rights int
		kube   bool
	}{
		"agent.yaml":      {roleAgent, 4, true},
		"gateway.yaml":    {roleGateway, 2, true},
		"standalone.yaml": {roleStandalone, 0, false},
	} {
		in, found, err := examine(t.Context(), Options{Configs: []string{"../../../../config/" + file}, Timeout: time.Second})
		require.NoError(t, err)
		assert.Equal(t, OK, found[0].Status, found)
		assert.Equal(t, want.role, in.role)
		assert.Len(t, in.rights(), want.rights, file)
		assert.Equal(t, want.kube, in.kube.connect != nil, file)
		assert.Equal(t, "localhost:8888", in.ownAddress(), file)
	}
	in, _, err := examine(t.Context(), Options{Configs: []string{"../../../../config/agent.yaml"}})
	require.NoError(t, err)
	assert.Equal(t, "n1", in.nodeName())
	assert.Equal(t, "pods nodes resourceslices resourceclaims", in.rights()[0].resource+" "+in.rights()[1].resource+" "+in.rights()[2].resource+" "+in.rights()[3].resource)
	assert.Equal(t, "dcgm, k8s_attributes", in.rights()[0].who)

	// Without a configuration a role has the same rights.
	remote, _, err := examine(t.Context(), Options{Role: roleAgent, folder: t.TempDir()})
	require.NoError(t, err)
	assert.Equal(t, in.rights(), remote.rights())
	assert.Len(t, remote.checks(), 3)
}

func TestBadConfigurations(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("receivers: [\n"), 0o600))
	for name, tt := range map[string]struct {
		config string
		want   Status
	}{
		"not there":    {broken + "-not", Fail},
		"no YAML":      {broken, Fail},
		"no pipelines": {"yaml:receivers: {dcgm: {}}", Fail},
		"with a value": {"yaml:{a: !!int hush}", Fail},
		"no scheme":    {"hush:x", Fail},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Run(t.Context(), Options{Configs: []string{tt.config}, Timeout: time.Second, Version: "1"})
			require.NoError(t, err)
			assert.Equal(t, "configuration", results[0].Check)
			assert.Equal(t, tt.want, results[0].Status)
			assert.NotEmpty(t, results[0].Remedy)
			assert.NotContains(t, results[0].Seen, "hush", "it may be a secret")
			assert.NotContains(t, results[0].Seen, "\n")
		})
	}
	for _, o := range []Options{{Only: []string{"everything"}}, {Role: "boss"}, {Exporters: []string{"localhost:9400"}}} {
		_, err := Run(t.Context(), o)
		assert.Error(t, err)
	}
}

func TestNear(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:13133": "localhost:13133", "[::]:1": "localhost:1", ":8888": "localhost:8888",
		"10.1.2.3:4317": "10.1.2.3:4317", "[fd00::1]:1": "[fd00::1]:1", "nonsense": "nonsense",
	} {
		assert.Equal(t, want, near(address))
	}
}

// A role without a configuration has the rights that config/kubernetes gives it.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	for _, role := range []string{roleAgent, roleGateway} {
		text, err := os.ReadFile("../../../../config/kubernetes/" + role + "-rbac.yaml")
		require.NoError(t, err)
		given := map[string]bool{}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object struct {
				Rules []struct {
					APIGroups []string `yaml:"apiGroups"`
					Resources []string `yaml:"resources"`
					Verbs     []string `yaml:"verbs"`
				} `yaml:"rules"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &object))
			for _, r := range object.Rules {
				for _, verb := range r.Verbs {
					given[r.APIGroups[0]+"/"+r.Resources[0]+" "+verb] = true
				}
			}
		}
		in, _, err := examine(t.Context(), Options{Role: role})
		require.NoError(t, err)
		asked := map[string]bool{}
		for _, r := range in.rights() {
			for _, verb := range r.verbs {
				asked[r.group+"/"+r.resource+" "+verb] = true
			}
		}
		assert.Equal(t, given, asked, role)
	}
}
