// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile is what any client of a port can send: what is no request, and
// well-formed OTLP with invalid names, values and times.
package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Send writes bytes to a port, sometimes hangs up without having read, and else
// returns what came back at once.
func Send(port int, body []byte) string {
	c, err := net.DialTimeout("tcp", collector.Address(port), time.Second)
	if err != nil {
		return "" // it does not run
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := c.Write(body); err != nil || len(body)%3 == 0 {
		return ""
	}
	answer := make([]byte, 1<<12)
	n, _ := c.Read(answer)
	return string(answer[:n])
}

// bomb is 40 MiB of zeros, compressed.
var bomb = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(make([]byte, 40<<20)) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
})

// Requests are bodies and requests that are wrong in all kinds of ways.
func Requests(seed uint64) [][]byte {
	request := func(path, contentType, encoding string, body []byte) []byte {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n", path, contentType, len(body))
		if encoding != "" {
			head += "Content-Encoding: " + encoding + "\r\n"
		}
		return append([]byte(head+"\r\n"), body...)
	}
	deep := []byte(strings.Repeat(`{"resourceMetrics":[`, 5000))
	noise := breakable.Garbage(seed, 5000)
	// pdata's reader of JSON takes what begins with } for an empty request, and
	// answers 200: one noise in 256. That changes nothing, so it is not for us to
	// refuse. This bit is in no byte that JSON can begin with.
	noise[0] |= 0x80
	out := [][]byte{
		noise, {}, {0}, []byte("GET"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), noise...),
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 1500)),
		[]byte("GET /" + strings.Repeat("../", 3000) + "etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
		[]byte("POST /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx"),
		[]byte("POST /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000000\r\n\r\nhalf"),
		[]byte("GET /api/v1/query?query=%7B__name__%3D~%22.%2B%22%7D%5B9y%5D HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
		[]byte("GET /api/v1/query_range?query=up&start=0&end=9e99&step=1e-9 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
		[]byte("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
	}
	for _, signal := range []string{"metrics", "logs", "traces"} {
		path := "/v1/" + signal
		out = append(out,
			request(path, "application/x-protobuf", "", noise), request(path, "application/json", "", noise),
			request(path, "application/json", "", deep), request(path, "application/json", "", []byte(`{"resourceMetrics":7,"resourceLogs":"x","resourceSpans":7}`)),
			request(path, "application/x-protobuf", "gzip", noise), request(path, "application/x-protobuf", "gzip", bomb()),
			request(path, "text/plain", "", []byte("hello")), request(path, "application/x-protobuf", "zstd", noise),
			request(path, "application/grpc", "", []byte{0, 255, 255, 255, 255}),
		)
	}
	return out
}

// values are invalid names and values.
var values = []string{
	"", " ", strings.Repeat("x", 100_000), "<script>alert(1)</script>", "\u202e\ufeff\x00\x1b[31m", "{{.}}", "${env:HOME}", `"},{x="`,
	"'; drop table gpus; --", "../../../../etc/passwd", "\n\r\t", "NaN", strings.Repeat("𝔘", 1000),
}

// Metrics are well-formed, and implausible.
func Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	for i, value := range values {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr(names.K8sNamespaceName, "hostile")
		a.PutStr(names.K8sPodName, "hostile"+value)
		a.PutStr(names.ServiceName, "hostile"+value)
		a.PutStr(names.HwID, "hostile"+value)
		a.PutStr(value, value)
		for n := range 200 {
			a.PutStr("attribute_"+strconv.Itoa(n), value[:min(len(value), 1000)])
		}
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, name := range []string{names.GPUUtilization.Name, names.GPUMemoryUsage.Name, names.GPUAllocation.Name, "hostile.metric", value} {
			metric := ms.AppendEmpty()
			metric.SetName(name)
			metric.SetUnit(value[:min(len(value), 1000)])
			if unit, known := map[string]string{names.GPUUtilization.Name: "1", names.GPUMemoryUsage.Name: "By"}[name]; known && i%3 > 0 {
				metric.SetUnit(unit) // goes further in
			}
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, 1e300, 0} {
				var dp pmetric.NumberDataPoint
				if i%2 == 0 {
					if metric.Type() != pmetric.MetricTypeSum {
						metric.SetEmptySum()
					}
					dp = metric.Sum().DataPoints().AppendEmpty()
				} else {
					if metric.Type() != pmetric.MetricTypeGauge {
						metric.SetEmptyGauge()
					}
					dp = metric.Gauge().DataPoints().AppendEmpty()
				}
				dp.SetTimestamp(now)
				dp.SetDoubleValue(v)
				dp.Attributes().PutStr(names.HwID, "hostile"+value)
				dp.Attributes().PutStr(names.HwGPUTask, "general")
			}
		}
		empty := ms.AppendEmpty()
		empty.SetName("hostile.empty")
		deep := a.PutEmptyMap("deep")
		for range 60 {
			deep = deep.PutEmptyMap("deeper")
		}
		histogram := ms.AppendEmpty()
		histogram.SetName("hostile.histogram")
		h := histogram.SetEmptyHistogram().DataPoints().AppendEmpty()
		h.SetTimestamp(now)
		h.ExplicitBounds().FromRaw([]float64{3, 2, 1})
		h.BucketCounts().FromRaw([]uint64{1})
		h.SetCount(math.MaxUint64)
	}
	return md
}

// Logs are no events of ours: they must not be forwarded.
func Logs() plog.Logs {
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, value := range values {
		record := records.AppendEmpty()
		record.SetEventName("hostile." + value)
		record.Body().SetStr(value)
		record.Attributes().PutStr(names.GPUEventID, value)
		record.Attributes().PutStr(value, value)
		// The name of an event, and no id.
		records.AppendEmpty().SetEventName(names.EventServicePartial)
	}
	return ld
}

// Timeless are points from the past and from the future.
func Timeless(now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(0, 1), now.Add(-24 * time.Hour), now.Add(-time.Minute), now.Add(time.Minute), now.Add(24 * time.Hour), time.Unix(0, math.MaxInt64),
	} {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr(names.K8sClusterName, fleet.Cluster)
		a.PutStr(names.K8sNamespaceName, "hostile")
		a.PutStr(names.K8sPodName, "hostile-"+strconv.Itoa(i))
		a.PutStr(names.ServiceName, "hostile")
		for _, name := range []string{names.GPUUtilization.Name, names.GPUAllocation.Name} {
			metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			metric.SetName(name)
			metric.SetUnit("1")
			dp := metric.SetEmptyGauge().DataPoints().AppendEmpty()
			if !at.IsZero() {
				dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
			}
			dp.SetDoubleValue(1)
			dp.Attributes().PutStr(names.HwID, "hostile-"+strconv.Itoa(i))
			dp.Attributes().PutStr(names.HwGPUTask, "general")
		}
	}
	return md
}
