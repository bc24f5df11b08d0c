// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
)

var claimKind = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}

// claimStory has a reader of claims in a bubble where time is fake, on an API
// that is a function.
type claimStory struct {
	*claims
	logs *observer.ObservedLogs

	mu   sync.Mutex
	api  func(name string) (*resourcev1.ResourceClaim, error)
	asks []string
	news int
}

func (s *claimStory) answer(api func(name string) (*resourcev1.ResourceClaim, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.api = api
}

func runClaims(t *testing.T, script func(t *testing.T, s *claimStory)) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		s := &claimStory{logs: logs}
		tel := Telemetry{Logger: zap.New(core), Count: func(context.Context, string, k8sclient.Result) {}}
		s.claims = newClaims(func(_ context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asks = append(s.asks, namespace+"/"+name)
			return s.api(name)
		}, tel, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.news++
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		synctest.Wait()
		script(t, s)
	})
}

var gpu0 = dra.Device{Pool: dra.Pool{Driver: nodefake.NVIDIA, Name: "node-a"}, Device: "gpu-0"}

func claimOf(name string) dra.ClaimID {
	return dra.ClaimID{NamespacedName: types.NamespacedName{Namespace: "ml", Name: name}}
}

// lists is what the kubelet lists now; asked are the names asked for since.
func (s *claimStory) lists(names ...string) (asked []string) {
	all := map[dra.ClaimID]dra.Device{}
	for _, n := range names {
		all[claimOf(n)] = gpu0
	}
	s.want(all)
	synctest.Wait()
	return s.takeAsks()
}

func (s *claimStory) takeAsks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asks
	s.asks = nil
	return asked
}

func (s *claimStory) after(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	return s.takeAsks()
}

func TestClaimsAreReadOnce(t *testing.T) {
	runClaims(t, func(t *testing.T, s *claimStory) {
		s.api = func(name string) (*resourcev1.ResourceClaim, error) {
			return nodefake.Allocated(name == "looks", "gpu-0", "gpu-1"), nil
		}
		assert.Equal(t, []string{"ml/a"}, s.lists("a"))
		assert.Empty(t, s.lists("a"))
		assert.Empty(t, s.after(time.Hour))
		assert.Equal(t, 1, s.news)
		assert.Equal(t, []string{"ml/looks"}, s.lists("a", "looks"))
		assert.Equal(t, 2, s.news)

		read := *s.read.Load()
		assert.True(t, read[claimOf("a")].Held[gpu0])
		assert.True(t, read[claimOf("looks")].Looked[gpu0])
		assert.False(t, read[claimOf("looks")].Held[gpu0])

		assert.Empty(t, s.lists("looks"))
		assert.Len(t, *s.read.Load(), 1, "forgotten with its last container")
		assert.Equal(t, []string{"ml/a"}, s.lists("looks", "a"))
		assert.Equal(t, 3, s.news)
		assert.Zero(t, s.logs.Len())
	})
}

// An API that refuses or is away is asked less and less, with one claim.
func TestClaimsWaitForTheAPI(t *testing.T) {
	runClaims(t, func(t *testing.T, s *claimStory) {
		refuse := apierrors.NewForbidden(claimKind, "a", nil)
		s.answer(func(string) (*resourcev1.ResourceClaim, error) { return nil, refuse })
		assert.Len(t, s.lists("a", "b", "c"), 1)
		assert.Empty(t, s.lists("a", "b", "c", "d"), "another does not hurry it")
		assert.Len(t, s.after(3*time.Second+time.Millisecond), 2, "after 1 s, and 2 s")
		asked := s.after(9 * time.Minute)
		assert.Greater(t, len(asked), 15)
		assert.Less(t, len(asked), 22, "every 30 s")
		assert.Empty(t, *s.read.Load())
		logged := s.logs.FilterMessage(without[resourceClaims]).All()
		if assert.Len(t, logged, 1) {
			assert.Contains(t, logged[0].ContextMap()["remedy"], "get on resourceclaims in resource.k8s.io")
		}

		s.answer(func(string) (*resourcev1.ResourceClaim, error) { return nodefake.Allocated(false, "gpu-0"), nil })
		assert.Len(t, s.after(30*time.Second), 4)
		assert.Equal(t, 1, s.news, "logged once")
		assert.Equal(t, 1, s.logs.FilterMessage("Kubernetes API answers again").Len())
	})
}

// One claim that is gone, or another than the kubelet's, does not hold up others.
func TestClaimsThatAreOdd(t *testing.T) {
	for name, answer := range map[string]func() (*resourcev1.ResourceClaim, error){
		"gone":                    func() (*resourcev1.ResourceClaim, error) { return nil, apierrors.NewNotFound(claimKind, "odd") },
		"not allocated":           func() (*resourcev1.ResourceClaim, error) { return &resourcev1.ResourceClaim{}, nil },
		"of other devices":        func() (*resourcev1.ResourceClaim, error) { return nodefake.Allocated(false, "gpu-7"), nil },
		"allocated, to no device": func() (*resourcev1.ResourceClaim, error) { return nodefake.Allocated(false), nil },
	} {
		t.Run(name, func(t *testing.T) {
			runClaims(t, func(t *testing.T, s *claimStory) {
				s.answer(func(name string) (*resourcev1.ResourceClaim, error) {
					if name == "odd" {
						return answer()
					}
					return nodefake.Allocated(false, "gpu-0"), nil
				})
				assert.ElementsMatch(t, []string{"ml/odd", "ml/a", "ml/b"}, s.lists("odd", "a", "b"))
				assert.Len(t, *s.read.Load(), 2)
				assert.Equal(t, []string{"ml/c"}, s.lists("odd", "a", "b", "c"), "the odd one waits")
				assert.Equal(t, []string{"ml/odd"}, s.after(time.Second))
				assert.Less(t, len(s.after(time.Hour)), 130)
				s.answer(func(string) (*resourcev1.ResourceClaim, error) { return nodefake.Allocated(false, "gpu-0"), nil })
				assert.Equal(t, []string{"ml/odd"}, s.after(time.Minute))
				assert.Len(t, *s.read.Load(), 4)
			})
		})
	}
}
