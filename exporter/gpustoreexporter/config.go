// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Config is the configuration of the gpu_store exporter.
type Config struct {
	// Store is the id of the gpu_store extension.
	Store component.ID `mapstructure:"store"`
	// MaxSeries makes this exporter one of applications: it writes no family of GPUs,
	// of recording rules or of the Collector, and all exporters with the key have this
	// share of the store's own max_series, so that the others always have the rest.
	// 0 is without a share.
	MaxSeries int `mapstructure:"max_series"`
	// QueueConfig is the queue before the store. One consumer keeps samples in
	// order.
	QueueConfig configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist stops the
// start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports a share that cannot be.
func (c *Config) Validate() error {
	if c.MaxSeries < 0 {
		return fmt.Errorf("max_series: %d: set it to the share of the store's max_series that applications may have, or to 0 where this exporter writes GPU telemetry", c.MaxSeries)
	}
	return nil
}

func createDefaultConfig() component.Config {
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.NumConsumers = 1
	return &Config{Store: store.DefaultID, QueueConfig: configoptional.Some(queue)}
}
