// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

const (
	defaultMaxReasons = 16
	mostReasons       = 32
	mostBoards        = 1024
)

// Health has what concerns the health of boards and nodes: the event gpu.health, and the
// metrics that a pipeline of metrics takes.
type Health struct {
	// Score is whether the score of boards and nodes is a metric.
	Score bool `mapstructure:"score"`
	// MaxReasons is how many reasons against one board are listed, the worst first. The
	// others decide its state too, and are counted.
	MaxReasons int `mapstructure:"max_reasons"`
	// Expected is how many boards a node has, by its host.type.
	Expected map[string]int `mapstructure:"expected"`
	// Cleared is until when a person has acknowledged what was wrong, by hw.id or by the
	// name of a node, for all of its boards.
	Cleared Cleared `mapstructure:"cleared"`
}

// Cleared are times by hw.id or by the name of a node.
type Cleared map[string]time.Time

var _ confmap.Unmarshaler = (*Cleared)(nil)

// Unmarshal implements confmap.Unmarshaler. YAML has times with and without quotes.
func (c *Cleared) Unmarshal(conf *confmap.Conf) error {
	var errs []error
	values := conf.ToStringMap()
	*c = make(Cleared, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch v := values[key].(type) {
		case time.Time:
			(*c)[key] = v.UTC()
			continue
		case string:
			if t, err := time.Parse(time.RFC3339, v); err == nil {
				(*c)[key] = t.UTC()
				continue
			}
		}
		errs = append(errs, fmt.Errorf("health::cleared::%s: %v is no time: write it as 2026-01-31T15:04:05Z", key, values[key]))
	}
	return errors.Join(errs...)
}

// validate reports the keys that cannot be used.
func (h *Health) validate() (errs []error) {
	if h.MaxReasons < 1 || h.MaxReasons > mostReasons {
		errs = append(errs, fmt.Errorf("health::max_reasons: %d: set it to 1 or more, and to %d at most; the default is %d", h.MaxReasons, mostReasons, defaultMaxReasons))
	}
	for _, host := range slices.Sorted(maps.Keys(h.Expected)) {
		if n := h.Expected[host]; n < 1 || n > mostBoards {
			errs = append(errs, fmt.Errorf("health::expected::%s: %d: set it to the number of GPUs of such a node, 1 to %d, or remove it", host, n, mostBoards))
		}
	}
	return errs
}
