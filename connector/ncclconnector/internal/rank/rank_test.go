// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"cmp"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
)

var start = time.Unix(1_800_000_000, 0).UTC()

func config() Config {
	return Config{
		Paths: []*regexp.Regexp{Kubernetes, Slurm}, RankLabel: true, Samples: 20, TTL: 15 * time.Minute,
		MaxCommunicators: 10, MaxSeries: 1000, MaxFiles: 10,
	}
}

// op is an operation as Inspector writes it; what is 0 has a value that fits.
type op struct {
	id, name, op, timing string
	rank, ranks          int
	sequence, bytes, us  int
	at                   time.Time
	more                 string
}

func (o op) header() string {
	name := ""
	if o.name != "" {
		name = fmt.Sprintf(`,"comm_name":%q`, o.name)
	}
	return fmt.Sprintf(`{"header":{"id":%q,"rank":%d,"n_ranks":%d,"nnodes":1%s},"metadata":{"inspector_output_format_version":"v4.3","dump_timestamp_us":%d,"hostname":"node-7","pid":1}`,
		cmp.Or(o.id, "0x7f"), o.rank, cmp.Or(o.ranks, 8), name, o.at.UnixMicro())
}

func (o op) String() string {
	if o.at.IsZero() {
		o.at = start
	}
	return fmt.Sprintf(`%s,"coll_perf":{"coll":%q,"coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":%q%s}}`,
		o.header(), cmp.Or(o.op, "AllReduce"), o.sequence, cmp.Or(o.bytes, 1<<20), cmp.Or(o.us, 100), cmp.Or(o.timing, "kernel_gpu"), o.more)
}

// marker is a line of v4.3 without records behind it.
func marker(o op, dropped int) string {
	if o.at.IsZero() {
		o.at = start
	}
	return fmt.Sprintf(`%s,"dump_stats":{"coll_records":0,"coll_dropped_total":%d,"p2p_records":0,"p2p_dropped_total":1,"proxy_records":0,"proxy_dropped_total":0}}`, o.header(), dropped)
}

// Who writes a file is in the name of its folder, and nowhere else.
func TestHolders(t *testing.T) {
	own := []*regexp.Regexp{regexp.MustCompile(`^/scratch/(?P<job>[0-9]+)-`)}
	for path, want := range map[string]holders.Holder{
		"/var/lib/nccl-inspector/team-a_llama-0/node-7-pid1.log": {Namespace: "team-a", Pod: "llama-0"},
		"/n/team-a_llama.worker-0/x.log":                         {Namespace: "team-a", Pod: "llama.worker-0"},
		"/n/1234/node-7-pid1.log":                                {Job: "1234"},
		"/n/12345678901/x.log":                                   {},
		"/n/nccl-inspector-1234/x.log":                           {},
		"/n/team-a_llama-0/9/x.log":                              {Job: "9"}, // file_log is not to look that deep
		"/n/Team_a/x.log":                                        {},
		"/n/a_b_c/x.log":                                         {},
		"team-a_llama-0/x.log":                                   {},
		"1234":                                                   {},
		"/scratch/77-llama/x.log":                                {Job: "77"},
	} {
		cfg := config()
		if want.Job == "77" {
			cfg.Paths = own
		}
		assert.Equal(t, want, New(cfg).holder(path), path)
	}
}

