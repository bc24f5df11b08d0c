// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"errors"
	"fmt"
	"io"
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

// validatePricesFile reports the mistakes in the file of prices. What cannot be read is left
// to the start: others than the collector's user validate configurations too, and they do
// so on other machines.
func (c *Config) validatePricesFile() error {
	file, err := openPricesFile(c.PricesFile)
	switch {
	case errors.Is(err, errIrregular):
	case err != nil:
		return nil
	default:
		defer file.Close()
		_, err = readRules(file, c.Currency)
	}
	if err != nil {
		return fmt.Errorf("prices_file: %s: %w", c.PricesFile, err)
	}
	return nil
}

// readPricesFile reads the file of prices, which others must not be able to read.
func readPricesFile(path, currency string) ([]prices.RuleConfig, error) {
	file, err := openPricesFile(path)
	switch {
	case errors.Is(err, errIrregular):
		return nil, err
	case err != nil:
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
	return readRules(file, currency)
}

var errIrregular = errors.New("it is no regular file")

// openPricesFile opens a regular file: a named pipe would wait for a writer.
func openPricesFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	return os.Open(path)
}

// readRules reads rules that are kept apart from the configuration because they are
// confidential: nothing of them is in an error, and so in no log.
func readRules(file io.Reader, currency string) ([]prices.RuleConfig, error) {
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
