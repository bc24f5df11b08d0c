// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

func newPrices() *command {
	return &command{
		name:        "prices",
		short:       "price lists for gpu_cost",
		subcommands: []*command{newPricesImport(time.Now)},
	}
}

const importLong = `It writes the rules of a price list as gpu_cost has them under prices, or in its
prices_file: the price of each instance type with its region, divided by its GPUs, first that
of spot capacity where the list has one. A price that is not there gives no rule.

  skypilot   a CSV file of SkyPilot's catalogue, as catalogs/v8/aws/vms.csv

Exit code: 0, 2 wrong arguments, or a list that cannot be read.`

func newPricesImport(now func() time.Time) *command {
	var format, output, source, date string
	return &command{
		name: "import", args: "--format skypilot FILE [--date DAY] [--source TEXT] [-o FILE]",
		short: "turns a price list into rules",
		long:  importLong,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&format, "format", "", "of the list: skypilot")
			f.StringVarP(&output, "output", "o", "", "file to write, which must not exist and is readable for its owner alone; without it: standard output")
			f.StringVar(&source, "source", "", "what the list is called in reports; without it the name of the file")
			f.StringVar(&date, "date", "", "the day that it is of, as 2026-05-01, from which its prices count; without it: today")
		},
		run: func(_ context.Context, s streams, args []string) error {
			if len(args) != 1 || format != "skypilot" {
				return errors.New("a file and its format are needed, as in --format skypilot vms.csv")
			}
			day := now().UTC()
			if date != "" {
				var err error
				if day, err = time.Parse(time.DateOnly, date); err != nil {
					return fmt.Errorf("--date %s is no day as in 2026-05-01", safetext.Strip(date, 50))
				}
			}
			if source == "" {
				source = args[0]
			}
			text, n, err := importPrices(args[0], day, source)
			if err != nil {
				return err
			}
			if output == "" {
				_, err := s.out.Write(text)
				return err
			}
			// A price list may be confidential.
			if err := writeNew(output, strings.TrimSuffix(string(text), "\n"), 0o600); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%d rules: %s\n", n, name(output))
			return err
		},
	}
}

// importPrices returns the rules of a list as YAML.
func importPrices(path string, day time.Time, source string) (text []byte, n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	rules, err := prices.ImportSkyPilot(f, day, source)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", safetext.Strip(path, 200), err)
	}
	if len(rules) == 0 {
		return nil, 0, fmt.Errorf("%s has no price of a GPU", safetext.Strip(path, 200))
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(rules), e.Close()); err != nil {
		return nil, 0, err
	}
	return out.Bytes(), len(rules), nil
}
