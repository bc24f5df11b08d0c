// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8swatch

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
)

const (
	patience = 20 * time.Second // until a test gives up
	tick     = 5 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Store of the nodes of pods on a fake API. Pods without a node are not
// needed.
type world struct {
	*Store[string]
	t    *testing.T
	api  *k8sfake.API
	logs *observer.ObservedLogs

	mu               sync.Mutex
	results          map[k8sclient.Result]int
	changed, refused int
}

func follow(t *testing.T, api *k8sfake.API, limit int, change func(*Source)) *world {
	w := &world{t: t, api: api, results: map[k8sclient.Result]int{}}
	core, logs := observer.New(zap.InfoLevel)
	w.logs = logs
	w.Store = New(Config[string]{
		Keep: func(obj any) (string, bool) {
			p := obj.(*corev1.Pod)
			return p.Spec.NodeName, p.Spec.NodeName != ""
		},
		Changed: func() { w.count(func() { w.changed++ }) },
		Limit:   limit,
		Refused: func(n int) { w.count(func() { w.refused += n }) },
	})
	client, err := corev1client.NewForConfig(&rest.Config{
		Host: api.URL(), ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}, QPS: 1000, Burst: 1000,
	})
	require.NoError(t, err)
	pods := client.Pods(metav1.NamespaceAll)
	from := &Source{
		Kind:  &corev1.Pod{},
		List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
		Requests: &k8sclient.Requests{
			Object: "pods", Logger: zap.New(core), Failure: "pods cannot be read",
			Count: func(_ context.Context, _ string, res k8sclient.Result) { w.count(func() { w.results[res]++ }) },
			Remedy: func(object string, res k8sclient.Result) string {
				return "remedy for " + object + " " + string(res)
			},
		},
	}
	if change != nil {
		change(from)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { w.Run(ctx, from) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
		client.RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	})
	return w
}

func (w *world) count(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) result(res k8sclient.Result) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.results[res]
}

func (w *world) has(want map[string]string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		got := map[string]string{}
		w.Each(func(n types.NamespacedName, node string) { got[n.String()] = node })
		return w.Listed() && maps.Equal(want, got)
	}, patience, tick, want)
}

func (w *world) watched(n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.api.Watching("pods") == n }, patience, tick)
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, ResourceVersion: "1"},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func TestFollows(t *testing.T) {
	for name, tt := range map[string]struct{ serverStreams, asked bool }{
		"list and watch":                       {false, false},
		"a list within a watch":                {true, true},
		"a server that cannot stream":          {false, true},
		"a server that is not asked to stream": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := k8sfake.New(t)
			if tt.serverStreams {
				api.Stream()
			}
			api.Set("pods", pod("a", "n1"), pod("pending", ""))
			w := follow(t, api, 0, func(s *Source) {
				if tt.asked {
					s.ListTimeout = time.Minute
				}
			})
			w.has(map[string]string{"ml/a": "n1"})
			w.watched(1)
			require.Eventually(t, func() bool {
				at, ok := w.AsOf(time.Unix(1, 0))
				return ok && at.Equal(time.Unix(1, 0))
			}, patience, tick, "while a watch is open the objects are as of now")

			api.Send("pods", "MODIFIED", pod("pending", "n2"))
			w.has(map[string]string{"ml/a": "n1", "ml/pending": "n2"})
			api.Send("pods", "MODIFIED", pod("a", ""))
			w.has(map[string]string{"ml/pending": "n2"})
			api.Send("pods", "ADDED", pod("b", "n1"))
			api.Send("pods", "DELETED", pod("pending", "n2"))
			w.has(map[string]string{"ml/b": "n1"})
			node, ok := w.Get(types.NamespacedName{Namespace: "ml", Name: "b"})
			require.True(t, ok)
			require.Equal(t, "n1", node)
			require.Zero(t, w.logs.Len())
			require.Positive(t, w.result(k8sclient.ResultOK))
		})
	}
}

