// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Inferencecheck feeds the same requests to the pages of every inference engine and
// compares what the inference processor makes of them with the requests. Its last line is
// "sets N, differences N".
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/inference"
)

func main() {
	sets := flag.Uint64("sets", 1000, "how many sets of requests")
	seed := flag.Uint64("seed", 1, "of the first set; the others follow. With -sets 1 it repeats one set")
	shown := flag.Int("show", 20, "how many differences are printed")
	flag.Parse()
	found := 0
	for s := *seed; s < *seed+*sets; s++ {
		all, err := inference.Set(s)
		if err != nil {
			fmt.Fprintf(os.Stderr, "seed %d: %v\n", s, err)
			os.Exit(1)
		}
		for _, d := range all {
			if found++; found <= *shown {
				fmt.Println(d)
			}
		}
	}
	fmt.Printf("sets %d, differences %d\n", *sets, found)
	if found > 0 {
		os.Exit(1)
	}
}
