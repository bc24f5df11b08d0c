// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// scaledObject is as much of KEDA's ScaledObject (keda.sh/v1alpha1) as the
// examples use. Decoding refuses other keys.
type scaledObject struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		ScaleTargetRef                                    struct{ APIVersion, Kind, Name string }
		MinReplicaCount, MaxReplicaCount, PollingInterval int
		Advanced                                          struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior map[string]struct {
					StabilizationWindowSeconds int
					Policies                   []struct {
						Type                 string
						Value, PeriodSeconds int
					}
				}
			}
		}
		Triggers []kedaTrigger
		// Of a TriggerAuthentication.
		SecretTargetRef []struct{ Parameter, Name, Key string }
	}
}

type kedaTrigger struct {
	Type, MetricType  string
	Metadata          map[string]string // KEDA's are texts, numbers and flags too
	AuthenticationRef struct{ Name string }
}

func kedaObjects(t *testing.T, file string) (objects []scaledObject) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "examples", "keda", file))
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o scaledObject
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &o), file)
		objects = append(objects, o)
	}
	return objects
}

// errNull is an empty answer where ignoreNullValues is false.
var errNull = errors.New("no answer")

// ask does what KEDA's Prometheus scaler does: an instant query at now, of which
// it takes one number.
func (k kedaTrigger) ask(ctx context.Context, server, token string) (float64, error) {
	at := url.QueryEscape(time.Now().UTC().Format(time.RFC3339))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/query?query="+url.QueryEscape(k.Metadata["query"])+"&time="+at, nil)
	if err != nil {
		return 0, err
	}
	if k.Metadata["authModes"] == "bearer" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", answer.StatusCode)
	}
	var body struct {
		Data struct {
			ResultType string
			Result     []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return 0, err
	}
	switch n := len(body.Data.Result); {
	case n == 0 && k.Metadata["ignoreNullValues"] == "false":
		return 0, errNull
	case n == 0:
		return 0, nil
	case n > 1:
		return 0, fmt.Errorf("%d elements", n)
	}
	text, ok := body.Data.Result[0].Value[1].(string)
	if !ok {
		return 0, fmt.Errorf("%v is no text", body.Data.Result[0].Value)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		err = fmt.Errorf("%v", v)
	}
	return v, err
}

// The examples are objects that KEDA takes.
func TestKEDAExamples(t *testing.T) {
	t.Parallel()
	authentication := map[string]bool{}
	var scaled []scaledObject
	for _, file := range []string{"utilization.yaml", "inference.yaml"} {
		for _, o := range kedaObjects(t, file) {
			assert.Equal(t, "keda.sh/v1alpha1", o.APIVersion)
			switch o.Kind {
			case "ScaledObject":
				scaled = append(scaled, o)
			case "TriggerAuthentication":
				authentication[o.Metadata.Namespace+"/"+o.Metadata.Name] = true
				require.Len(t, o.Spec.SecretTargetRef, 1)
				assert.Equal(t, "bearerToken", o.Spec.SecretTargetRef[0].Parameter)
			default:
				assert.Fail(t, "what is it", o.Kind)
			}
		}
	}
	require.Len(t, scaled, 2)
	// What the Prometheus trigger knows; others are ignored without a word.
	known := []string{"serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues", "authModes", "customHeaders", "namespace", "queryParameters", "unsafeSsl", "timeout"}
	for _, o := range scaled {
		assert.Equal(t, "Deployment", o.Spec.ScaleTargetRef.Kind)
		assert.Positive(t, o.Spec.MinReplicaCount)
		assert.Greater(t, o.Spec.MaxReplicaCount, o.Spec.MinReplicaCount)
		for direction, b := range o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior {
			assert.Contains(t, []string{"scaleUp", "scaleDown"}, direction)
			assert.LessOrEqual(t, b.StabilizationWindowSeconds, 3600)
			for _, p := range b.Policies {
				assert.Contains(t, []string{"Pods", "Percent"}, p.Type)
				assert.LessOrEqual(t, p.PeriodSeconds, 1800)
			}
		}
		for _, k := range o.Spec.Triggers {
			assert.Equal(t, "prometheus", k.Type)
			assert.Contains(t, []string{"Value", "AverageValue"}, k.MetricType)
			for key := range k.Metadata {
				assert.Contains(t, known, key)
			}
			assert.NotEmpty(t, k.Metadata["query"])
			threshold, err := strconv.ParseFloat(k.Metadata["threshold"], 64)
			assert.NoError(t, err)
			assert.Positive(t, threshold)
			server, err := url.Parse(k.Metadata["serverAddress"])
			assert.NoError(t, err)
			assert.Equal(t, "http", server.Scheme)
			assert.True(t, authentication[o.Metadata.Namespace+"/"+k.AuthenticationRef.Name], "of %s", o.Metadata.Name)
		}
	}
}

