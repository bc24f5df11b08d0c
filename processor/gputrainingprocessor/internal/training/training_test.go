// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var begin = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func config() Config {
	return Config{Window: 2 * time.Minute, RunTTL: 10 * time.Minute, MaxRuns: 10, MaxDevices: 100, Lookup: gpuspecs.Lookup}
}

// job is a run whose SDK sends every 30 s: a step of 10 s with as many tokens a device and second,
// two seconds of which wait for input, and 30 s of every 60 without steps.
type job struct {
	identity  map[string]string
	rank      int64
	precision string
	rate      float64 // tokens a second of wall clock, of all devices
	devices   int
	model     string // of devices
	share     float64
	parent    string
	figures   map[string]float64
	start     time.Time // of the process
	first     int64     // number of the last step before it
	noTokens  bool
}

var llama = map[string]float64{
	names.TrainingModelParameters.Name: 7504924672, names.TrainingModelLayers.Name: 32,
	names.TrainingModelAttention.Name: 8192, names.TrainingModelSequence.Name: 8192,
}

func service() *job {
	return &job{
		identity:  map[string]string{"k8s.cluster.name": "c", "k8s.namespace.name": "ml", "service.name": "llama"},
		precision: "bf16", rate: 4376 * 8, devices: 8, model: "NVIDIA H100 80GB HBM3", share: 1, figures: llama, start: begin,
	}
}

func (j *job) resource(md pmetric.Metrics) (pcommon.Map, pmetric.MetricSlice) {
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range j.identity {
		rm.Resource().Attributes().PutStr(k, v)
	}
	return rm.Resource().Attributes(), rm.ScopeMetrics().AppendEmpty().Metrics()
}

// held is the telemetry of the devices.
func (j *job) held() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range j.devices {
		attrs, metrics := j.resource(md)
		attrs.PutStr("hw.id", fmt.Sprint("GPU-", i))
		attrs.PutStr("hw.model", j.model)
		if j.parent != "" {
			attrs.PutStr("hw.parent", j.parent)
		}
		names.GPUAllocation.Init(metrics.AppendEmpty()).AppendEmpty().SetDoubleValue(j.share)
	}
	return md
}

// export is what the SDK sends at a time: steps end every 20 s and took 10.
func (j *job) export(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	attrs, metrics := j.resource(md)
	attrs.PutStr("training.run.id", "r1")
	if j.precision != "" {
		attrs.PutStr("training.precision", j.precision)
	}
	steps := uint64(at.Sub(j.start) / (20 * time.Second))
	start, now := pcommon.NewTimestampFromTime(j.start), pcommon.NewTimestampFromTime(at)
	for metric, mean := range map[*names.Metric]float64{&names.TrainingStepDuration: 10, &names.TrainingDataWait: 2} {
		p := metric.InitHistogram(metrics.AppendEmpty()).AppendEmpty()
		p.SetStartTimestamp(start)
		p.SetTimestamp(now)
		p.SetCount(steps)
		p.SetSum(float64(steps) * mean)
		p.Attributes().PutInt("training.rank", j.rank)
	}
	number := func(metric names.Metric, v float64) {
		p := metric.Init(metrics.AppendEmpty()).AppendEmpty()
		p.SetStartTimestamp(start)
		p.SetTimestamp(now)
		p.SetDoubleValue(v)
		p.Attributes().PutInt("training.rank", j.rank)
	}
	if !j.noTokens {
		number(names.TrainingTokens, float64(steps)*20*j.rate)
	}
	if steps > 0 {
		number(names.TrainingStep, float64(j.first+int64(steps)))
	}
	for name, v := range j.figures {
		number(names.Metric{Name: name, Kind: names.Gauge}, v)
	}
	return md
}

// drive sends what the job has every 20 s from one time to another, and returns the last figures.
func drive(t *testing.T, s *State, j *job, from, to time.Duration) (f Figures) {
	t.Helper()
	for at := from; at <= to; at += 20 * time.Second {
		now := begin.Add(at)
		s.Observe(j.held(), now)
		s.Observe(j.export(now), now)
		all := s.Evaluate(now)
		require.Len(t, all, 1)
		f = all[0]
	}
	return f
}

