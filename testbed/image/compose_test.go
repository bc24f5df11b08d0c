// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

var composeFolder = filepath.Join(root, "docs", "examples", "compose")

func compose(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(composeFolder, "compose.yaml")},
		cli.WithProfiles(profiles), cli.WithInterpolation(true), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestComposeFile(t *testing.T) {
	project := compose(t)
	assert.ElementsMatch(t, []string{"dcgm-exporter", "otelcol-gpu"}, project.ServiceNames(), "Grafana is asked for")
	project = compose(t, "grafana")
	assert.ElementsMatch(t, []string{"dcgm-exporter", "otelcol-gpu", "prometheus", "grafana"}, project.ServiceNames())

	for name, service := range project.Services {
		for _, v := range service.Volumes {
			if v.Type == types.VolumeTypeBind {
				assert.FileExists(t, orFolder(t, v.Source), name)
				assert.True(t, v.ReadOnly, "%s: %s", name, v.Source)
			} else {
				assert.Contains(t, project.Volumes, v.Source, name)
			}
		}
		for _, p := range service.Ports {
			assert.True(t, net.ParseIP(p.HostIP).IsLoopback(), "%s is to be reached from this machine alone", name)
		}
		assert.False(t, service.Privileged, name)
		assert.NotRegexp(t, `:latest$`, service.Image, name)
		if name != "otelcol-gpu" { // is built here, under the name below
			assert.Regexp(t, `^[a-z0-9-]+(\.[a-z0-9-]+)+/`, service.Image, "%s names its registry", name)
		}
	}

	gpus := project.Services["dcgm-exporter"].Deploy.Resources.Reservations.Devices
	require.Len(t, gpus, 1)
	assert.Equal(t, "nvidia", gpus[0].Driver)
	assert.Equal(t, types.DeviceCount(-1), gpus[0].Count, "all of them")

	version := regexp.MustCompile(`(?m)^  version: (\S+)$`).FindStringSubmatch(read(t, "builder-config.yaml"))[1]
	collector := project.Services["otelcol-gpu"]
	assert.Equal(t, "otelcol-gpu:"+version, collector.Image, "the name that make image gives")
	assert.Equal(t, "host", collector.NetworkMode)
	assert.True(t, collector.ReadOnly)
	exporter, err := url.Parse(*collector.Environment["DCGM_EXPORTER_ENDPOINT"])
	require.NoError(t, err)
	assert.Equal(t, project.Services["dcgm-exporter"].Ports[0].Published, exporter.Port())
}

// orFolder is a file of the folder, where path is one: what is mounted is not empty.
func orFolder(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		return path
	}
	require.NotEmpty(t, entries, path)
	return filepath.Join(path, entries[0].Name())
}

// The exporter is configured to read everything that the averages, the cards and the
// events are made of, and nothing that the receiver does not know.
func TestComposeCounters(t *testing.T) {
	table := read(t, "receiver", "dcgmreceiver", "fields.md")
	// The chart's own exporter reads the same: there is one list, in two places,
	// because Helm takes no file from outside of a chart.
	if charts, err := os.ReadFile(filepath.Join(root, "charts", "otelcol-gpu", "charts", "dcgm-exporter", "files", "counters.csv")); err == nil {
		assert.Equal(t, string(charts), read(t, "docs", "examples", "compose", "counters.csv"), "copy the chart's")
	}
	var fields []string
	for line := range strings.Lines(read(t, "docs", "examples", "compose", "counters.csv")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, ",", 3)
		require.Len(t, parts, 3, line)
		name, kind := parts[0], strings.TrimSpace(parts[1])
		fields = append(fields, name)
		assert.Contains(t, []string{"gauge", "counter", "label"}, kind, line)
		if kind != "label" {
			assert.Contains(t, table, "`"+name+"`", "the receiver has no name for it")
		}
	}
	require.NotEmpty(t, fields)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(fields))), len(fields), "each once")
	for _, needed := range []string{
		"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_POWER_USAGE",
		"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
		"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP",
	} {
		assert.Contains(t, fields, needed)
	}
}

// Prometheus and Grafana find each other and the collector by the
// addresses where those are.
func TestComposeAddresses(t *testing.T) {
	var prometheus struct {
		RuleFiles []string `yaml:"rule_files"`
		Scrape    []struct {
			Job     string                       `yaml:"job_name"`
			Static  []struct{ Targets []string } `yaml:"static_configs"`
			Honored bool                         `yaml:"honor_labels"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docs", "examples", "compose", "prometheus.yaml")), &prometheus))
	for _, file := range prometheus.RuleFiles {
		assert.FileExists(t, filepath.Join(root, "mixin", "rules", filepath.Base(file)))
	}
	standalone := read(t, "config", "standalone.yaml")
	require.Len(t, prometheus.Scrape, 2)
	for _, job := range prometheus.Scrape {
		assert.Contains(t, job.Job, "otelcol-gpu", "alerts about the collector go by it")
		_, port, err := net.SplitHostPort(job.Static[0].Targets[0])
		require.NoError(t, err)
		assert.Regexp(t, `(localhost:`+port+`"|port: `+port+`\})`, standalone)
	}

	var grafana struct {
		Datasources []struct{ Type, URL string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docs", "examples", "compose", "grafana", "datasource.yaml")), &grafana))
	require.Len(t, grafana.Datasources, 2)
	command := strings.Join(compose(t, "grafana").Services["prometheus"].Command, " ")
	for i, listening := range []string{command, standalone} {
		assert.Equal(t, "prometheus", grafana.Datasources[i].Type)
		address, err := url.Parse(grafana.Datasources[i].URL)
		require.NoError(t, err)
		assert.Contains(t, listening, ":"+address.Port())
	}
}