// The examples' queries have one number while it is true, and an error otherwise:
// for as long as nothing is known, while a service is partial, and while a quarter of its
// engines has no page.
func TestKEDAAsks(t *testing.T) {
	t.Parallel()
	const token = "only-for-keda"
	f, server, endpoints := frozenFleet(t)
	path, err := filepath.Abs(filepath.Join(root, "docs", "examples", "keda", "store-api.yaml"))
	require.NoError(t, err)
	times := m{}
	for k, v := range quick {
		times[k] = v
	}
	times["staleness"] = "6s"
	free, err := collector.Free(1)
	require.NoError(t, err)
	engines := fmt.Sprintf("%s:%d", collector.Loopback, free[0])
	c := start(t, m{
		"receivers": m{
			"dcgm": m{"endpoints": endpoints, "collection_interval": "1s", "frozen_after": never},
			// What the agents' processor inference would send.
			"otlp/engines": m{"protocols": m{"http": m{"endpoint": engines}}},
		},
		"processors": m{"gpu_summary": times},
		"extensions": m{"request_limit/apps": m{}}, // gateway.yaml has one
		"service": m{"pipelines": m{"metrics/engines": m{
			"receivers": []string{"otlp/engines"}, "processors": []string{"transform/prometheus"}, "exporters": []string{"gpu_store"},
		}}},
	}, []string{"STORE_API_TOKEN=" + token}, config("standalone.yaml"), path)
	store := fmt.Sprintf("http://%s:%d", collector.Loopback, c.Ports.Store)
	triggers := kedaObjects(t, "inference.yaml")[0].Spec.Triggers
	demand, saturation := triggers[0], triggers[1]
	utilization := kedaObjects(t, "utilization.yaml")[0].Spec.Triggers[0]
	becomes := func(what string, k kedaTrigger, ok func(float64, error) bool) {
		t.Helper()
		var v float64
		var err error
		if !assert.Eventually(t, func() bool { v, err = k.ask(t.Context(), store, token); return ok(v, err) }, patience, 200*time.Millisecond, what) {
			t.Log(v, err)
		}
	}
	about := func(want float64) func(float64, error) bool {
		return func(v float64, err error) bool { return err == nil && math.Abs(v-want) < 0.005 }
	}
	unknown := func(_ float64, err error) bool { return errors.Is(err, errNull) }
	report := func(service, pod string, values map[engineMetric]map[string]float64) {
		t.Helper()
		postEngine(t, "http://"+engines, service, pod, values)
	}
	requests := func(running, waiting float64) map[string]float64 {
		return map[string]float64{"inference.request.state=running": running, "inference.request.state=waiting": waiting}
	}
	up := map[engineMetric]map[string]float64{engineUp: {"": 1}}

	_, err = utilization.ask(t.Context(), store, "another-token")
	assert.EqualError(t, err, "status 401")
	for _, k := range triggers {
		_, err = k.ask(t.Context(), store, token)
		assert.ErrorIs(t, err, errNull, "no engine has reported")
	}
	var truth float64
	for _, s := range f.TruthAt(f.Start()).Services {
		if s.Name == "llama" {
			truth = s.Utilization
		}
	}
	require.Positive(t, truth)
	becomes("the mean of llama", utilization, about(truth))

	report("llama", "llama-a", map[engineMetric]map[string]float64{engineUp: {"": 1}, engineRequests: requests(3, 3)})
	report("llama", "llama-b", map[engineMetric]map[string]float64{engineUp: {"": 1}, engineRequests: requests(6, 0)})
	report("other", "other-0", map[engineMetric]map[string]float64{engineUp: {"": 0}, engineRequests: requests(100, 100)})
	becomes("the requests of both pods", demand, about(12))
	becomes("those that wait", saturation, about(0.25))
	for pod, share := range map[string]float64{"llama-a": 0.4, "llama-b": 0.6} {
		report("llama", pod, map[engineMetric]map[string]float64{engineCache: {"inference.cache.tier=device": share, "inference.cache.tier=host": 1}})
	}
	becomes("the mean of the caches", saturation, about(0.5))
	report("llama", "llama-a", map[engineMetric]map[string]float64{engineLimit: {"": 3}})
	report("other", "other-0", map[engineMetric]map[string]float64{engineLimit: {"": 3}})
	limits := saturation
	limits.Metadata = map[string]string{"query": `count(inference_server_requests_limit)`, "authModes": "bearer"}
	becomes("two limits", limits, about(2))
	becomes("a limit of one pod is none of the service", saturation, about(0.5))
	report("llama", "llama-b", map[engineMetric]map[string]float64{engineLimit: {"": 9}})
	becomes("running requests of those that may run", saturation, about(0.75))

	report("llama", "llama-a", map[engineMetric]map[string]float64{engineUp: {"": 0}})
	becomes("one engine of two has no page", demand, unknown)
	becomes("one engine of two has no page", saturation, unknown)
	for _, pod := range []string{"llama-c", "llama-d"} {
		report("llama", pod, up)
	}
	engine := saturation
	engine.Metadata = map[string]string{"query": `count(inference_server_up{service_name="llama"})`, "authModes": "bearer"}
	becomes("four engines", engine, about(4))
	becomes("one of four has no page", demand, unknown)
	report("llama", "llama-e", up)
	becomes("one of five has no page", demand, about(12))
	becomes("one of five has no page", saturation, about(0.75))

	// What the example of the release before asks.
	post(t, c, map[string]string{"k8s.namespace.name": "inference", "k8s.pod.name": "llama-a", "service.name": "llama"}, m{
		"name": "vllm:num_requests_waiting", "gauge": m{"dataPoints": []m{{"asInt": "3", "timeUnixNano": now(), "attributes": []m{}}}},
	})
	before := demand
	before.Metadata = map[string]string{
		"query":            `sum({__name__=~"vllm[:_]num_requests_waiting",k8s_namespace_name="inference",service_name="llama"})`,
		"ignoreNullValues": "false", "authModes": "bearer",
	}
	becomes("the queue under the engine's own name", before, about(3))

	for _, node := range []string{"gpu-node-a", "gpu-node-b"} {
		_, err := f.StartFault(gpusim.Fault{Node: node, Kind: gpusim.ExporterDown})
		require.NoError(t, err)
	}
	server.Reconcile()
	for _, k := range append(triggers, utilization) {
		becomes("no answer while llama is partial", k, unknown)
	}
	unguarded := utilization
	unguarded.Metadata = map[string]string{"query": `avg(gpu_service_utilization_ratio{service_name="llama"})`, "authModes": "bearer"}
	becomes("though there is a mean of the others", unguarded, func(v float64, err error) bool { return err == nil && v > 0 })
	several := utilization
	several.Metadata = map[string]string{"query": "gpu_service_pods", "authModes": "bearer"}
	_, err = several.ask(t.Context(), store, token)
	assert.ErrorContains(t, err, "elements", "what is not aggregated is an error")
	assert.NotContains(t, log(t, c), token)
}