// The real runs of torchtitan on Llama 3 8B, of its log and its published table.
func TestRealRuns(t *testing.T) {
	for _, c := range []struct{ rate, tflops, mfu float64 }{{4376, 253.43, 0.2562}, {5762, 333.70, 0.337}, {6667, 386.11, 0.390}} {
		j := service()
		j.rate = c.rate * 8
		f := drive(t, New(config()), j, 0, 5*time.Minute)
		require.Equal(t, Fine, f.Reason)
		require.NotNil(t, f.MFUWall)
		assert.InDelta(t, c.mfu, *f.MFUWall, 0.0005)
		assert.InDelta(t, c.tflops, *f.MFUWall*989, 0.01)
		assert.InEpsilon(t, 2**f.MFUWall, *f.MFUStep, 1e-9, "half of the time is in steps")
		assert.InEpsilon(t, c.rate*8, *f.Throughput, 1e-9)
		assert.InEpsilon(t, c.rate, *f.DeviceThroughput, 1e-9)
		assert.InEpsilon(t, 0.2, *f.DataWait, 1e-9)
		assert.InEpsilon(t, 0.5, *f.GoodputRun, 1e-9)
		assert.Nil(t, f.GoodputHour)
	}
}

// What is not known is absent, and has its reason.
func TestAbsent(t *testing.T) {
	fp8 := config()
	fp8.FP8Peak = gpuspecs.FP8
	for name, c := range map[string]struct {
		change func(*job)
		cfg    Config
		want   Reason
	}{
		"all known":           {func(*job) {}, config(), Fine},
		"no tokens":           {func(j *job) { j.noTokens = true }, config(), NoTokens},
		"no model":            {func(j *job) { j.figures = nil }, config(), NoModel},
		"part of a model":     {func(j *job) { j.figures = map[string]float64{names.TrainingModelParameters.Name: 1e9} }, config(), NoModel},
		"the framework's own": {func(j *job) { j.figures = map[string]float64{names.TrainingFLOPsPerToken.Name: 5e10} }, config(), Fine},
		"no precision":        {func(j *job) { j.precision = "" }, config(), NoPrecision},
		"another precision":   {func(j *job) { j.precision = "int8" }, config(), NoPeak},
		"fp8":                 {func(j *job) { j.precision = "fp8" }, config(), FP8},
		"fp8, with a peak":    {func(j *job) { j.precision = "fp8" }, fp8, Fine},
		"no devices":          {func(j *job) { j.devices = 0 }, config(), NoDevices},
		"unknown model":       {func(j *job) { j.model = "NVIDIA Imaginary 9000" }, config(), UnknownDevice},
		"no model of devices": {func(j *job) { j.model = "" }, config(), UnknownDevice},
		"instances":           {func(j *job) { j.parent = "GPU-9" }, config(), Partitioned},
		"shared":              {func(j *job) { j.share = 0.5 }, config(), Shared},
		"tokens of each rank": {func(j *job) { j.rate *= 8 }, config(), Implausible},
	} {
		t.Run(name, func(t *testing.T) {
			j := service()
			c.change(j)
			f := drive(t, New(c.cfg), j, 0, 5*time.Minute)
			assert.Equal(t, c.want, f.Reason)
			assert.Equal(t, c.want == Fine, f.MFUStep != nil)
			assert.Equal(t, c.want == Fine, f.MFUWall != nil)
			if name == "fp8, with a peak" {
				assert.Equal(t, gpuspecs.FP8, f.Peak)
			}
		})
	}
}

