// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"go.opentelemetry.io/collector/connector"
)

// newWorker returns what does the work of the scope.
func newWorker(cfg *Config, set connector.Settings, tel *telemetry) (worker, error) {
	if cfg.Scope == ScopeRank {
		return newRanks(cfg, set, tel)
	}
	return newGateway(cfg, set, tel), nil
}
