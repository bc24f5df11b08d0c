// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1 // what was asked for was done, and its answer is bad: a broken log, a failed delivery
	exitUsage  = 2 // it could not be done: wrong arguments, unreadable file, no answer
)

// errFailed is the error of a command that has itself printed what is wrong.
var errFailed = errors.New("failed")

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is a command, or a group of them.
type command struct {
	name        string
	args        string // of the usage line, as in FILE…
	short       string // one line for the list of commands
	long        string // for --help, where short does not suffice
	flags       func(*pflag.FlagSet)
	run         func(context.Context, streams, []string) error
	subcommands []*command
}

// execute runs the command that args name and returns the exit code.
func (c *command) execute(ctx context.Context, s streams, args []string) int {
	return c.find(ctx, s, "", args)
}

func (c *command) find(ctx context.Context, s streams, parent string, args []string) int {
	path := c.name
	if parent != "" {
		path = parent + " " + c.name
	}
	if c.run != nil {
		return c.call(ctx, s, path, args)
	}
	if len(args) > 0 {
		for _, sub := range c.subcommands {
			if sub.name == args[0] {
				return sub.find(ctx, s, path, args[1:])
			}
		}
		if args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
			c.list(s.out, path)
			return exitOK
		}
		fmt.Fprintf(s.err, "%s: there is no command %q\n\n", path, args[0])
	}
	c.list(s.err, path)
	return exitUsage
}

// list writes the commands of a group.
func (c *command) list(w io.Writer, path string) {
	fmt.Fprintf(w, "%s: %s\n\nCommands:\n", path, c.short)
	for _, sub := range c.subcommands {
		fmt.Fprintf(w, "  %-12s %s\n", sub.name, sub.short)
	}
	fmt.Fprintf(w, "\n%s COMMAND --help shows more.\n", path)
}

func (c *command) call(ctx context.Context, s streams, path string, args []string) int {
	flags := pflag.NewFlagSet(path, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	if c.flags != nil {
		c.flags(flags)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(s.out, "%s: %s\n\nUsage: %s %s\n", path, c.short, path, c.args)
		if c.long != "" {
			fmt.Fprintf(s.out, "\n%s\n", c.long)
		}
		if flags.HasFlags() {
			fmt.Fprintf(s.out, "\n%s", flags.FlagUsages())
		}
		return exitOK
	case err != nil:
		fmt.Fprintf(s.err, "%s: %v\nUsage: %s %s\n", path, err, path, c.args)
		return exitUsage
	}
	switch err := c.run(ctx, s, flags.Args()); {
	case errors.Is(err, errFailed):
		return exitFailed
	case err != nil:
		fmt.Fprintf(s.err, "%s: %v\n", path, err)
		return exitUsage
	}
	return exitOK
}