// What becomes of lines that can be read, one after the other.
func TestCauses(t *testing.T) {
	type line struct {
		path, text string
		after      time.Duration
		want       Cause
	}
	lines := func(texts ...any) (all []line) {
		for i := 0; i < len(texts); i += 2 {
			all = append(all, line{path: "/n/1/a.log", text: fmt.Sprint(texts[i]), want: texts[i+1].(Cause)})
		}
		return all
	}
	for name, c := range map[string]struct {
		limit func(*Config)
		lines []line
	}{
		"used":                     {nil, lines(op{}, inspector.Fine)},
		"refused by inspector":     {nil, lines("{", inspector.Torn)},
		"a clock that is set":      {nil, lines(op{at: start.Add(61 * time.Second)}, Future, op{at: start.Add(59 * time.Second)}, inspector.Fine)},
		"a time in the batch":      {nil, lines(marker(op{at: start.Add(2 * time.Minute)}, 0), Future)},
		"another number of ranks":  {nil, lines(op{}, inspector.Fine, op{ranks: 16}, Ranks, op{ranks: 16, name: "TP"}, inspector.Fine)},
		"a false bandwidth":        {nil, lines(op{more: `,"coll_algobw_gbs":100`}, Contradiction)},
		"a bandwidth":              {nil, lines(op{more: `,"coll_algobw_gbs":10.5`}, inspector.Fine)},
		"several ranks in a file":  {nil, lines(op{}, inspector.Fine, op{rank: 1}, inspector.Fine)},
		"too many communicators":   {func(c *Config) { c.MaxCommunicators = 1 }, lines(op{}, inspector.Fine, op{id: "0x80"}, LimitCommunicators, op{rank: 1}, inspector.Fine)},
		"too many series of ranks": {func(c *Config) { c.MaxSeries = ofGroup + ofOperation }, lines(op{}, inspector.Fine, op{rank: 1}, LimitSeries, op{}, inspector.Fine)},
		"too many series of kinds": {func(c *Config) { c.MaxSeries = ofGroup + ofOperation }, lines(op{}, inspector.Fine, op{op: "AllGather"}, LimitSeries)},
		"too many ranks, no label": {func(c *Config) { c.MaxSeries, c.RankLabel = ofGroup+ofOperation, false }, func() (all []line) {
			for i := range ofGroup + ofOperation {
				all = append(all, lines(op{rank: i, ranks: 1000}, inspector.Fine)...)
			}
			return append(all, lines(op{rank: 999, ranks: 1000}, LimitSeries)...)
		}()},
		"too many files": {func(c *Config) { c.MaxFiles = 1 }, []line{{"/n/1/a.log", op{}.String(), 0, inspector.Fine}, {"/n/1/b.log", op{}.String(), 0, LimitFiles}}},
		"a restart":      {nil, []line{{"/n/1/a.log", op{}.String(), 0, inspector.Fine}, {"/n/1/b.log", op{}.String(), 0, inspector.Fine}, {"/n/1/b.log", op{}.String(), 0, inspector.Fine}}},
		"two files": {nil, []line{
			{"/n/1/a.log", op{}.String(), 0, inspector.Fine}, {"/n/1/b.log", op{}.String(), 0, inspector.Fine}, {"/n/1/a.log", op{}.String(), 0, TwoFiles},
			{"/n/1/b.log", op{}.String(), 0, inspector.Fine},
		}},
		"the same rank of another job": {nil, []line{{"/n/1/a.log", op{}.String(), 0, inspector.Fine}, {"/n/2/a.log", op{}.String(), 0, inspector.Fine}, {"/n/1/a.log", op{}.String(), 0, inspector.Fine}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			if c.limit != nil {
				c.limit(&cfg)
			}
			s := New(cfg)
			for i, l := range c.lines {
				require.Equal(t, l.want, s.Line(l.path, l.text, start.Add(l.after)), "line %d", i)
			}
			_, series := s.Tracked()
			assert.LessOrEqual(t, series, cfg.MaxSeries)
		})
	}
}

// Ranks whose intervals begin at different moments choose the same operations, nearly always.
func TestRanksChooseTheSameOperations(t *testing.T) {
	for _, perInterval := range []int{10, 50, 300, 1000} {
		const intervals = 8
		shifts := []int{0, perInterval / 8, perInterval / 2, perInterval - 1}
		sent := map[uint64]int{}
		for rank, shift := range shifts {
			s := New(config())
			for i := range intervals {
				for n := range perInterval {
					require.Equal(t, inspector.Fine, s.Line("/n/1/a.log", op{rank: rank, sequence: 1000 + shift + i*perInterval + n}.String(), start))
				}
				batches := s.Batches()[holders.Holder{Job: "1"}]
				require.Len(t, batches, 1)
				assert.Len(t, batches[0].Sequences, min(20, perInterval))
				for _, sequence := range batches[0].Sequences {
					sent[sequence]++
				}
			}
		}
		all, complete := 0, 0
		for sequence, n := range sent {
			if sequence < uint64(1000+perInterval) || sequence >= uint64(1000+(intervals-1)*perInterval) {
				continue // not all of them had it
			}
			all++
			if n == len(shifts) {
				complete++
			}
		}
		assert.Greater(t, float64(complete), 0.85*float64(all), "%d operations an interval", perInterval)
	}
}

// A sample has what shows who is late; of other operations it shows that the rank lives.
func TestBatches(t *testing.T) {
	s := New(config())
	for _, o := range []op{
		{sequence: 3, us: 30}, {sequence: 4, us: 40}, {sequence: 4, us: 99}, {sequence: 1, op: "AllGather"},
		{sequence: 5, timing: "kernel_cpu"}, {sequence: 6, more: `,"graphCaptured":true`}, {sequence: 7, op: "Broadcast"},
		{rank: 1, op: "Broadcast", at: start.Add(time.Second)},
	} {
		require.Equal(t, inspector.Fine, s.Line("/n/1/a.log", o.String(), start))
	}
	got := s.Batches()[holders.Holder{Job: "1"}]
	require.Len(t, got, 3)
	assert.Equal(t, []string{"AllGather", "AllReduce", ""}, []string{got[0].Operation, got[1].Operation, got[2].Operation})
	assert.Equal(t, []uint64{4, 3}, got[1].Sequences)
	assert.Equal(t, []time.Duration{40 * time.Microsecond, 30 * time.Microsecond}, got[1].Durations)
	assert.Equal(t, inspector.Key{ID: "0x7f", Ranks: 8, Nodes: 1}, got[1].Key)
	assert.Equal(t, []any{1, "node-7", start.Add(time.Second)}, []any{got[2].Rank, got[2].Host, got[2].Newest.UTC()})
	assert.Empty(t, s.Batches(), "a rank of which nothing came is silent")
}
