// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

// story logs and counts how the receiver fares: each cause when it begins, and again after
// ten minutes at the earliest. Its methods called, line and refused are safe for concurrent
// use.
type story struct {
	logger    *zap.Logger
	own       *metadata.TelemetryBuilder
	container bool

	// unknownAgain is that another helper did not help where all boards return 999.
	unknownAgain bool

	outcomes logonce.Outcomes
	pipeline logonce.Outcomes
	kernel   logonce.Outcomes
	boards   map[string]*logonce.Outcomes // by thread
	denied   logonce.Causes
	values   logonce.Causes
	others   logonce.Causes
}

func newStory(logger *zap.Logger, own *metadata.TelemetryBuilder) *story {
	return &story{
		logger: logger, own: own, container: nvmlhelper.InContainer(), boards: map[string]*logonce.Outcomes{},
		denied: logonce.Causes{Most: 64}, values: logonce.Causes{Most: 64},
	}
}

func one(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// outcome logs and counts how a scrape ended.
func (s *story) outcome(cause nvmlproto.Cause, err error, devices int) {
	s.own.NvmlReceiverScrapes.Add(context.Background(), 1, one("outcome", string(cause)))
	if cause == outcomeReleased { // has lines of its own
		return
	}
	state, remedy := string(cause), cause.Remedy(s.container)
	switch {
	case cause == nvmlproto.CauseNone:
		state = ""
	case cause != nvmlproto.CauseUnknownError:
	case s.unknownAgain:
		state += " again" // of the next helper, too: a line of its own
	default:
		remedy = "wait: another helper is started after three such scrapes, and what to do is logged if it does not help"
	}
	switch {
	case !s.outcomes.Begins(state, time.Now()):
	case state == "":
		s.logger.Info("the driver gives GPU metrics again", zap.Int("devices", devices))
	default:
		text := ""
		if err != nil {
			text = err.Error()
		}
		s.logger.Warn("the driver gives no GPU metrics",
			zap.String("outcome", string(cause)), zap.String("remedy", remedy), zap.String("cause", text))
	}
}

// board logs what begins for a board; empty: it is read.
func (s *story) board(thread, state string, log func()) {
	o := s.boards[thread]
	if o == nil {
		if state == "" || len(s.boards) >= nvmlproto.MaxBoards {
			return
		}
		o = &logonce.Outcomes{}
		s.boards[thread] = o
	}
	if o.Begins(state, time.Now()) {
		log()
	}
}

// late logs the boards that have not answered, and that others do again.
func (s *story) late(late []helper.Late) {
	now := map[string]bool{}
	for _, l := range late {
		now[l.Thread] = true
		s.board(l.Thread, "late", func() {
			s.logger.Warn("a GPU has not answered in time, it is left out until the call returns",
				zap.String("gpu", l.Thread), zap.String("call", l.Call), zap.Bool("stuck", l.Stuck), zap.Duration("age", age(l)),
				zap.String("remedy", nvmlproto.CauseStuck.Remedy(s.container)))
		})
	}
	for thread := range s.boards {
		if !now[thread] {
			s.board(thread, "", func() { s.logger.Info("the GPU answers again", zap.String("gpu", thread)) })
		}
	}
}

func age(l helper.Late) time.Duration {
	if l.Since.IsZero() {
		return 0
	}
	return time.Since(l.Since).Round(time.Millisecond)
}

func (s *story) lost(thread string) {
	s.logger.Warn("a GPU has fallen off the bus, its series end", zap.String("gpu", thread),
		zap.String("remedy", "look at dmesg for NVRM: Xid 79; reboot the host, or reset the slot; it is looked for again after 5 minutes, then every hour"))
}

func (s *story) leftOut(thread string) {
	s.logger.Warn("helpers crash in calls for a GPU, it is left out for 10 minutes", zap.String("gpu", thread),
		zap.String("remedy", nvmlproto.CauseCrashed.Remedy(s.container)))
}

func (s *story) noHardware() {
	if s.others.First("no hardware", time.Now()) {
		s.logger.Info("this host has no NVIDIA GPU, nothing is read; it is looked for every minute")
	}
}

func (s *story) leftAlone(why string) {
	s.logger.Info("the driver is left alone, no GPU is read", zap.String("reason", why))
}

func (s *story) readAgain() { s.logger.Info("the driver is read again") }

func (s *story) replaced(reason string) {
	s.own.NvmlReceiverHelperRestarts.Add(context.Background(), 1, one("reason", reason))
	switch reason {
	case "driver", "boards", "lost":
		s.logger.Info("the helper is replaced", zap.String("reason", reason))
	}
}

// started logs that a helper could not be started; the outcome has the remedy.
func (s *story) started(err error) { s.replaced(string(causeOf(err))) }

func (s *story) beyond(boards int) {
	if boards > 0 {
		s.refused("boards", nvmlproto.ReasonLimit, boards)
	}
}

// line logs a line of the helper.
func (s *story) line(text string) { s.logger.Warn("the helper reports", zap.String("line", text)) }

// called counts a call that has returned.
func (s *story) called(c *nvmlproto.Call) {
	s.own.NvmlReceiverDriverSeconds.Add(context.Background(), c.Micros/1e6, one("group", groupOf(c.Name)))
}

// groups are those of readings by their calls.
var groups = func() map[string]string {
	all := map[string]string{}
	for i := range nvmlproto.Readings {
		r := &nvmlproto.Readings[i]
		all[r.Symbol()] = string(r.Group)
	}
	all[string(nvmlproto.MethodField)] = "fields"
	return all
}()

func groupOf(call string) string {
	call = versionless(call)
	if g, ok := groups[call]; ok {
		return g
	}
	switch {
	case strings.HasPrefix(call, "nvmlGpm"):
		return string(nvmlproto.GroupProfiling)
	case strings.HasPrefix(call, "nvmlEvent"), strings.Contains(call, "Event"):
		return string(nvmlproto.GroupXID)
	case strings.Contains(call, "Process"):
		return string(nvmlproto.GroupProcesses)
	case strings.Contains(call, "ThrottleReasons"):
		return string(nvmlproto.GroupThrottle)
	}
	return "other"
}

// versionless is a call without the version in its symbol: _v2, and V of GetTemperatureV.
func versionless(call string) string {
	name, rest, found := strings.Cut(call, "(")
	if i := strings.LastIndex(name, "_v"); i > 0 {
		name = name[:i]
	}
	name = strings.Replace(name, "GetTemperatureV", "GetTemperature", 1)
	if found {
		return name + "(" + rest
	}
	return name
}

// refused counts values that became no data, and logs each cause.
func (s *story) refused(call, reason string, n int) {
	s.own.NvmlReceiverValuesRefused.Add(context.Background(), int64(n), metric.WithAttributeSet(attribute.NewSet(
		attribute.String("call", call), attribute.String("reason", reason))))
	if s.values.First(call+"\x00"+reason, time.Now()) {
		s.logger.Warn("values of the driver are left out", zap.String("call", call), zap.String("reason", reason), zap.Int("values", n))
	}
}

func (s *story) noRights(call string, devices int) {
	if s.denied.Due(call, time.Now()) {
		s.logger.Warn("rights are missing for values, they are left out",
			zap.String("call", call), zap.Int("devices", devices), zap.String("remedy", nvmlproto.DeniedRemedy(call, s.container)))
	}
}

// kernelLog logs whether XIDs are read from the kernel log. It is called by its reader.
func (s *story) kernelLog(err error, wanted bool) {
	state := ""
	if err != nil {
		state = "unread"
	}
	switch {
	case !s.kernel.Begins(state, time.Now()):
	case err == nil:
		s.logger.Info("the kernel log is read again")
	case wanted:
		s.logger.Warn("the kernel log cannot be read, XIDs are counted from the driver's events alone", zap.String("remedy", kernelLogRemedy), zap.Error(err))
	default:
		s.logger.Info("the kernel log cannot be read, XIDs are counted from the driver's events alone", zap.String("remedy", kernelLogRemedy), zap.Error(err))
	}
}

// noEvents counts and logs boards for which the driver's events do not begin.
func (s *story) noEvents(boards int, kernelLog bool) {
	s.own.NvmlReceiverValuesRefused.Add(context.Background(), int64(boards), metric.WithAttributeSet(attribute.NewSet(
		attribute.String("call", waiting), attribute.String("reason", "silent"))))
	if s.others.First("no events", time.Now()) {
		s.logger.Warn("events of the driver do not begin, XIDs are counted from the kernel log alone",
			zap.Int("devices", boards), zap.Bool("kernel_log", kernelLog), zap.String("remedy", nvmlproto.CauseStuck.Remedy(s.container)))
	}
}

const kernelLogRemedy = "some XIDs, such as 79, are in the kernel log alone: give this program CAP_SYSLOG, and in a container /dev/kmsg, for which it must be privileged (chart: nvml.kernelLog), or set xid::kernel_log to off"

// foreign logs that the owners of processes are not known.
func (s *story) foreign() {
	if s.others.First("foreign", time.Now()) {
		s.logger.Warn("no process on the GPUs is in this program's /proc, their owners are unknown",
			zap.String("remedy", "run it in the host's PID namespace (hostPID: true), or set root_path to where the host's /proc is"))
	}
}

// mapped logs and counts what a scrape became, and what it lacks.
func (s *story) mapped(result *nvml.Result) {
	for why, n := range result.Refusals {
		s.refused(why.Call, why.Reason, n)
	}
	for call, devices := range result.Denied {
		s.noRights(call, devices)
	}
	if n := result.LeftToDCGM; n > 0 {
		s.own.NvmlReceiverLeftToDcgm.Add(context.Background(), int64(n))
		if s.others.First("dcgm", time.Now()) {
			s.logger.Info("data points that the dcgm receiver of this process emits are left to it", zap.Int("points", n))
		}
	}
}

// delivered logs that the next component refuses metrics.
func (s *story) delivered(err error) {
	state := ""
	if err != nil {
		state = "refused"
	}
	switch {
	case !s.pipeline.Begins(state, time.Now()):
	case err == nil:
		s.logger.Info("pipeline accepts metrics again")
	default:
		s.logger.Warn("pipeline refuses metrics, they are lost", zap.Error(err))
	}
}
