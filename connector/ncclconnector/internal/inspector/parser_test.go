// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	header   = `"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1}`
	metadata = `"metadata":{"inspector_output_format_version":"%s","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1748030377748202,"hostname":"node-7","pid":163}`
	reduce   = `"coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}`
	scatter  = `"coll_perf":{"coll":"ReduceScatter","coll_algo":"RING","coll_proto":"SIMPLE","coll_sn":1231,"coll_msg_size_bytes":2147483648,"coll_exec_time_us":41057,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":418.439467,"coll_busbw_gbs":366.134533,"event_trace_ts":{"coll_start_ts":1752867229235059,"kernel_events":[{"channel_id":0,"kernel_start_ts":1}]}}`
)

func whole(version, object string) string {
	return "{" + header + "," + fmt.Sprintf(metadata, version) + "," + object + "}"
}

func marker(collectives, peers, proxies int) string {
	return whole("v4.3", fmt.Sprintf(`"dump_stats":{"coll_records":%d,"coll_dropped_total":40,"p2p_records":%d,"p2p_dropped_total":5,"proxy_records":%d,"proxy_dropped_total":6,"proxy_pxn_skipped_process_total":9}`, collectives, peers, proxies))
}

// What each line of a file becomes: an operation with its number, drops, or the cause for which it
// is refused.
func TestLines(t *testing.T) {
	record := func(from, to string) string { return whole("v4.0", strings.Replace(reduce, from, to, 1)) }
	for name, c := range map[string]struct{ lines, want []string }{
		"v4.0":              {[]string{whole("v4.0", reduce)}, []string{"AllReduce 1407"}},
		"v5.0 in a graph":   {[]string{whole("v5.0", strings.Replace(reduce, "{", `{"graphCaptured":true,`, 1))}, []string{"AllReduce 1407 graph"}},
		"blanks":            {[]string{strings.ReplaceAll(whole("v4.0", reduce), ":", ": ") + "\r"}, []string{"AllReduce 1407"}},
		"no timing source":  {[]string{record(`"coll_timing_source":"kernel_gpu",`, "")}, []string{"AllReduce 1407 untimed"}},
		"point to point":    {[]string{whole("v4.0", `"p2p_perf":{"p2p":"Send","p2p_sn":7,"p2p_peer":3,"p2p_msg_size_bytes":1048576,"p2p_exec_time_us":100,"p2p_timing_source":"kernel_gpu"}`)}, []string{"Send 7"}},
		"another algorithm": {[]string{record("277.21", "355.21")}, []string{"AllReduce 1407 contradicts"}},
		"stream": {
			[]string{marker(2, 0, 1), "{" + reduce + "}", `{"proxy_trace":{"op":1}}`, "{" + scatter + "}", "{" + reduce + "}"},
			[]string{"drops 40 5 6", "AllReduce 1407", "", "ReduceScatter 1231", "no_context"},
		},
		"a batch cut short":         {[]string{marker(3, 0, 0), "{" + reduce + "}", marker(1, 0, 0), "{" + reduce + "}"}, []string{"drops 40 5 6", "AllReduce 1407", "drops 40 5 6 incomplete", "AllReduce 1407"}},
		"a torn line of a batch":    {[]string{marker(2, 0, 0), "{" + reduce[:40], "{" + reduce + "}", marker(0, 0, 0)}, []string{"drops 40 5 6", "torn", "AllReduce 1407", "drops 40 5 6"}},
		"another's line in a batch": {[]string{marker(1, 0, 0), "NCCL INFO Bootstrap", "{" + reduce + "}"}, []string{"drops 40 5 6", "torn", "AllReduce 1407"}},
		"after a restart":           {[]string{"{" + reduce + "}"}, []string{"no_context"}},
		"torn at the end":           {[]string{whole("v4.0", reduce)[:200]}, []string{"torn"}},
		"torn at the beginning":     {[]string{whole("v4.0", reduce)[30:]}, []string{"torn"}},
		"two in one":                {[]string{whole("v4.0", reduce) + whole("v4.0", reduce)}, []string{"joined"}},
		"one torn, one whole":       {[]string{whole("v4.0", reduce)[:90] + whole("v4.0", reduce)}, []string{"torn"}},
		"a hole":                    {[]string{strings.Repeat("\x00", 9) + whole("v4.0", reduce)}, []string{"nul"}},
		"no UTF-8":                  {[]string{"{\"header\":\"\xff\"}"}, []string{"text"}},
		"text":                      {[]string{"NCCL INFO Bootstrap"}, []string{"torn"}},
		"an empty line":             {[]string{""}, []string{"torn"}},
		"keys that NCCL never had":  {[]string{`{"collective":"AllReduce","algo_bw":100,"rank":3}`}, []string{"unknown"}},
		"two objects":               {[]string{whole("v4.0", reduce+`,"p2p_perf":{}`)}, []string{"unknown"}},
		"no object":                 {[]string{"{" + header + "," + fmt.Sprintf(metadata, "v4.0") + "}"}, []string{"unknown"}},
		"a header alone":            {[]string{"{" + header + "," + reduce + "}"}, []string{"unknown"}},
		"a text for a number":       {[]string{record("1407", `"1407"`)}, []string{"unknown"}},
		"a version of the future":   {[]string{whole("v6.0", reduce)}, []string{"version"}},
		"a size below zero":         {[]string{record("17179869184", "18446744073709551104")}, []string{"size"}},
		"a size beyond all":         {[]string{record("17179869184", "1e30")}, []string{"unknown"}},
		"no time":                   {[]string{record("61974", "0")}, []string{"duration"}},
		"more than an hour":         {[]string{record("61974", "3600000001")}, []string{"duration"}},
		"a rank beyond its number":  {[]string{strings.Replace(whole("v4.0", reduce), `"rank":2`, `"rank":8`, 1)}, []string{"rank"}},
		"a long name":               {[]string{strings.Replace(whole("v4.0", reduce), `"nnodes":1`, `"nnodes":1,"comm_name":"`+strings.Repeat("x", 129)+`"`, 1)}, []string{"text"}},
		"a marker that cannot be":   {[]string{marker(-1, 0, 0), "{" + reduce + "}"}, []string{"unknown", "no_context"}},
		"a marker of a wrong rank":  {[]string{marker(1, 0, 0), strings.Replace(marker(1, 0, 0), `"rank":2`, `"rank":9`, 1), "{" + reduce + "}"}, []string{"drops 40 5 6", "rank", "no_context"}},
		"no operation":              {[]string{record(`"coll":"AllReduce",`, "")}, []string{"unknown"}},
		"a communicator of its own": {[]string{strings.Replace(whole("v4.0", reduce), `"id":"0x7f8c496ae9f661"`, `"id":""`, 1)}, []string{"unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p Parser
			var got []string
			for _, text := range c.lines {
				var is []string
				record, drops, cause := p.Line(text)
				if record != nil {
					is = append(is, fmt.Sprint(record.Operation, " ", record.Sequence))
					assert.Equal(t, Source{Key{"0x7f8c496ae9f661", 8, 1, ""}, 2, "node-7", 163, time.UnixMicro(1748030377748202)}, record.Source)
					for flag, set := range map[string]bool{"graph": record.Graph, "contradicts": record.Contradicts, "untimed": record.Timing != TimedKernel} {
						if set {
							is = append(is, flag)
						}
					}
				}
				if drops != nil {
					is = append(is, fmt.Sprint("drops ", drops.Collective, drops.PointToPoint, drops.Proxy))
				}
				if cause != Fine {
					is = append(is, string(cause))
				}
				got = append(got, strings.Join(is, " "))
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// The bandwidths that Inspector printed for two operations of a real run, in bytes a second.
func TestTraffic(t *testing.T) {
	for object, want := range map[string][2]float64{reduce: {277.210914e9, 485.119099e9}, scatter: {418.439467e9, 366.134533e9}} {
		var p Parser
		r, _, cause := p.Line(whole("v4.0", object))
		require.Equal(t, Fine, cause)
		assert.False(t, r.Contradicts)
		message, bus, ok := r.Traffic()
		require.True(t, ok)
		assert.InEpsilon(t, want[0], message/r.Duration.Seconds(), 1e-8)
		assert.InEpsilon(t, want[1], bus/r.Duration.Seconds(), 1e-8)
	}
	_, _, ok := (&Record{Operation: "AlltoAll", Bytes: 1 << 20, Source: Source{Key: Key{Ranks: 8}}}).Traffic()
	assert.False(t, ok)
}

func FuzzLine(f *testing.F) {
	for _, text := range []string{whole("v4.0", reduce), marker(1, 1, 1), "{" + scatter + "}", whole("v4.0", reduce)[:77], ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p Parser
		for _, one := range append([]string{marker(3, 0, 0)}, strings.Split(text, "\n")...) {
			r, drops, cause := p.Line(one)
			if r == nil {
				continue
			}
			require.Equal(t, Fine, cause)
			require.Nil(t, drops)
			require.Positive(t, r.Duration)
			require.Less(t, r.Rank, r.Key.Ranks)
			require.GreaterOrEqual(t, r.Rank, 0)
			message, bus, _ := r.Traffic()
			require.False(t, message < 0 || bus < 0)
		}
	})
}

func BenchmarkLine(b *testing.B) {
	text := whole("v4.0", reduce)
	var p Parser
	for b.Loop() {
		if _, _, cause := p.Line(text); cause != Fine {
			b.Fatal(cause)
		}
	}
}
