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
	seeds := make([]uint64, *sets)
	for i := range seeds {
		seeds[i] = *seed + uint64(i)
	}
	err := inference.Sets(seeds, func(d inference.Difference) {
		if found++; found <= *shown {
			fmt.Println(d)
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("sets %d, differences %d\n", *sets, found)
	if found > 0 {
		os.Exit(1)
	}
}
