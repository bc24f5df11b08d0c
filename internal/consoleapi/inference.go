// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

// Inference is what the inference servers of a service report: rates and quantiles over
// the last five minutes, the rest as it is now. A quantile is that of the slowest part
// where servers have different histograms, which that of all requests does not exceed.
// A figure is of the whole service or null.
type Inference struct {
	Engines            []string  `json:"engines"` // values of inference.engine
	Servers            *Servers  `json:"servers"` // null where nothing reports whether they answer
	TimeToFirstToken   *float64  `json:"time_to_first_token"`
	TimePerOutputToken *float64  `json:"time_per_output_token"`
	InterTokenLatency  *float64  `json:"inter_token_latency"`
	RequestDuration    *float64  `json:"request_duration"`
	OutputTokens       *float64  `json:"output_tokens"` // a second; over the last minute where servers were not read for five
	Waiting            *float64  `json:"waiting"`
	Running            *float64  `json:"running"`
	KVCache            *float64  `json:"kv_cache"`
	ErrorRatio         *float64  `json:"error_ratio"`
	TokensPerJoule     *float64  `json:"tokens_per_joule"`
	Lacking            []Lacking `json:"lacking"`
}

// Servers is how many inference servers answered their last scrape, of all.
type Servers struct {
	Up int `json:"up"`
	Of int `json:"of"`
}

// Lacking is why a figure is null.
type Lacking struct {
	Figure string  `json:"figure"` // the name of the field
	Engine *string `json:"engine"` // null: it is not for what an engine cannot report
	Reason string  `json:"reason"`
}
