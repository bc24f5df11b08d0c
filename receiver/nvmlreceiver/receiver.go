// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/phase"
	"github.com/otelcol-gpu/otelcol-gpu/internal/releasefile"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/host"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/lifecycle"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

const (
	// initTimeout is of nvmlInit: 28 s were seen for eight boards without persistence mode.
	initTimeout = time.Minute
	// lookEvery is how often it is looked whether the driver is to be left alone, and
	// hardwareEvery whether there is hardware where there was none.
	lookEvery     = 5 * time.Second
	hardwareEvery = time.Minute
	hourly        = time.Hour
	// closing is how long a shutdown waits for the helper, which ends without it too.
	closing = 5 * time.Second
)

// nvmlReceiver reads this host's boards.
type nvmlReceiver struct {
	cfg  *Config
	id   string
	next consumer.Metrics
	obs  *receiverhelper.ObsReport
	log  *story
	node string // k8s.node.name, or the host's name

	host    *host.Reader
	keeper  *helper.Keeper
	boards  lifecycle.Boards
	release lifecycle.Release
	mapping *nvml.Mapping
	faults  *faults

	quiet    time.Time // until when a host without hardware is not looked at
	released string    // why the driver is left alone
	last     time.Time // when hourly readings were asked for
	unknown  int       // scrapes in a row in which all boards returned 999
	devices  int
	stuck    int

	stop context.CancelFunc
	wg   sync.WaitGroup
}

var _ receiver.Metrics = (*nvmlReceiver)(nil)

func newReceiver(set receiver.Settings, cfg *Config, own *metadata.TelemetryBuilder, next consumer.Metrics) (*nvmlReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	r := &nvmlReceiver{
		cfg: cfg, id: set.ID.String(), next: next, obs: obs, log: newStory(set.Logger, own), node: cfg.NodeName,
		host: host.New(cfg.RootPath), boards: lifecycle.Boards{Wake: cfg.Wake},
	}
	if r.node == "" {
		r.node = name
	}
	if inKubernetes() {
		name = "" // of the pod
	}
	r.mapping = nvml.New(nvml.Options{
		Groups: cfg.Groups, NodeName: r.node, ClusterName: cfg.ClusterName, HostName: name,
		ScopeName: metadata.ScopeName, ScopeVersion: set.BuildInfo.Version,
		FrozenAfter: cfg.FrozenAfter, FrozenFor: 2 * cfg.CollectionInterval, Interval: cfg.CollectionInterval,
	})
	r.faults = newFaults(cfg, r.log, time.Now())
	r.keeper = &helper.Keeper{
		Start: func() (*helper.Child, error) {
			path, err := helper.Find(cfg.Helper)
			if err != nil {
				return nil, err
			}
			return helper.Start(path, cfg.Library)
		},
		Opts: helper.Options{
			CallTimeout: cfg.CallTimeout, InitTimeout: initTimeout,
			Event: r.event, Called: r.log.called, Line: r.log.line,
		},
	}
	return r, nil
}

// Start implements component.Component.
func (r *nvmlReceiver) Start(context.Context, component.Host) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return fmt.Errorf("nvml: is for linux on amd64 and arm64, and this is %s on %s: remove the receiver", runtime.GOOS, runtime.GOARCH)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.wg.Go(func() { r.run(ctx) })
	r.faults.start(ctx, &r.wg)
	return nil
}

// Shutdown implements component.Component.
func (r *nvmlReceiver) Shutdown(ctx context.Context) error {
	var err error
	if r.stop != nil {
		r.stop()
		done := make(chan struct{})
		go func() {
			r.wg.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			err = fmt.Errorf("the next component still has a scrape: %w", ctx.Err())
		}
		r.stop = nil
	}
	r.log.own.Shutdown()
	return err
}

// run scrapes at every interval, and in between looks whether the driver is to be left alone.
func (r *nvmlReceiver) run(ctx context.Context) {
	defer func() {
		waiting, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		r.keeper.Close(waiting)
		miglayout.Publish(nil)
	}()
	next := time.Now().Add(phase.Offset(time.Now(), r.cfg.CollectionInterval, phase.Seed(r.id)))
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			r.look(time.Now())
			continue
		case <-timer.C:
		}
		if !time.Now().Before(r.quiet) {
			r.scrape(ctx)
		}
		now := time.Now()
		for !next.After(now) { // moments that a slow scrape has missed are left out
			next = next.Add(r.cfg.CollectionInterval)
		}
		timer.Reset(next.Sub(now))
	}
}

// look finds out whether the driver is to be left alone, and ends the helper if it is.
func (r *nvmlReceiver) look(now time.Time) {
	_, reconfiguring := miglayout.Reconfiguring(r.node)
	file := r.cfg.ReleaseFile != "" && releasefile.Released(r.cfg.ReleaseFile, now)
	why := r.release.Look(now, file, reconfiguring)
	switch {
	case why != "" && r.released == "":
		r.log.leftAlone(why)
		miglayout.Publish(nil) // it is left alone to be changed
	case why == "" && r.released != "":
		r.log.readAgain()
	}
	r.released = why
	if why != "" && r.keeper.Running() != nil {
		r.replace("release", now)
	}
}

// replace ends the helper; the next scrape starts another one, unless the driver is to be
// left alone.
func (r *nvmlReceiver) replace(reason string, now time.Time) {
	r.log.replaced(reason)
	r.keeper.Stop(now)
}

// event takes what the driver reported. It is called by the helper's reader.
func (r *nvmlReceiver) event(e *nvmlproto.Event) {
	if e.MIG {
		miglayout.Publish(nil)
	}
	r.faults.event(e)
}

