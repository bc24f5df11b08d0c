// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package slurm is the probe of the job map that Prolog and Epilog of Slurm write, and of what
// slurm.conf says about them.
package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// config is what is read of the receiver's configuration.
type config struct {
	Directory string `mapstructure:"directory"`
	Format    string `mapstructure:"format"`
	Verify    string `mapstructure:"verify"`
}

// Values of its keys, and the defaults.
const (
	formatOwn        = "otelcol-gpu"
	verifyCgroup     = "cgroup"
	defaultDirectory = "/run/otelcol-gpu-jobs"
)

// usual are where slurm.conf is without SLURM_CONF.
var usual = []string{"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Probe looks at the map of each slurm_allocation receiver, and at slurm.conf. Without such a
// receiver there is nothing to see.
func Probe(_ context.Context, env probe.Env) (all []probe.Result) {
	for _, receiver := range env.Config.Of("receivers", "slurm_allocation") {
		cfg := config{Directory: defaultDirectory, Format: formatOwn}
		if err := receiver.Read(&cfg); err != nil {
			all = append(all, probe.Invalid(receiver.ID, err))
			continue
		}
		all = append(all, folder(cfg.Directory, cfg.Format))
		if cfg.Format == formatOwn {
			all = append(all, settings(confs(), cfg.Verify == verifyCgroup)...)
		}
	}
	return all
}

func confs() []string {
	if path := os.Getenv("SLURM_CONF"); path != "" {
		return []string{path}
	}
	return usual
}

// folder looks at the map: who may write to it decides whom the GPUs are charged to.
func folder(path, format string) probe.Result {
	r := probe.New(path, probe.Fail, "", "")
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Seen = "there is no such folder: which job has which GPU is unknown, and not that there is none"
		r.Remedy = "docs/examples/slurm: otelcol-gpu-jobs.conf makes it at boot; set Prolog and Epilog; or set SLURM_JOB_MAP to where yours is"
		return r
	case errors.Is(err, fs.ErrPermission):
		r.Seen, r.Remedy = probe.User()+" may not read it", "the folder is 0755 and of root, its files 0644: names of jobs are no secret of Slurm's; or run the collector as a user who may"
		return r
	case err != nil:
		r.Seen, r.Remedy = err.Error(), "it must be a folder"
		return r
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		if who := writable(p); who != "" {
			r.Seen = fmt.Sprintf("%s can be written by %s, who could charge GPUs to any account", p, who)
			r.Remedy = "chown root:root " + p + " && chmod 0755 " + p
			return r
		}
	}
	jobs, bad := 0, []string(nil)
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		jobs++
		if format == formatOwn && !parses(filepath.Join(path, e.Name())) {
			bad = append(bad, e.Name())
		}
	}
	r.Status, r.Seen = probe.OK, fmt.Sprintf("readable, root's alone; files: %d", jobs)
	if len(bad) > 0 {
		r.Status = probe.Warn
		r.Seen += fmt.Sprintf(", of which %d cannot be used (%s)", len(bad), strings.Join(bad[:min(len(bad), probe.MaxListed)], ", "))
		r.Remedy = "the collector's log has the cause of each; prolog.sh of docs/examples/slurm writes a file under another name and moves it"
	}
	return r
}

func parses(path string) bool {
	text, err := os.ReadFile(path)
	var job struct {
		Job json.Number `json:"job"`
	}
	return err == nil && json.Unmarshal(text, &job) == nil && job.Job != ""
}

// settings looks at what slurm.conf, the first of paths that can be read, says of the scripts.
func settings(paths []string, contain bool) []probe.Result {
	for _, path := range paths {
		values, err := read(path, 0)
		if err == nil {
			return judge(path, values, contain)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return []probe.Result{probe.New(path, probe.Skipped, err.Error(), "")}
		}
	}
	return []probe.Result{probe.New("slurm.conf", probe.Skipped, "it is not on this machine: slurmd may have it from its controller", "")}
}

// Flags of PrologFlags, in lower case, that set Contain (and with it Alloc), and those that set
// Alloc alone: slurm.conf(5), and prolog_str2flags of Slurm's read_config.c.
var (
	containFlags = []string{"contain", "x11"}
	allocFlags   = []string{"alloc"}
)

func judge(path string, values map[string]string, contain bool) []probe.Result {
	r := probe.New(path, probe.OK, "Prolog, Epilog and TaskProlog are set, and PrologFlags has what they need", "")
	var wrong, remedy []string
	for _, key := range []string{"Prolog", "Epilog", "TaskProlog"} {
		if values[strings.ToLower(key)] != "" {
			continue
		}
		wrong = append(wrong, key+" is not set")
		remedy = append(remedy, key+"= with "+strings.ToLower(key)+".sh of docs/examples/slurm, or a script that calls it")
		if key != "TaskProlog" {
			r.Status = probe.Fail
		} else if r.Status == probe.OK {
			r.Status = probe.Warn // names of jobs alone come from it
		}
	}
	flags := strings.Split(strings.ToLower(values["prologflags"]), ",")
	has := func(implied ...string) bool {
		return slices.ContainsFunc(implied, func(flag string) bool { return slices.Contains(flags, flag) })
	}
	switch {
	case contain && !has(containFlags...):
		wrong = append(wrong, "PrologFlags has no Contain")
		remedy = append(remedy, "PrologFlags=Contain, or SLURM_VERIFY=none: without it a job has no control group before its first step, and is taken for over")
		r.Status = probe.Fail
	case !has(containFlags...) && !has(allocFlags...):
		wrong = append(wrong, "PrologFlags has no Alloc")
		remedy = append(remedy, "PrologFlags=Alloc: without it the Prolog of an allocation runs with its first step, and its GPUs have no job until then")
		if r.Status == probe.OK {
			r.Status = probe.Warn
		}
	}
	if len(wrong) > 0 {
		r.Seen, r.Remedy = strings.Join(wrong, "; "), strings.Join(remedy, "\n")
	}
	return []probe.Result{r}
}

// maxInclude is how deep files may include others.
const maxInclude = 4

// read reads the settings of slurm.conf by their names in lower case; those of a later line count.
func read(path string, depth int) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if first := strings.Fields(line); len(first) > 1 && strings.EqualFold(first[0], "include") && depth < maxInclude {
			file := strings.TrimSpace(line[len("include"):])
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), file)
			}
			more, err := read(file, depth+1)
			if err != nil {
				return nil, fmt.Errorf("it includes a file that cannot be read: %v", err)
			}
			for k, v := range more {
				values[k] = v
			}
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return values, nil
}