func TestMixedModels(t *testing.T) {
	s, j := New(config()), service()
	drive(t, s, j, 0, 4*time.Minute)
	now := begin.Add(4*time.Minute + 10*time.Second)
	other := service()
	other.devices, other.model = 1, "NVIDIA A100-SXM4-80GB"
	s.Observe(other.held(), now)
	assert.Equal(t, MixedDevices, s.Evaluate(now)[0].Reason)
	// The same as all others again, and one fewer: what it was over the window is not known.
	j.devices = 7
	free := service()
	free.share = 0
	s.Observe(free.held(), now)
	s.Observe(j.held(), now)
	assert.Equal(t, DevicesChange, s.Evaluate(now)[0].Reason)
}

// A restart that repeats steps: they are lost, take time, and make no progress.
func TestRestart(t *testing.T) {
	s, j := New(config()), service()
	f := drive(t, s, j, 0, 10*time.Minute) // 30 steps
	assert.Zero(t, f.Restarts)
	j.start, j.first = begin.Add(11*time.Minute), 20
	f = drive(t, s, j, 11*time.Minute, 14*time.Minute+20*time.Second) // 21 to 30
	assert.EqualValues(t, 1, f.Restarts)
	assert.EqualValues(t, 10, f.LostSteps)
	assert.InEpsilon(t, 300./860, *f.GoodputRun, 1e-9)
	f = drive(t, s, j, 14*time.Minute+40*time.Second, 20*time.Minute)
	assert.EqualValues(t, 1, f.Restarts)
	assert.EqualValues(t, 10, f.LostSteps)
	assert.InEpsilon(t, (300.+17*10)/1200, *f.GoodputRun, 1e-9)
	assert.Equal(t, Fine, f.Reason)
}

func TestOtherRanks(t *testing.T) {
	s, j := New(config()), service()
	other := service()
	other.rank = 3
	drive(t, s, j, 0, time.Minute)
	tally := s.Observe(other.export(begin.Add(time.Minute)), begin.Add(time.Minute))
	assert.Positive(t, tally.Refused[OtherRank])
	f := drive(t, s, j, 80*time.Second, 5*time.Minute)
	assert.InEpsilon(t, j.rate, *f.Throughput, 1e-9)
}

// Processes that all send without a rank are one run, of which one process counts.
func TestProcessesWithoutRank(t *testing.T) {
	s, j := New(config()), service()
	refused := 0
	for at := time.Duration(0); at <= 5*time.Minute; at += 20 * time.Second {
		now := begin.Add(at)
		s.Observe(j.held(), now)
		for i := range 4 {
			other := *j
			other.start = j.start.Add(-time.Duration((i+1)%4) * time.Second)
			tally := s.Observe(other.export(now), now)
			refused += tally.Refused[OtherProcess]
		}
	}
	f := s.Evaluate(begin.Add(5 * time.Minute))[0]
	assert.Positive(t, refused)
	assert.InEpsilon(t, j.rate, *f.Throughput, 1e-9)
	assert.LessOrEqual(t, f.Restarts, int64(3))
}

// A device of which nothing arrives any more is still the run's, until the run starts again without
// it: a figure over the others would be too high.
func TestSilentDevice(t *testing.T) {
	s, j := New(config()), service()
	drive(t, s, j, 0, 5*time.Minute)
	j.devices = 7
	f := drive(t, s, j, 5*time.Minute+20*time.Second, 10*time.Minute)
	assert.Equal(t, Fine, f.Reason)
	f = drive(t, s, j, 10*time.Minute+20*time.Second, 20*time.Minute)
	assert.Equal(t, SilentDevice, f.Reason)
	assert.Nil(t, f.DeviceThroughput)
	j.start, j.first = begin.Add(20*time.Minute), 60
	f = drive(t, s, j, 20*time.Minute+20*time.Second, 26*time.Minute)
	assert.Equal(t, Fine, f.Reason)
	assert.InEpsilon(t, j.rate/7, *f.DeviceThroughput, 1e-9)
}

// Nothing is computed over the moment at which the job's clock was set.
func TestClockOfTheJob(t *testing.T) {
	s, j := New(config()), service()
	drive(t, s, j, 0, 4*time.Minute)
	now := begin.Add(4*time.Minute + 20*time.Second)
	tally := s.Observe(j.export(now.Add(time.Hour)), now)
	assert.Equal(t, 1, tally.Refused[Clock])
	f := s.Evaluate(now)[0]
	assert.Equal(t, TooEarly, f.Reason)
	assert.Nil(t, f.Throughput)
}

