// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxImport bounds the rows of a price list.
const maxImport = 100_000

// skypilot are the columns that an import needs.
var skypilot = []string{"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region", "SpotPrice"}

// ImportSkyPilot reads a price list of SkyPilot's catalogue and returns its rules: of each
// instance type, region and capacity type the price of the whole instance, which is
// divided by its GPUs. Rows without GPUs, and prices that are not there, give no rule.
//
// day is since when the list holds, source what it is called in reports.
func ImportSkyPilot(r io.Reader, day time.Time, source string) ([]RuleConfig, error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("the price list has no header: %w", err)
	}
	at := make([]int, len(skypilot))
	for i, name := range skypilot {
		if at[i] = slices.Index(header, name); at[i] < 0 {
			return nil, fmt.Errorf("the price list has no column %s: it is not a list of SkyPilot", name)
		}
	}
	var rules []RuleConfig
	seen := map[[3]string]string{}
	for line := 2; ; line++ {
		row, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the price list: %w", err)
		}
		if line > maxImport {
			return nil, fmt.Errorf("the price list has more than %d lines: import the part that is used", maxImport)
		}
		get := func(i int) string { return row[at[i]] }
		if get(1) == "" || get(0) == "" || get(4) == "" {
			continue
		}
		gpus, err := count(get(2))
		if err != nil {
			return nil, fmt.Errorf("line %d, AcceleratorCount: %w", line, err)
		}
		// Spot first: the first rule that matches decides, and what is not known to be spot
		// has the other price.
		for _, price := range []struct{ column, capacity string }{{"SpotPrice", "spot"}, {"Price", ""}} {
			text := get(slices.Index(skypilot, price.column))
			if text == "" {
				continue
			}
			if _, err := ParseDecimal(text); err != nil {
				return nil, fmt.Errorf("line %d, %s: %q: %w", line, price.column, text, err)
			}
			key := [3]string{get(0), get(4), price.capacity}
			if known, twice := seen[key]; twice {
				if known == text {
					continue // another zone of the region
				}
				return nil, fmt.Errorf("line %d: %s in %s has two prices, %s and %s: keep one", line, key[0], key[1], known, text)
			}
			seen[key] = text
			rule := RuleConfig{
				Match:        map[string]string{MatchHostType: quote(get(0)), MatchRegion: quote(get(4))},
				InstanceHour: text, GPUs: gpus, ValidFrom: day.UTC().Format(time.DateOnly), Kind: KindList, Source: source,
			}
			if price.capacity != "" {
				rule.Match[MatchCapacity] = price.capacity
			}
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// count reads a number of GPUs, which some lists write as 8.0.
func count(text string) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != float64(int64(n)) || n < 1 || n > maxGPUs {
		return 0, fmt.Errorf("%q: it has to be a whole number of GPUs, 1 to %d", text, maxGPUs)
	}
	return int64(n), nil
}

// quote returns the pattern that matches a text alone.
func quote(text string) string { return quoted.Replace(text) }

var quoted = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)
