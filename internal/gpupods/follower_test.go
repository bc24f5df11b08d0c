// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
)

const (
	patience = 20 * time.Second // until a test gives up
	tick     = 5 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts is a Telemetry that remembers.
type counts struct {
	mu      sync.Mutex
	asked   map[string]int
	refused int
}

func (c *counts) Asked(_ context.Context, object, result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[object+" "+result]++
}

func (c *counts) Refused(_ context.Context, pods int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused += pods
}

func (c *counts) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[what]
}

// source is a member of a watch.
type source struct{ *Member }

// follow starts a member of a watch of api that no other test has a part in.
func follow(t *testing.T, api *k8sfake.API, change func(*Config, *Need)) (*source, *counts, *zapobserver.ObservedLogs) {
	own := &watches{all: map[string]*follower{}}
	s, tel, logs := own.joined(t, change)
	s.begin(t, api)
	return s, tel, logs
}

// joined is a member that was not started.
func (w *watches) joined(t *testing.T, change func(*Config, *Need)) (*source, *counts, *zapobserver.ObservedLogs) {
	cfg, need := Config{Keys: DefaultKeys()}, Need{MaxPods: 100}
	if change != nil {
		change(&cfg, &need)
	}
	core, logs := zapobserver.New(zap.InfoLevel)
	tel := &counts{asked: map[string]int{}}
	m, err := w.join(cfg, Settings{Need: need, Telemetry: tel, Logger: zap.New(core)})
	require.NoError(t, err)
	t.Cleanup(m.Shutdown)
	return &source{m}, tel, logs
}

func (s *source) begin(t *testing.T, api *k8sfake.API) {
	require.NoError(t, s.start(&rest.Config{
		Host: api.URL(), ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}, QPS: 1000, Burst: 1000,
	}))
}

// has waits until these pods are known, by "namespace/name" with their devices.
func (s *source) has(t *testing.T, want map[string]int) {
	t.Helper()
	var got map[string]int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(tick) {
		if is := s.Snapshot(); is != nil {
			got = map[string]int{}
			for _, p := range is.Pods {
				got[p.Namespace+"/"+p.Name] = p.Devices
			}
			if maps.Equal(want, got) {
				return
			}
		}
	}
	require.Equal(t, want, got)
}

// watched waits until so many watches are on.
func watched(t *testing.T, api *k8sfake.API, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return api.Watching("pods", "resourceclaims") == n }, patience, tick, fmt.Sprint("watches: ", n))
}

func named(p *corev1.Pod, namespace, name string) *corev1.Pod {
	p.Namespace, p.Name = namespace, name
	return p
}

func TestPodsAndClaimsAreFollowed(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"list and watch": false, "list within a watch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := k8sfake.New(t)
			if streams {
				api.Stream()
			}
			claiming := named(newPod(uses("main", corev1.ResourceClaim{Name: "gpu"})), "shop", "claiming")
			claiming.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr("claim-1")}}
			api.Set("pods",
				named(newPod(gpus("main", "2")), "shop", "a"),
				named(newPod(requests("main", map[string]string{"cpu": "1"})), "shop", "web"),
				claiming,
			)
			api.Set("resourceclaims", newClaim("claim-1", result("r", "gpu.nvidia.com", false)))
			s, tel, logs := follow(t, api, nil)
			s.has(t, map[string]int{"shop/a": 2, "shop/claiming": 1})
			<-s.Changed()
			watched(t, api, 2)

			api.Send("pods", "ADDED", named(newPod(gpus("main", "4")), "train", "b"))
			api.Send("resourceclaims", "MODIFIED", newClaim("claim-1", result("r", "gpu.nvidia.com", false), result("r", "gpu.nvidia.com", false)))
			s.has(t, map[string]int{"shop/a": 2, "shop/claiming": 2, "train/b": 4})
			api.Send("pods", "DELETED", named(newPod(gpus("main", "2")), "shop", "a"))
			api.Send("resourceclaims", "DELETED", newClaim("claim-1"))
			s.has(t, map[string]int{"train/b": 4})
			require.Zero(t, logs.Len())
			require.Positive(t, tel.of("pods ok"))
			require.Positive(t, tel.of("resource_claims ok"))
		})
	}
}