// A run that is silent has no figures, ends its series once, and is forgotten.
func TestSilence(t *testing.T) {
	s, j := New(config()), service()
	drive(t, s, j, 0, 5*time.Minute)
	count := func(now time.Time) (values, ends int) {
		md := Metrics(s.Evaluate(now), now, func(pcommon.InstrumentationScope) {})
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, dp := range m.Gauge().DataPoints().All() {
					if dp.Flags().NoRecordedValue() {
						ends++
						assert.Equal(t, 1, m.Gauge().DataPoints().Len(), "an end is a Metric of its own")
					} else {
						values++
					}
				}
			}
		}
		return values, ends
	}
	now := begin.Add(5 * time.Minute)
	values, ends := count(now)
	assert.Equal(t, []int{6, 0}, []int{values, ends})
	now = now.Add(4 * time.Minute)
	values, ends = count(now)
	assert.Equal(t, []int{1, 5}, []int{values, ends}, "goodput of the run goes on while devices are held")
	assert.Equal(t, Silent, s.Evaluate(now)[0].Reason)
	_, ends = count(now)
	assert.Zero(t, ends)
	assert.Empty(t, s.Evaluate(now.Add(7*time.Minute)))
	runs, devices := s.Tracked()
	assert.Equal(t, []int{0, 0}, []int{runs, devices})
}

func TestLimits(t *testing.T) {
	cfg := config()
	cfg.MaxRuns, cfg.MaxDevices = 1, 3
	s := New(cfg)
	j := service()
	tally := s.Observe(j.held(), begin)
	assert.Equal(t, 5, tally.Refused[LimitDevs])
	s.Observe(j.export(begin), begin)
	j.identity["service.name"] = "other"
	tally = s.Observe(j.export(begin), begin)
	assert.Positive(t, tally.Refused[LimitRuns])
	md := j.export(begin)
	number := md.ResourceMetrics().At(0)
	for i := range 200 {
		for _, m := range number.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeSum {
				m.Sum().DataPoints().At(0).Attributes().PutInt("step", int64(i))
			}
		}
		number.Resource().Attributes().PutStr("service.name", "llama")
		tally = s.Observe(md, begin)
	}
	assert.Positive(t, tally.Refused[LimitSeries])
	delete(j.identity, "service.name")
	tally = s.Observe(j.export(begin), begin)
	assert.Positive(t, tally.Refused[NoHolder])
}

// A job of Slurm is joined by its id, whatever it calls its service.
func TestSlurm(t *testing.T) {
	s, j := New(config()), service()
	j.identity = map[string]string{"slurm.cluster.name": "hpc", "slurm.job.id": "4711", "service.name": "ada/train"}
	held := j.held()
	for at := time.Duration(0); at <= 5*time.Minute; at += 20 * time.Second {
		j.identity["service.name"] = "llama"
		s.Observe(held, begin.Add(at))
		s.Observe(j.export(begin.Add(at)), begin.Add(at))
	}
	s.Evaluate(begin.Add(5 * time.Minute))
	f := s.Evaluate(begin.Add(5 * time.Minute))[0]
	assert.Equal(t, Holder{SlurmCluster: "hpc", Job: "4711"}, f.Holder)
	assert.NotNil(t, f.DeviceThroughput)
}

func FuzzRuns(f *testing.F) {
	marshal := pmetric.ProtoMarshaler{}
	for _, md := range []pmetric.Metrics{service().held(), service().export(begin.Add(time.Minute))} {
		body, err := marshal.MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
		if err != nil {
			return
		}
		s := New(config())
		for i := range 4 {
			now := begin.Add(time.Duration(i) * time.Minute)
			s.Observe(md, now)
			Metrics(s.Evaluate(now), now, func(pcommon.InstrumentationScope) {})
		}
	})
}
