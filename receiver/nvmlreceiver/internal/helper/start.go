// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Child is a program that has been started, with its three pipes.
type Child struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	Terminate      func() error
	Kill           func() error
	Wait           func() error // until it has ended
}

// Find is the path of the helper.
func Find(configured string) (string, error) {
	path, err := nvmlhelper.Find(configured)
	if err != nil {
		return "", &Error{nvmlproto.CauseHelperMissing, err}
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
		return nil, &Error{nvmlhelper.StartCause(path, err), err}
	}
	return &Child{
		Stdin: in[1], Stdout: out[0], Stderr: errs[0],
		Terminate: func() error { return cmd.Process.Signal(syscall.SIGTERM) },
		Kill:      func() error { return kill(cmd.Process) },
		Wait:      cmd.Wait,
	}, nil
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
