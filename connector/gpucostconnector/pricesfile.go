// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// book returns the price book and the table of intensities of the configuration; each is nil
// where it is not configured.
func (c *Config) book() (book *prices.Book, carbon *prices.Carbon, err error) {
	rules := c.Prices
	if c.PricesFile != "" {
		if rules, err = readPricesFile(c.PricesFile, c.Currency); err != nil {
			return nil, nil, fmt.Errorf("prices_file: %s: %w", c.PricesFile, err)
		}
	}
	if len(rules) > 0 {
		if book, err = prices.New(c.Currency, rules); err != nil {
			return nil, nil, err
		}
	}
	if c.Carbon != nil {
		carbon, err = prices.NewCarbon(*c.Carbon)
	}
	return book, carbon, err
}

// readPricesFile reads rules that are kept apart from the configuration because they are
// confidential: nothing of them is in an error, and so in no log.
func readPricesFile(path, currency string) ([]prices.RuleConfig, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(errors.New("it cannot be read: check the path, and that the user of the collector may read it"), err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(info); err != nil {
		return nil, err
	}
	rules, err := prices.Read(file)
	if err != nil {
		return nil, err
	}
	if _, err := prices.New(currency, rules); err != nil {
		return nil, errors.Join(mistakes(err)...)
	}
	return rules, nil
}

// private refuses a file that others can read.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if mode := info.Mode().Perm(); mode&notPrivate(info) != 0 {
		return fmt.Errorf("it is readable or writable for others (mode %#o), and prices may be confidential: chmod 600", mode)
	}
	return nil
}

// mistakes names the rules and keys of mistakes, without their values.
func mistakes(err error) []error {
	var all []error
	several, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{errors.New("it cannot be used")}
	}
	for _, one := range several.Unwrap() {
		if r := new(prices.RuleError); errors.As(one, &r) {
			all = append(all, fmt.Errorf("rule %d: %s: it cannot be used; its value is not shown, since prices may be confidential: see the price rules in the README of gpu_cost", r.Rule+1, r.Key))
		} else {
			all = append(all, one) // of the configuration
		}
	}
	return all
}