func TestListsOfGivenNamespacesAlone(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Set("pods",
		named(newPod(gpus("main", "1")), "shop", "a"), named(newPod(gpus("main", "1")), "train", "b"), named(newPod(gpus("main", "1")), "other", "c"),
	)
	s, _, _ := follow(t, api, func(c *Config, _ *Need) { c.Keys.Namespaces = []string{"shop", "train"} })
	s.has(t, map[string]int{"shop/a": 1, "train/b": 1})
	watched(t, api, 4)
	var asked []string
	for _, url := range api.Asked() {
		asked = append(asked, url.Path)
	}
	require.NotContains(t, asked, "/api/v1/pods")
	require.Subset(t, asked, []string{
		"/api/v1/namespaces/shop/pods", "/api/v1/namespaces/train/pods",
		"/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims", "/apis/resource.k8s.io/v1/namespaces/train/resourceclaims",
	})
}

// A namespace that may not be read is not known to have no pods.
func TestNotInSyncUntilEveryNamespaceIs(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Set("pods", named(newPod(gpus("main", "1")), "shop", "a"))
	api.Status("train/pods", http.StatusForbidden)
	s, tel, logs := follow(t, api, func(c *Config, _ *Need) { c.Keys.Namespaces, c.Keys.DRA.Enabled = []string{"shop", "train"}, false })
	require.Eventually(t, func() bool { return tel.of("pods denied") > 1 && tel.of("pods ok") > 0 }, patience, tick)
	require.Nil(t, s.Snapshot())
	require.Equal(t, 1, logs.Len(), "each cause once")
	require.Contains(t, logs.All()[0].ContextMap()["remedy"], "let the service account list and watch pods")

	api.Status("train/pods", 0)
	s.has(t, map[string]int{"shop/a": 1})
}

func TestClustersWithoutDRA(t *testing.T) {
	t.Parallel()
	for result, status := range map[string]int{"not_served": http.StatusNotFound, "denied": http.StatusForbidden} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			api := k8sfake.New(t)
			api.Set("pods", named(newPod(gpus("main", "1")), "shop", "a"))
			api.Status("resourceclaims", status)
			s, tel, logs := follow(t, api, nil)
			s.has(t, map[string]int{"shop/a": 1})
			require.Positive(t, tel.of("resource_claims "+result))
			require.Equal(t, 1, logs.Len())
			require.Contains(t, logs.All()[0].ContextMap()["remedy"], "dra::enabled")
		})
	}
}

func TestStartDoesNotWaitForTheAPI(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Leave()
	s, _, _ := follow(t, api, nil)
	require.Nil(t, s.Snapshot())
	api.Set("pods", named(newPod(gpus("main", "1")), "shop", "a"))
	api.Return()
	s.has(t, map[string]int{"shop/a": 1})
}

func TestPodsBeyondTheLimitAreCounted(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Set("pods",
		named(newPod(gpus("main", "1")), "shop", "a"), named(newPod(gpus("main", "1")), "shop", "b"),
		named(newPod(requests("main", nil)), "shop", "web"), named(newPod(gpus("main", "1")), "shop", "c"),
	)
	s, tel, _ := follow(t, api, func(_ *Config, n *Need) { n.MaxPods = 2 })
	s.has(t, map[string]int{"shop/a": 1, "shop/b": 1})
	watched(t, api, 2)
	api.Send("pods", "ADDED", named(newPod(gpus("main", "1")), "shop", "d"))
	require.Eventually(t, func() bool { tel.mu.Lock(); defer tel.mu.Unlock(); return tel.refused == 2 }, patience, tick)
}
