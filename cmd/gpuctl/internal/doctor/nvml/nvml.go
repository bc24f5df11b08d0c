// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml is the probe of NVIDIA's driver: it has the helper of the nvml receiver make
// one scrape.
package nvml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/releasefile"
)

// config is what is read of the receiver's configuration.
type config struct {
	Library     string `mapstructure:"library"`
	Helper      string `mapstructure:"helper"`
	ReleaseFile string `mapstructure:"release_file"`
}

// report is what the helper prints with -once.
type report struct {
	Hello  *nvmlproto.Hello   `json:"hello"`
	System *nvmlproto.System  `json:"system"`
	Boards []*nvmlproto.Board `json:"boards"`
	Late   []*nvmlproto.Call  `json:"late"`
}

// maxOutput is how much the helper may print, in bytes.
const maxOutput = 16 << 20

// Probe runs the helper of each nvml receiver. Without such a receiver there is nothing to
// see.
func Probe(ctx context.Context, env probe.Env) (all []probe.Result) {
	for _, receiver := range env.Config.Of("receivers", "nvml") {
		var cfg config
		if err := receiver.Read(&cfg); err != nil {
			all = append(all, probe.Invalid(receiver.ID, err))
			continue
		}
		all = append(all, examine(ctx, &cfg, env.Now, nvmlhelper.InContainer())...)
	}
	return all
}

func examine(ctx context.Context, cfg *config, now time.Time, container bool) []probe.Result {
	if cfg.ReleaseFile != "" && releasefile.Released(cfg.ReleaseFile, now) {
		return []probe.Result{probe.New(cfg.ReleaseFile, probe.Warn, "the file exists: the receiver leaves the driver alone, and so does this check",
			"wait for the end of the release, or end it: gpuctl nvml release --end --file "+cfg.ReleaseFile)}
	}
	path, err := nvmlhelper.Find(cfg.Helper)
	if err != nil {
		return []probe.Result{probe.New("helper", probe.Fail, err.Error(), nvmlproto.CauseHelperMissing.Remedy(container))}
	}
	r, cause, err := once(ctx, path, cfg.Library)
	if err != nil {
		return []probe.Result{probe.New(path, probe.Fail, err.Error(), cause.Remedy(container))}
	}
	return read(r, path, container)
}

// once runs the helper. One that does not end in time is asked to, and left: to kill it during
// a call can freeze a board.
func once(ctx context.Context, path, library string) (*report, nvmlproto.Cause, error) {
	args := []string{"-once"}
	if library != "" {
		args = append(args, "-library", library)
	}
	cmd := exec.Command(path, args...)
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return nil, nvmlhelper.StartCause(path, err), err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return nil, nvmlproto.CauseStuck, errors.New("it has not ended within --timeout; boards without persistence take half a minute to begin")
	}
	var out report
	if json.Unmarshal(stdout.Bytes(), &out) == nil && out.System != nil {
		return &out, nvmlproto.CauseNone, nil
	}
	last := stderr.String()
	last = strings.TrimSpace(last[strings.LastIndexByte(strings.TrimSpace(last), '\n')+1:])
	switch {
	case nvmlhelper.IsLoader(last):
		return nil, nvmlproto.CauseLoader, errors.New(last)
	case err != nil:
		return nil, nvmlproto.CauseCrashed, fmt.Errorf("%w: %s", err, last)
	}
	return nil, nvmlproto.CauseFrames, errors.New("what it prints is no report")
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

func (b *limited) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		_, _ = b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// read is what a report shows.
func read(r *report, path string, container bool) []probe.Result {
	s := r.System
	if r.Hello == nil || r.Hello.Version != nvmlproto.Version {
		return []probe.Result{probe.New(path, probe.Fail, "it is of another version", nvmlproto.CauseFrames.Remedy(container))}
	}
	cause := s.Cause()
	if cause == nvmlproto.CauseNone && s.Boards == 0 {
		cause = nvmlproto.CauseNoBoards
	}
	switch cause {
	case nvmlproto.CauseNone:
	case nvmlproto.CauseNoLibrary:
		return []probe.Result{probe.New("library", probe.Fail, "libnvidia-ml.so.1 is in none of: "+strings.Join(s.Missing, "; "), cause.Remedy(container))}
	case nvmlproto.CauseNoBoards:
		return []probe.Result{probe.New(s.Library, probe.Fail, "driver "+s.Driver+" has no boards", cause.Remedy(container))}
	default:
		return []probe.Result{probe.New(s.Library, probe.Fail, fmt.Sprintf("nvmlInit_v2 returns %d: %s", s.Return, s.Error), cause.Remedy(container))}
	}
	all := []probe.Result{probe.New(s.Library, probe.OK, fmt.Sprintf("driver %s, NVML %s, %d boards", s.Driver, s.NVML, s.Boards), "")}
	for _, b := range r.Boards {
		all = append(all, board(b, container))
	}
	for _, c := range r.Late {
		all = append(all, probe.New(c.Thread, probe.Fail, c.Name+" has not returned", nvmlproto.CauseStuck.Remedy(container)))
	}
	return all
}

// board is what a report shows of one board.
func board(b *nvmlproto.Board, container bool) probe.Result {
	r := probe.New(b.UUID, probe.OK, b.Name+" at "+b.PCI, "")
	if r.Subject == "" {
		r.Subject = b.Thread
	}
	switch {
	case b.Lost:
		r.Status, r.Seen = probe.Fail, "it has fallen off the bus"
		r.Remedy = "look at dmesg for XID 79; reset the board or reboot the host, and have it replaced if it happens again"
		return r
	case b.Return != nvmlproto.Success:
		r.Status, r.Seen, r.Remedy = probe.Fail, fmt.Sprintf("no handle: return %d, %s", b.Return, b.Error), nvmlproto.CauseUnknownError.Remedy(container)
		if denied(b.Return) {
			r.Remedy = nvmlproto.DeniedRemedy("", container)
		}
		return r
	}
	read, refused := 0, []string{}
	count := func(values []nvmlproto.Value) {
		for _, v := range values {
			switch {
			case v.Return == nvmlproto.Success:
				read++
			case denied(v.Return) && !slices.Contains(refused, v.Name):
				refused = append(refused, v.Name)
			}
		}
	}
	count(b.Values)
	for _, i := range b.Instances {
		count(i.Values)
	}
	r.Seen += fmt.Sprintf(": %d values", read)
	if len(b.Instances) > 0 {
		r.Seen += fmt.Sprintf(", %d MIG instances", len(b.Instances))
	}
	if len(refused) > 0 {
		r.Status = probe.Warn
		r.Seen += fmt.Sprintf("; without rights for %s", strings.Join(refused[:min(len(refused), probe.MaxListed)], ", "))
		if more := len(refused) - probe.MaxListed; more > 0 {
			r.Seen += fmt.Sprintf(" and %d more", more)
		}
		call := ""
		if !slices.ContainsFunc(refused, func(name string) bool { return !strings.HasPrefix(name, "gpm.") }) {
			call = string(nvmlproto.MethodGPM)
		}
		r.Remedy = nvmlproto.DeniedRemedy(call, container)
	}
	return r
}

// denied reports whether a return is that rights are missing.
func denied(r int) bool { return r == nvmlproto.NoPermission || r == nvmlproto.OperatingSystem }
