// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Name is that of the program.
const Name = "otelcol-gpu-nvml"

// Child is a program that has been started, with its three pipes.
type Child struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	Terminate      func() error
	Kill           func() error
	Wait           func() error // until it has ended
}

// Find is the path of the helper: the configured one, else beside this program, else in PATH.
func Find(configured string) (string, error) {
	if configured != "" {
		if _, err := os.Stat(configured); err != nil {
			return "", &Error{nvmlproto.CauseHelperMissing, err}
		}
		return configured, nil
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), Name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(Name)
	if err != nil {
		return "", failed(nvmlproto.CauseHelperMissing, "%s is neither beside this program nor in PATH", Name)
	}
	return path, nil
}

// Start starts the helper at a path. library is the path of the driver's library, or empty.
func Start(path, library string) (*Child, error) {
	var args []string
	if library != "" {
		args = append(args, "-library", library)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = environment(os.Environ())
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes()
	var pipes [3][2]*os.File
	closeAll := func(end int) {
		for _, p := range pipes {
			if p[end] != nil {
				_ = p[end].Close()
			}
		}
	}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(0)
			closeAll(1)
			return nil, &Error{nvmlproto.CauseHelperStart, err}
		}
		pipes[i] = [2]*os.File{r, w}
	}
	in, out, errs := pipes[0], pipes[1], pipes[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in[0], out[1], errs[1]
	err := cmd.Start()
	_, _, _ = in[0].Close(), out[1].Close(), errs[1].Close()
	if err != nil {
		_, _, _ = in[1].Close(), out[0].Close(), errs[0].Close()
		return nil, &Error{startCause(path, err), err}
	}
	return &Child{
		Stdin: in[1], Stdout: out[0], Stderr: errs[0],
		Terminate: func() error { return cmd.Process.Signal(syscall.SIGTERM) },
		Kill:      cmd.Process.Kill,
		Wait:      cmd.Wait,
	}, nil
}

// startCause is why a program that exists was not started.
func startCause(path string, err error) nvmlproto.Cause {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Stat(path); missing == nil {
			return nvmlproto.CauseLoader // it is the interpreter that does not exist
		}
		return nvmlproto.CauseHelperMissing
	case errors.Is(err, syscall.ENOEXEC):
		return nvmlproto.CauseMachine
	case errors.Is(err, fs.ErrPermission):
		return nvmlproto.CauseNotExecutable
	}
	return nvmlproto.CauseHelperStart
}

// isLoader reports whether a program's last line is its loader's.
func isLoader(line string) bool {
	return strings.Contains(line, "error while loading shared libraries") || strings.Contains(line, "GLIBC_") || strings.Contains(line, "Error loading shared library")
}

// environment is what the helper gets of this process' environment: what its loader, the
// driver's library and Go's runtime look at, and no secret that a configuration uses.
func environment(all []string) []string {
	var kept []string
	for _, v := range all {
		key, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(key, "LD_"), strings.HasPrefix(key, "NVIDIA_"), strings.HasPrefix(key, "__NV"),
			key == "PATH", key == "LANG", key == "TZ", key == "GODEBUG", key == "GOTRACEBACK", key == "GOCOVERDIR":
			kept = append(kept, v)
		}
	}
	return append(kept, "GOMAXPROCS=2")
}
