// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

// vllmRelatives embed vLLM or took its families over.
var vllmRelatives = []Engine{}
