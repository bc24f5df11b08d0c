// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// forged is the label that everything from an application has here: where it is
// found with a name of ours, the application has spoken for a GPU.
const forged = "forged"

// metric is one metric that an application sends.
type metric struct {
	name, unit string
	kind       pmetric.MetricType
	monotonic  bool
	labels     map[string]string
}

// identity is what makes telemetry that of the victim's GPU.
var identity = map[string]string{
	"k8s.cluster.name": clusterName, "k8s.node.name": nodeName, "k8s.namespace.name": victimNamespace, "k8s.pod.name": victimPod,
	"service.name": victim, "hw.id": "GPU-00000000-0000-0000-0000-000000000000", "hw.type": "gpu",
}

// request is an OTLP request with these metrics, under a resource with these
// attributes.
func request(resource map[string]string, metrics ...metric) []byte {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range resource {
		rm.Resource().Attributes().PutStr(k, v)
	}
	into := rm.ScopeMetrics().AppendEmpty().Metrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	point := func(p pmetric.NumberDataPoint, labels map[string]string) {
		p.SetTimestamp(now)
		p.SetStartTimestamp(now - pcommon.Timestamp(time.Minute))
		p.SetDoubleValue(1)
		p.Attributes().PutStr(forged, "true")
		for k, v := range labels {
			p.Attributes().PutStr(k, v)
		}
	}
	for _, wanted := range metrics {
		made := into.AppendEmpty()
		made.SetName(wanted.name)
		made.SetUnit(wanted.unit)
		switch wanted.kind {
		case pmetric.MetricTypeSum:
			sum := made.SetEmptySum()
			sum.SetIsMonotonic(wanted.monotonic)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point(sum.DataPoints().AppendEmpty(), wanted.labels)
		case pmetric.MetricTypeHistogram:
			histogram := made.SetEmptyHistogram()
			histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := histogram.DataPoints().AppendEmpty()
			p.SetTimestamp(now)
			p.SetStartTimestamp(now - pcommon.Timestamp(time.Minute))
			p.SetCount(1)
			p.SetSum(1)
			p.ExplicitBounds().FromRaw([]float64{1})
			p.BucketCounts().FromRaw([]uint64{1, 0})
			p.Attributes().PutStr(forged, "true")
		default:
			point(made.SetEmptyGauge().DataPoints().AppendEmpty(), wanted.labels)
		}
	}
	text, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		panic(err) // of a message that was made here
	}
	return text
}

// flood is a request with n new series of one metric.
func flood(prefix string, n int) []byte {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("requests.seen")
	points := m.SetEmptyGauge().DataPoints()
	now := pcommon.NewTimestampFromTime(time.Now())
	for i := range n {
		p := points.AppendEmpty()
		p.SetTimestamp(now)
		p.SetDoubleValue(1)
		p.Attributes().PutStr("request_id", fmt.Sprintf("%s-%d", prefix, i))
		p.Attributes().PutStr(forged, "true")
	}
	text, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		panic(err)
	}
	return text
}

// post sends an OTLP/HTTP request as any pod can: without a token.
func post(ctx context.Context, port int, signal string, body []byte, headers map[string]string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at(port, "/v1/"+signal), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	for k, v := range headers {
		if k == "Host" {
			req.Host = v
		} else {
			req.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// exemplars is a request in protobuf, packed, with a point that has n exemplars without content.
func exemplars(n int) []byte {
	field := func(number byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content))), content...)
	}
	point := bytes.Repeat([]byte{5<<3 | 2, 0}, n)
	metric := append(field(1, []byte("a")), field(5, field(1, point))...) // a gauge
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(field(1, field(2, field(2, metric))))
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // of a buffer
	}
	return packed.Bytes()
}

// large is a request of about size bytes of JSON that is small once compressed.
func large(size int) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	put := func(text string) {
		if _, err := io.WriteString(w, text); err != nil {
			panic(err) // of a buffer
		}
	}
	put(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[`)
	point := `{"timeUnixNano":"1","asInt":"1"},`
	put(strings.Repeat(point, size/len(point)))
	put(strings.TrimSuffix(point, ",") + `]}}]}]}]}`)
	if err := w.Close(); err != nil {
		panic(err)
	}
	return packed.Bytes()
}