// What is kept outlives an API server that is away, and ages. When it is back and has
// forgotten the version of the last watch (410 Gone), the objects are listed again.
func TestServerThatGoesAway(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Set("pods", pod("a", "n1"), pod("b", "n1"))
	api.Stream() // a list without an answer is repeated by client-go itself, for ten seconds
	w := follow(t, api, 0, func(s *Source) { s.ListTimeout = time.Minute })
	w.has(map[string]string{"ml/a": "n1", "ml/b": "n1"})
	w.watched(1)

	api.Leave()
	require.Eventually(t, func() bool { return w.result(k8sclient.ResultNoAnswer) > 0 }, patience, tick)
	w.has(map[string]string{"ml/a": "n1", "ml/b": "n1"})
	at, ok := w.AsOf(time.Now().Add(time.Hour))
	require.True(t, ok)
	require.True(t, at.Before(time.Now()), "as they were when the watch ended")
	failures := w.logs.FilterMessage("pods cannot be read").All()
	require.Len(t, failures, 1, "each cause once")
	require.Equal(t, "remedy for pods no_answer", failures[0].ContextMap()["remedy"])

	api.Set("pods", pod("b", "n1"), pod("c", "n2"))
	api.Return()
	w.watched(1)
	api.Send("pods", "ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"})
	w.has(map[string]string{"ml/b": "n1", "ml/c": "n2"})
	require.Equal(t, 1, w.logs.FilterMessage("Kubernetes API answers again").Len())
}

func TestLimit(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	api.Set("pods", pod("a", "n1"), pod("pending", ""), pod("b", "n1"), pod("c", "n1"))
	w := follow(t, api, 2, nil)
	w.has(map[string]string{"ml/a": "n1", "ml/b": "n1"})
	w.watched(1)
	api.Send("pods", "ADDED", pod("d", "n1"))
	api.Send("pods", "MODIFIED", pod("b", "n2"))
	w.has(map[string]string{"ml/a": "n1", "ml/b": "n2"})
	w.count(func() { require.Equal(t, 2, w.refused) })

	// What was left out may be anything until it is gone, or there is room for it.
	require.False(t, w.Whole())
	api.Send("pods", "DELETED", pod("d", "n1"))
	api.Send("pods", "DELETED", pod("a", "n1"))
	w.has(map[string]string{"ml/b": "n2"})
	require.False(t, w.Whole(), "c was left out of the list")
	api.Send("pods", "MODIFIED", pod("c", "n1"))
	w.has(map[string]string{"ml/b": "n2", "ml/c": "n1"})
	require.True(t, w.Whole())
}

// Objects that are not served, or may not be listed, are not waited for where they are optional.
func TestOptional(t *testing.T) {
	for result, status := range map[k8sclient.Result]int{k8sclient.ResultNotServed: http.StatusNotFound, k8sclient.ResultDenied: http.StatusForbidden} {
		for _, optional := range []bool{false, true} {
			t.Run(string(result), func(t *testing.T) {
				t.Parallel()
				api := k8sfake.New(t)
				api.Set("pods", pod("a", "n1"))
				api.Status("pods", status)
				w := follow(t, api, 0, func(s *Source) { s.Optional = optional })
				require.Eventually(t, func() bool { return w.result(result) > 1 }, patience, tick)
				require.Equal(t, optional, w.Listed())
				_, ok := w.AsOf(time.Now())
				require.False(t, ok)
				require.False(t, w.Whole(), "there may be some")
				require.Equal(t, !optional || result == k8sclient.ResultDenied, w.Served())
				require.Equal(t, 1, w.logs.Len())

				api.Status("pods", 0)
				w.has(map[string]string{"ml/a": "n1"})
				require.True(t, w.Whole() && w.Served())
			})
		}
	}
}

// The age counts from the last moment at which the objects were those of the API.
func TestAge(t *testing.T) {
	t0 := time.Unix(1000, 0)
	asOf := func(s *Store[int], seconds int) any {
		at, ok := s.AsOf(t0.Add(time.Duration(seconds) * time.Second))
		if !ok {
			return nil
		}
		return int(at.Sub(t0).Seconds())
	}
	at := func(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

	s := New(Config[int]{})
	require.Nil(t, asOf(s, 0))
	s.age.listed(at(1))
	require.Equal(t, 1, asOf(s, 5))
	s.age.began(at(6), false)
	require.Equal(t, 60, asOf(s, 60))
	s.age.ended(at(70))
	require.Equal(t, 70, asOf(s, 80))
	s.age.began(at(90), false)
	s.age.ended(at(90))
	require.Equal(t, 70, asOf(s, 99), "a proxy that ends watches at once is not the API")

	// A watch that streams the objects is not complete until listed.
	s.age.began(at(100), true)
	require.Equal(t, 70, asOf(s, 110))
	s.age.listed(at(111))
	require.Equal(t, 120, asOf(s, 120))
	s.age.ended(at(130))
	require.Equal(t, 130, asOf(s, 140))
	s.age.began(at(150), true)
	s.age.ended(at(160))
	require.Equal(t, 130, asOf(s, 170), "it ended before it was done")
}
