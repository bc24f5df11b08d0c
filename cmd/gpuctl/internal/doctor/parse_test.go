// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func TestCountPodResources(t *testing.T) {
	devices := func(ids ...string) []*podresources.ContainerDevices {
		return []*podresources.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: ids, Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: 1}}}}}
	}
	list, err := proto.Marshal(&podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
		{Name: "a", Namespace: "ml", Containers: []*podresources.ContainerResources{{Name: "x", Devices: devices("1", "2"), CpuIds: []int64{1, 2}}, {Name: "y", Devices: devices("3")}}},
		{Name: "b", Namespace: "ml", Containers: []*podresources.ContainerResources{{Name: "x"}}},
	}})
	require.NoError(t, err)
	pods, held, err := countPods(list)
	require.NoError(t, err)
	assert.Equal(t, []int{2, 3}, []int{pods, held})

	all, err := proto.Marshal(&podresources.AllocatableResourcesResponse{Devices: devices("1", "2", "3", "4"), CpuIds: []int64{1}})
	require.NoError(t, err)
	n, err := countAllocatable(all)
	require.NoError(t, err)
	assert.Equal(t, 4, n)

	_, _, err = countPods(list[:len(list)-1])
	assert.ErrorIs(t, err, errNoMessage, "cut off")
}

func FuzzPodResources(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 4, 0x0a, 2, 0x12, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		message, err := unframe(raw)
		if err != nil {
			return
		}
		pods, held, err := countPods(message)
		if err == nil && pods+held > len(message) {
			t.Fatal("more than there is room for")
		}
		if n, err := countAllocatable(message); err == nil && n > len(message) {
			t.Fatal("more than there is room for")
		}
	})
}

const ownPage = `otelcol_process_uptime 60
target_info{service_name="otelcol-gpu",service_version="0.1.0"} 1
otelcol_dcgm_receiver_scrapes{outcome="ok"} 9
otelcol_exporter_queue_capacity{data_type="metrics",exporter="otlp_grpc"} 100
otelcol_exporter_queue_size{data_type="metrics",exporter="otlp_grpc"} 2
otelcol_extension_gpu_store_samples_refused{reason="duplicate"} 5
`

