// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/folder"

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// skipReason is why a file in receivers_dir is not used. The list is closed.
type skipReason string

const (
	SkipNone           skipReason = ""
	skipEmptyValue     skipReason = "empty_value"
	skipInvalidJSON    skipReason = "invalid_json"
	skipEmptyURL       skipReason = "empty_url_in_json"
	skipInvalid        skipReason = "invalid_receiver"
	skipInvalidName    skipReason = "invalid_name"
	skipTaken          skipReason = "name_in_receivers"
	skipNotText        skipReason = "not_text"
	skipTooLarge       skipReason = "too_large"
	skipTooMany        skipReason = "too_many"
	skipNotAFile       skipReason = "not_a_file"
	skipOutside        skipReason = "outside_folder"
	skipUnreadable     skipReason = "unreadable"
	skipChanging       skipReason = "changing"
	skipMissingFolder  skipReason = "missing_folder" // of the folder itself
	maxSkipExplanation            = 512
)

// skipError is why a file is not used. The text never holds what the file holds
// of URLs and keys.
type skipError struct {
	reason  skipReason
	text    string
	passing bool // likely over at the next look
}

func (e *skipError) Error() string { return string(e.reason) + ": " + e.text }

func skip(reason skipReason, text string) *skipError { return &skipError{reason: reason, text: text} }

// fieldName is what may be shown of a field that is not known: anything else in
// its place may be a secret.
var fieldName = regexp.MustCompile(`^[a-z_]{1,32}$`)

// parseReceiverFile reads what a file in receivers_dir holds: a plain URL, or a
// JSON object with the fields of a receiver. What starts with { is JSON or
// nothing. A timeout that cannot be used is the default, which badTimeout reports.
func parseReceiverFile(raw []byte, d endpoint.Defaults) (cfg endpoint.Config, badTimeout bool, err *skipError) {
	if !utf8.Valid(raw) || bytes.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return cfg, false, skip(skipNotText, "is not UTF-8 text")
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(raw), "\ufeff"))
	if text == "" {
		return cfg, false, skip(skipEmptyValue, "is empty")
	}
	if text[0] != '{' {
		return endpoint.Config{URL: configopaque.String(text)}, false, nil
	}
	return parseReceiverJSON(text, d)
}

func parseReceiverJSON(text string, d endpoint.Defaults) (cfg endpoint.Config, badTimeout bool, _ *skipError) {
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // so that 1.5 is no whole number
	if decoder.Decode(&fields) != nil {
		return cfg, false, skip(skipInvalidJSON, "starts with { and is not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return cfg, false, skip(skipInvalidJSON, "holds more than one JSON object")
	}
	switch url := fields["url"].(type) {
	case nil:
		return cfg, false, skip(skipEmptyURL, `has no "url"`)
	case string:
		if strings.TrimSpace(url) == "" {
			return cfg, false, skip(skipEmptyURL, `"url" is empty`)
		}
	default:
		return cfg, false, skip(skipInvalidJSON, `"url" is not a text`)
	}

	timeout, given := fields["timeout"]
	delete(fields, "timeout")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if confmap.NewFromStringMap(map[string]any{name: fields[name]}).Unmarshal(&cfg) == nil && !strings.Contains(name, confmap.KeyDelimiter) {
			continue
		}
		if !fieldName.MatchString(name) {
			name = "…"
		}
		return endpoint.Config{}, false, skip(skipInvalid, fmt.Sprintf("the field %q is not known or not of the right kind", name))
	}
	if _, ok := fields["signing"]; ok && len(cfg.Signing.Standard)+len(cfg.Signing.Convox) == 0 {
		return endpoint.Config{}, false, skip(skipInvalid, `"signing" holds no key; remove the field to send unsigned`)
	}
	written, _ := timeout.(string)
	var err error
	if cfg.Timeout, err = time.ParseDuration(written); err != nil || cfg.Timeout < endpoint.MinTimeout {
		cfg.Timeout, badTimeout = cmp.Or(d.Timeout, endpoint.DefaultTimeout), given
	}
	return cfg, badTimeout, nil
}

// fileTarget makes a receiver of what the file of that name holds.
func fileTarget(name string, raw []byte, g *egress.Guard, d endpoint.Defaults) (t *endpoint.Endpoint, badTimeout bool, _ *skipError) {
	cfg, badTimeout, skipped := parseReceiverFile(raw, d)
	if skipped != nil {
		return nil, false, skipped
	}
	t, err := endpoint.New(name, cfg, d)
	if err == nil {
		err = t.CheckReachable(g)
	}
	if err != nil {
		// Its messages name the place in a configuration file, which this is not.
		text := strings.ReplaceAll(err.Error(), "receivers::"+name+"::", "")
		return nil, false, skip(skipInvalid, safetext.Strip(text, maxSkipExplanation))
	}
	return t, badTimeout, nil
}
