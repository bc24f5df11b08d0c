// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command familiesdoc writes what others read of the table of engines' families: the
// documentation, and why an engine cannot give a figure as Go source of internal/queries.
//
//	familiesdoc DOCUMENTATION SOURCE
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: familiesdoc DOCUMENTATION SOURCE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "familiesdoc:", err)
		os.Exit(1)
	}
}

func write(documentation, source string) error {
	if err := os.WriteFile(documentation, []byte(markdown()), 0o644); err != nil {
		return err
	}
	text, err := cannotSource()
	if err != nil {
		return err
	}
	return os.WriteFile(source, text, 0o644)
}

func markdown() string {
	return "<!-- Written by \"go generate\" from internal/families. DO NOT EDIT. -->\n\n" + families.Markdown(families.Engines())
}
