// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command familiesdoc writes the documentation of the engines' families into a file.
//
//	familiesdoc FILE
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: familiesdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "familiesdoc:", err)
		os.Exit(1)
	}
}

func markdown() string {
	return "<!-- Written by \"go generate\" from internal/families. DO NOT EDIT. -->\n\n" + families.Markdown(families.Engines())
}