// engineMetric is a gauge, or a sum that may fall.
type engineMetric struct {
	name, unit string
	gauge      bool
}

var (
	engineUp       = engineMetric{name: "inference.server.up", unit: "1"}
	engineRequests = engineMetric{name: "inference.server.requests", unit: "{request}"}
	engineLimit    = engineMetric{name: "inference.server.requests.limit", unit: "{request}"}
	engineCache    = engineMetric{name: "inference.server.kv_cache.utilization", unit: "1", gauge: true}
)

// points begins the metric and returns where its points go.
func (e engineMetric) points(m pmetric.Metric) pmetric.NumberDataPointSlice {
	m.SetName(e.name)
	m.SetUnit(e.unit)
	if e.gauge {
		return m.SetEmptyGauge().DataPoints()
	}
	m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return m.Sum().DataPoints()
}

// postEngine sends what the engine of a pod reports: values by metric and by attribute
// (name=value, or none).
func postEngine(t *testing.T, url, service, pod string, values map[engineMetric]map[string]float64) {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{"k8s.namespace.name": "inference", "k8s.pod.name": pod, "service.name": service} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	for metric, of := range values {
		points := metric.points(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
		for attribute, v := range of {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetDoubleValue(v)
			if key, value, has := strings.Cut(attribute, "="); has {
				p.Attributes().PutStr(key, value)
			}
		}
	}
	body, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	sendMetrics(t, url, "application/x-protobuf", body)
}

func now() string { return strconv.FormatInt(time.Now().UnixNano(), 10) }

// post sends a metric, in OTLP's JSON, of a resource.
func post(t *testing.T, c *collector.Collector, resource map[string]string, metric m) {
	t.Helper()
	attributes := []m{}
	for k, v := range resource {
		attributes = append(attributes, m{"key": k, "value": m{"stringValue": v}})
	}
	body, err := json.Marshal(m{"resourceMetrics": []m{{
		"resource": m{"attributes": attributes}, "scopeMetrics": []m{{"metrics": []m{metric}}},
	}}})
	require.NoError(t, err)
	sendMetrics(t, fmt.Sprintf("http://%s:%d", collector.Loopback, c.Ports.OTLPHTTP), "application/json", body)
}

// sendMetrics sends a request of OTLP over HTTP.
func sendMetrics(t *testing.T, url, contentType string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/metrics", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
}
