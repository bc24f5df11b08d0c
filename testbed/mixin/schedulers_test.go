// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// schedulerJob is a job of config/scheduler.yaml.
type schedulerJob struct {
	Name    string            `json:"job_name"`
	Scheme  string            `json:"scheme"`
	Token   string            `json:"bearer_token_file"`
	Targets []json.RawMessage `json:"relabel_configs"`
	Samples []json.RawMessage `json:"metric_relabel_configs"`
}

func schedulerJobs(t *testing.T) map[string]schedulerJob {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "scheduler.yaml"))
	require.NoError(t, err)
	var file struct {
		Receivers map[string]struct {
			Config struct {
				Jobs []schedulerJob `json:"scrape_configs"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "$$", "$")), &file))
	jobs := map[string]schedulerJob{}
	for _, job := range file.Receivers["prometheus/schedulers"].Config.Jobs {
		jobs[job.Name] = job
	}
	return jobs
}

// relabeled is what rules of a job make of labels; it is false where they drop them.
func relabeled(t *testing.T, raw []json.RawMessage, ls labels.Labels) (labels.Labels, bool) {
	t.Helper()
	var rules []*relabel.Config
	for _, text := range raw {
		rule := relabel.DefaultRelabelConfig
		rule.NameValidationScheme = model.UTF8Validation
		require.NoError(t, json.Unmarshal(text, &rule))
		require.NoError(t, rule.Validate(model.UTF8Validation), "%s", text)
		rules = append(rules, &rule)
	}
	b := labels.NewBuilder(ls)
	kept := relabel.ProcessBuilder(b, rules...)
	return b.Labels(), kept
}

// page is the samples of a file of testdata that a job keeps.
func page(t *testing.T, job schedulerJob, file string) (kept []sample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "schedulers", file))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series, number, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if number == "" {
			series, number, _ = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			series += "}"
		}
		ls, err := parser.NewParser(parser.Options{}).ParseMetric(series)
		require.NoError(t, err, line)
		value, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err, line)
		if ls, ok := relabeled(t, job.Samples, ls); ok {
			kept = append(kept, sample{ls, value})
		}
	}
	require.NotEmpty(t, kept, file)
	return kept
}

// queues is the recorded view of the queues of pages, each with its job.
func queues(t *testing.T, pages map[string]string) map[string]float64 {
	t.Helper()
	jobs, db, at := schedulerJobs(t), teststorage.New(t), time.Unix(600, 0)
	app := db.Appender(t.Context())
	for file, job := range pages {
		require.Contains(t, jobs, job)
		for _, s := range page(t, jobs[job], file) {
			ls := labels.NewBuilder(s.labels).Set("k8s_cluster_name", "c1").Set("server_address", file).Labels()
			_, err := app.Append(0, ls, at.UnixMilli(), s.value)
			require.NoError(t, err)
		}
	}
	require.NoError(t, app.Commit())
	w := &world{db: db, engine: judge.NewEngine()}
	newJudge(t, db, w.engine, func(group string) bool { return group == "otelcol-gpu.queues" }).At(t, at)
	all := map[string]float64{}
	for _, s := range w.ask(t, "gpu:queue_devices", at) {
		assert.Equal(t, "c1", s.Metric.Get("k8s_cluster_name"))
		key := strings.Join([]string{s.Metric.Get("scheduler"), s.Metric.Get("queue"), s.Metric.Get("state"), s.Metric.Get("k8s_resource_name")}, " ")
		assert.NotContains(t, all, key, "twice")
		assert.False(t, math.IsInf(s.F, 0) || math.IsNaN(s.F), key)
		all[key] = s.F
	}
	return all
}

// Whole devices by queue, whatever unit, sentinel and replica a scheduler has.
func TestQueuesOfSchedulers(t *testing.T) {
	t.Parallel()
	volcano := map[string]float64{
		"volcano research quota nvidia.com/gpu": 8, "volcano research used nvidia.com/gpu": 6,
		"volcano research reserved nvidia.com/gpu": 2, "volcano research pending nvidia.com/gpu": 5,
		// The queue is empty, and its last values stayed; its quota is no limit.
		"volcano left used nvidia.com/gpu": 0, "volcano left reserved nvidia.com/gpu": 0, "volcano left pending nvidia.com/gpu": 0,
	}
	stale := map[string]float64{"volcano left used nvidia.com/gpu": 4, "volcano left pending nvidia.com/gpu": 1}
	for name, c := range map[string]struct {
		pages map[string]string
		want  []map[string]float64
	}{
		// Of two replicas the leader counts; flavors are added up, and CPU is none of it.
		"Kueue": {map[string]string{"kueue.prom": "kueue", "kueue-follower.prom": "kueue"}, []map[string]float64{{
			"kueue research quota nvidia.com/gpu": 12, "kueue research used nvidia.com/gpu": 7,
			"kueue research reserved nvidia.com/gpu": 2, "kueue research pending nvidia.com/gpu": 6,
		}}},
		"Volcano":                    {map[string]string{"volcano.prom": "volcano", "volcano-controller.prom": "volcano"}, []map[string]float64{volcano}},
		"Volcano before 5391":        {map[string]string{"volcano-before-5391.prom": "volcano", "volcano-controller.prom": "volcano"}, []map[string]float64{volcano}},
		"Volcano without pod groups": {map[string]string{"volcano.prom": "volcano"}, []map[string]float64{volcano, stale}},
		// A quota of -1 is no limit.
		"KAI": {map[string]string{"kai.prom": "kai"}, []map[string]float64{{"kai team-a quota ": 4, "kai team-a used ": 3.5, "kai team-b used ": 0}}},
		// A parent contains its children; gpu-core 100 is a GPU, and nvidia.com/gpu the same one.
		"Koordinator": {map[string]string{"koordinator.prom": "koordinator"}, []map[string]float64{{
			"koordinator team-c quota koordinator.sh/gpu-core": 4, "koordinator team-c used koordinator.sh/gpu-core": 2.5, "koordinator team-c pending koordinator.sh/gpu-core": 1,
			"koordinator team-d quota nvidia.com/gpu": 2, "koordinator team-d used nvidia.com/gpu": 1, "koordinator team-d pending nvidia.com/gpu": 2,
		}}},
		"kube-scheduler has no queues of devices": {map[string]string{"kube-scheduler.prom": "kube-scheduler"}, []map[string]float64{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]float64{}
			for _, of := range c.want {
				for key, value := range of {
					want[key] = value
				}
			}
			assert.Equal(t, want, queues(t, c.pages))
		})
	}
}

// What is kept of a page, and that no page names what is ours.
func TestPagesOfSchedulersAreFiltered(t *testing.T) {
	t.Parallel()
	jobs := schedulerJobs(t)
	for file, job := range map[string]string{
		"kube-scheduler.prom": "kube-scheduler", "kueue.prom": "kueue/http", "volcano.prom": "volcano", "kai.prom": "kai", "koordinator.prom": "koordinator",
	} {
		for _, s := range page(t, jobs[job], file) {
			assert.Regexp(t, `^(?:scheduler|kueue|volcano|kai)_`, s.labels.Get("__name__"))
			assert.NotContains(t, []string{"cpu", "pods"}, s.labels.Get("resource"))
			assert.NotRegexp(t, "cpu|memory", s.labels.Get("__name__"))
		}
	}
	forged := labels.FromStrings("__name__", "kueue_pending_workloads", "cluster_queue", "a", "k8s_node_name", "n1", "service_name", "chat", "gpu_index", "0")
	kept, ok := relabeled(t, jobs["kueue"].Samples, forged)
	assert.True(t, ok)
	assert.Equal(t, labels.FromStrings("__name__", "kueue_pending_workloads", "cluster_queue", "a"), kept)
}

// An address belongs to one job, off to none, and the token to none without TLS.
func TestAddressesOfSchedulers(t *testing.T) {
	t.Parallel()
	jobs := schedulerJobs(t)
	for address, want := range map[string]map[string]string{
		"off":                         {},
		"10.0.0.1:10259":              {"kube-scheduler": "https://10.0.0.1:10259/metrics", "volcano": "http://10.0.0.1:10259/metrics"},
		"https://k.svc:8443":          {"kube-scheduler": "https://k.svc:8443/metrics", "volcano": "https://k.svc:8443/metrics"},
		"http://[::1]:8080/v/metrics": {"kube-scheduler/http": "http://[::1]:8080/v/metrics", "volcano": "http://[::1]:8080/v/metrics"},
	} {
		got := map[string]string{}
		for _, name := range []string{"kube-scheduler", "kube-scheduler/http", "volcano"} {
			job := jobs[name]
			ls, ok := relabeled(t, job.Targets, labels.FromStrings("__address__", address, "__scheme__", job.Scheme, "__metrics_path__", "/metrics", "job", name))
			if ok {
				assert.Equal(t, strings.TrimSuffix(name, "/http"), ls.Get("job"))
				assert.True(t, job.Token == "" || ls.Get("__scheme__") == "https", address)
				got[name] = ls.Get("__scheme__") + "://" + ls.Get("__address__") + ls.Get("__metrics_path__")
			}
		}
		assert.Equal(t, want, got, address)
	}
	assert.Equal(t, jobs["kube-scheduler"].Targets, jobs["kueue"].Targets)
	assert.Equal(t, jobs["volcano"].Targets, jobs["kai"].Targets)
	assert.Equal(t, jobs["volcano"].Targets, jobs["koordinator"].Targets)
}
