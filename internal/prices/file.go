// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// RuleError is a mistake in a rule.
type RuleError struct {
	Rule int // from 0
	Key  string
	text string
}

// Error names the key, the value and the remedy.
func (e *RuleError) Error() string { return fmt.Sprintf("prices::%d::%s: %s", e.Rule, e.Key, e.text) }

var atLine = regexp.MustCompile(`line \d+`)

// maxFile bounds a file with rules, in bytes: tens of thousands of them.
const maxFile = 16 << 20

// Read reads a YAML file with rules: a list, as it is under the key prices. A price list may
// be confidential, so an error names the line and nothing of its content.
func Read(r io.Reader) ([]RuleConfig, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("it is larger than %d MiB: leave out the machines that are not used", maxFile>>20)
	}
	var rules []RuleConfig
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err = decoder.Decode(&rules)
	if err == nil {
		err = wholeGPUs(text)
	}
	if errors.Is(err, io.EOF) || err == nil && len(rules) == 0 {
		return nil, errors.New("it has no rules: write a list of them, as under prices")
	}
	if err == nil {
		if err = decoder.Decode(new(any)); errors.Is(err, io.EOF) {
			return rules, nil
		}
		return nil, errors.New("it has more than one document, of which only one would be read: remove the others")
	}
	where := atLine.FindString(err.Error())
	if where == "" {
		where = "its YAML"
	}
	return nil, fmt.Errorf("%s: it is no list of rules with the keys match, gpu_hour, instance_hour, gpus, price_metric, price_fraction, currency, valid_from, kind and source", where)
}

// wholeGPUs refuses a number of GPUs that is not whole: the decoder cuts off its fraction.
func wholeGPUs(text []byte) error {
	var rules []map[string]yaml.Node
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return err
	}
	for _, rule := range rules {
		if gpus, is := rule["gpus"]; is && gpus.Tag != "!!int" {
			return fmt.Errorf("line %d: not a whole number", gpus.Line)
		}
	}
	return nil
}