func TestJudgeOwnMetrics(t *testing.T) {
	read := func(more string) ownMetrics {
		own, err := readOwn([]byte(ownPage+more), "text/plain; version=0.0.4")
		require.NoError(t, err)
		return own
	}
	assert.Equal(t, "0.1.0", read("").version())
	in := &installation{Options: Options{Watch: 10 * time.Second}}
	const refused = `otelcol_receiver_refused_metric_points{receiver="otlp",transport="grpc"} `
	for name, tt := range map[string]struct {
		now, later string // later "-": nothing was watched
		want       []string
	}{
		"well":                  {"", "-", []string{"ok nothing refused, dropped or failed in 1m0s"}},
		"refused once":          {refused + "7\n", "-", []string{"warn points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start"}},
		"with the other suffix": {strings.Replace(refused, "points{", "points_total{", 1) + "7\n", "-", []string{"warn points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start"}},
		"refused and no more":   {refused + "7\n", refused + "7\n", []string{"ok points that the pipeline refused; their sender tries again: 7 (receiver=otlp) since the start, none in the last 10s"}},
		"refused and more":      {refused + "7\n", refused + "9\n", []string{"fail points that the pipeline refused; their sender tries again: 9 (receiver=otlp), and rising (2 more in 10s)"}},
		"a gauge":               {"otelcol_gpu_allocation_snapshot_age 61\n", "-", []string{"fail seconds since the kubelet answered: 61"}},
		"a gauge below":         {"otelcol_gpu_allocation_snapshot_age 4\n", "-", []string{"ok nothing refused, dropped or failed in 1m0s"}},
		"a full queue": {
			`otelcol_exporter_queue_capacity{data_type="logs",exporter="otlp_grpc/events"} 10` + "\n" + `otelcol_exporter_queue_size{data_type="logs",exporter="otlp_grpc/events"} 9` + "\n", "-",
			[]string{"fail the queue of otlp_grpc/events is 90 % full"},
		},
		"no samples":                      {`otelcol_dcgm_receiver_rows_refused{exporter="http://a:9400/metrics",reason="unparsable",receiver="dcgm"} 35` + "\n", "-", []string{"warn lines of a page that are no samples: 35 (exporter=http://a:9400/metrics,reason=unparsable,receiver=dcgm) since the start"}},
		"a limit":                         {`otelcol_dcgm_receiver_rows_refused{reason="limit"} 3` + "\n" + `otelcol_dcgm_receiver_rows_refused{reason="sentinel"} 9` + "\n", "-", []string{"warn rows beyond a limit of one target: 3 (reason=limit) since the start"}},
		"events that a full disk refused": {`otelcol_exporter_send_failed_log_records{exporter="gpu_store"} 3` + "\n", "-", []string{"warn events that the store did not take at once: 3 (exporter=gpu_store) since the start"}},
		"events that a gateway refused":   {`otelcol_exporter_send_failed_log_records{exporter="otlp_grpc"} 3` + "\n", "-", []string{"warn events or logs that were given up: 3 (exporter=otlp_grpc) since the start"}},
		"a full disk":                     {`otelcol_extension_gpu_store_samples_refused{reason="disk_full"} 3` + "\n", "-", []string{"warn samples that were not stored: 3 (reason=disk_full) since the start"}},
	} {
		t.Run(name, func(t *testing.T) {
			var later ownMetrics
			if tt.later != "-" {
				later = read(tt.later)
			}
			var got []string
			for _, r := range in.judge("here", read(tt.now), later) {
				got = append(got, string(r.Status)+" "+r.Seen)
				assert.Equal(t, r.Status != OK, r.Remedy != "")
			}
			assert.Equal(t, tt.want, got)
		})
	}
	never, err := readOwn([]byte("otelcol_process_uptime 60\n"+`otelcol_dcgm_receiver_scrapes{outcome="connect"} 4`+"\n"), "")
	require.NoError(t, err)
	results := in.judge("here", never, nil)
	assert.Equal(t, "not one scrape has succeeded since the start", results[len(results)-1].Seen)
}

func TestRulesSayWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		rule := fmt.Sprint(r.metric, r.only)
		assert.False(t, seen[rule], rule)
		seen[rule] = true
		assert.NotEmpty(t, r.means, r.metric)
		assert.NotEmpty(t, r.remedy, r.metric)
		assert.Equal(t, r.label != "", len(r.fine)+len(r.only) > 0, r.metric)
	}
}

func FuzzOwnMetrics(f *testing.F) {
	f.Add([]byte(ownPage), "text/plain; version=0.0.4")
	f.Add([]byte("otelcol_exporter_queue_capacity 0\notelcol_exporter_queue_size NaN\n"), "")
	in := &installation{}
	f.Fuzz(func(t *testing.T, raw []byte, contentType string) {
		if strings.Contains(strings.ToLower(contentType), "protobuf") {
			return // it is never asked for
		}
		own, err := readOwn(raw, contentType)
		if err == nil && len(in.judge("here", own, own)) == 0 {
			t.Fatal("something is always said")
		}
	})
}

func FuzzTagOf(f *testing.F) {
	for image, want := range map[string]string{
		"ghcr.io/otelcol-gpu/otelcol-gpu:0.1.0": "0.1.0", "localhost:5000/x": "", "localhost:5000/x:1": "1",
		"x:1@sha256:ab": "1", "x@sha256:ab": "sha256:ab", "x": "",
	} {
		assert.Equal(f, want, tagOf(image), image)
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image string) {
		if !strings.HasSuffix(image, tagOf(image)) && !strings.Contains(image, tagOf(image)+"@") {
			t.Fatalf("%q has no tag %q", image, tagOf(image))
		}
	})
}