// scrape makes one scrape. Once ctx has ended it emits nothing.
func (r *nvmlReceiver) scrape(ctx context.Context) {
	start := time.Now()
	h := r.host.Read()
	if !h.Hardware {
		r.quiet = start.Add(hardwareEvery)
		r.keeper.Stop(start)
		r.log.noHardware()
		return
	}
	s := nvml.Scrape{Time: start}
	if r.look(start); r.released != "" {
		s.Released = true
		r.emit(&s, outcomeReleased, nil)
		return
	}
	if r.keeper.Running() != nil && r.boards.Replace(start, h) == lifecycle.ReasonDriver {
		r.replace(lifecycle.ReasonDriver, start)
	}
	outcome, err := r.ask(ctx, h, &s)
	if ctx.Err() != nil {
		return
	}
	r.countStuck()
	s.Duration = time.Since(start)
	if outcome == nvmlproto.CauseStarting { // nothing is known yet
		r.log.outcome(outcome, err, 0)
		return
	}
	r.emit(&s, outcome, err)
	if r.keeper.Running() == nil {
		return
	}
	if r.look(time.Now()); r.released != "" {
		return
	}
	if reason := r.boards.Replace(time.Now(), h); reason != "" {
		r.replace(reason, time.Now())
	}
}

// ask asks the helper, and completes s with what it answers. The error is why there is
// nothing, if there is nothing.
func (r *nvmlReceiver) ask(ctx context.Context, h *host.Snapshot, s *nvml.Scrape) (nvmlproto.Cause, error) {
	stuck := r.stuckNow()
	plan := r.boards.Plan(s.Time, h, threads(stuck))
	s.Managed = plan.Managed
	for _, thread := range plan.Suspended {
		s.Resting = append(s.Resting, nvml.Resting{Thread: thread, Suspended: true})
	}
	for _, thread := range plan.Resting {
		s.Resting = append(s.Resting, nvml.Resting{Thread: thread})
	}
	r.log.beyond(plan.Beyond)
	nothing := len(plan.Read) == 0 && !plan.ByIndex
	if nothing && len(s.Resting) > 0 && len(stuck) == 0 {
		if r.keeper.Running() != nil { // a helper's handle may keep boards awake
			r.replace("rest", s.Time)
		}
		s.Up = true
		return nvmlproto.CauseNone, nil
	}
	if nothing && len(stuck) > 0 {
		return r.fail(&helper.Error{Cause: nvmlproto.CauseStuck, Err: errors.New(describe(stuck))})
	}
	starts := r.keeper.Starts()
	p, again, err := r.keeper.Ready(s.Time)
	if err != nil {
		if !again {
			r.log.started(err)
		}
		return causeOf(err), err
	}
	if r.keeper.Starts() != starts {
		r.boards.Started(h)
		r.faults.started()
		r.last = time.Time{}
	}
	request := nvmlproto.Request{
		Boards: plan.Read, ByIndex: plan.ByIndex, Groups: r.faults.groups(s.Time), PCIe: r.cfg.PCIeThroughput,
		Hourly: s.Time.Sub(r.last) >= hourly, WindowMillis: (2 * r.cfg.CollectionInterval).Milliseconds(),
	}
	waiting, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	answer, err := p.Scrape(waiting, request)
	switch {
	case ctx.Err() != nil:
		return nvmlproto.CauseNone, nil
	case err != nil && causeOf(err) == nvmlproto.CauseStarting:
		return nvmlproto.CauseStarting, err
	case err != nil:
		if causeOf(err) == nvmlproto.CauseCrashed {
			if board := r.boards.Crashed(s.Time, p.Calling()); board != "" {
				r.log.leftOut(board)
			}
		}
		return r.fail(err)
	}
	if request.Hourly {
		r.last = s.Time
	}
	return r.answered(&plan, &answer, s)
}

// answered completes s with an answer.
func (r *nvmlReceiver) answered(plan *lifecycle.Plan, a *helper.Answer, s *nvml.Scrape) (nvmlproto.Cause, error) {
	if cause, err := systemError(&a.System); err != nil {
		r.log.unknownAgain = cause == nvmlproto.CauseUnknownError // of nvmlInit: this helper is a new one
		return r.fail(&helper.Error{Cause: cause, Err: err})
	}
	s.Driver, s.Boards = a.System.Driver, a.Boards
	for _, thread := range r.boards.Answered(s.Time, plan, a.Boards) {
		r.log.lost(thread)
	}
	r.release.Answered(s.Time, a.Boards)
	miglayout.Publish(miglayout.Of(s.Time, r.cfg.CollectionInterval, a.Boards))
	r.log.late(a.Late)
	v := judge(plan, a)
	if v.unknown {
		r.unknown++
	} else {
		r.unknown = 0
	}
	r.log.unknownAgain = r.unknown >= 2*maxUnknown
	switch {
	case v.cause == nvmlproto.CauseNone:
		s.Up = true
		r.keeper.Succeeded(s.Time)
		return v.cause, nil
	case v.cause == nvmlproto.CauseUnknownError && r.unknown%maxUnknown != 0, v.cause == nvmlproto.CauseTimeout:
		return v.cause, v.err // the helper may answer the next time
	default:
		return r.fail(&helper.Error{Cause: v.cause, Err: v.err})
	}
}

// fail has the helper replaced after a delay.
func (r *nvmlReceiver) fail(err error) (nvmlproto.Cause, error) {
	cause := causeOf(err)
	r.log.replaced(string(cause))
	return cause, r.keeper.Fail(err, time.Now())
}
