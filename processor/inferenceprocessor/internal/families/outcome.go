// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// outcomes is what the engines' words for the end of a request mean.
var outcomes = map[string]string{
	"stop": names.OutcomeSuccess, "eos_token": names.OutcomeSuccess, "stop_sequence": names.OutcomeSuccess,
	"eos": names.OutcomeSuccess, "length": names.OutcomeSuccess, "success": names.OutcomeSuccess,

	"abort": names.OutcomeCancelled, "cancelled": names.OutcomeCancelled, "CANCELED": names.OutcomeCancelled,

	"error": names.OutcomeError, "BACKEND": names.OutcomeError, "OTHER": names.OutcomeError,
	"generation": names.OutcomeError, "incomplete": names.OutcomeError, "internal": names.OutcomeError,

	"REJECTED": names.OutcomeRejected, "overloaded": names.OutcomeRejected, "overload": names.OutcomeRejected,
	"validation": names.OutcomeRejected, "not_found": names.OutcomeRejected,
}

// Outcome is how a request ended, by the engine's word for it; unknown where the word
// is none that is known.
func Outcome(word, unknown string) string {
	if o, ok := outcomes[word]; ok {
		return o
	}
	return unknown
}
