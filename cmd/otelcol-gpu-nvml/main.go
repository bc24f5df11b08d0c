// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command otelcol-gpu-nvml calls the NVIDIA driver's library for the nvml receiver, which
// starts it: a crash of the library ends this process alone, and a call that hangs holds a
// thread of it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/serve"
)

// version is set by the build to the manifest's.
var version string

const (
	// onceTimeout is longer than nvmlInit takes on a host with eight boards and no persistence.
	onceTimeout = 90 * time.Second
	// endOfInput is how long calls may take after the end of the input: the receiver is gone,
	// and must not leave this process behind.
	endOfInput = 900 * time.Millisecond
)

func main() {
	flags := flag.NewFlagSet("otelcol-gpu-nvml", flag.ExitOnError)
	library := flags.String("library", "", "path of libnvidia-ml.so.1; where the driver usually is, if empty")
	once := flags.Bool("once", false, "print one scrape of all boards as JSON, with each call's return code and microseconds; wakes suspended boards")
	printVersion := flags.Bool("version", false, "print the version")
	_ = flags.Parse(os.Args[1:]) // exits
	if flags.NArg() > 0 {
		fail(fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if *printVersion {
		fmt.Println("otelcol-gpu-nvml", versionText())
		return
	}
	out, err := claimOutput()
	if err != nil {
		fail(err)
	}
	open := func() (serve.Library, string, []string) { return load(*library) }
	if *once {
		os.Exit(report(serve.Once(open, versionText(), onceTimeout), out))
	}
	if err := answer(open, os.Stdin, out); err != nil {
		fail(err)
	}
}

// answer answers requests until the end of in or SIGTERM.
func answer(open serve.Open, in io.Reader, out io.Writer) error {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, os.Interrupt)
	// A reader that is gone is an error of writing, not the end in the middle of a call.
	signal.Ignore(syscall.SIGPIPE)
	ended := make(chan error, 2)
	server := serve.New(open, out, versionText(), func(err error) { ended <- err })
	go func() { ended <- server.Requests(in) }()
	stopped := make(chan struct{})
	stop := func() {
		server.Stop()
		close(stopped)
	}
	var err error
	select {
	case <-terminated:
		go stop()
		select {
		case <-stopped:
			return nil
		case <-ended:
		}
	case err = <-ended:
		go stop()
	}
	select {
	case <-server.Quiet():
	case <-time.After(endOfInput):
	}
	return err
}

// report prints a scrape.
func report(r *serve.Report, out io.Writer) int {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	if err != nil {
		fail(err)
	}
	if !r.Answered() {
		return 1
	}
	return 0
}

// claimOutput returns standard output, and lets what the library prints there go to
// standard error: it would not be frames.
func claimOutput() (*os.File, error) {
	fd, err := syscall.Dup(int(os.Stdout.Fd()))
	if err != nil {
		return nil, fmt.Errorf("standard output: %w", err)
	}
	syscall.CloseOnExec(fd)
	if err := syscall.Dup3(int(os.Stderr.Fd()), int(os.Stdout.Fd()), 0); err != nil {
		return nil, fmt.Errorf("standard output: %w", err)
	}
	return os.NewFile(uintptr(fd), "output"), nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "otelcol-gpu-nvml:", err)
	os.Exit(1)
}

// versionText is the version that the build set, or that go install knows.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
