// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// TestKeys lists the keys of the configuration: a user's file has them.
func TestKeys(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Kubernetes = &scrape.KubernetesConfig{}
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	keys := conf.ToStringMap()
	assert.Equal(t, []string{
		"cluster_name", "collection_interval", "endpoints", "exporter_interval", "frozen_after", "kubernetes",
		"max_label_bytes", "max_labels", "names", "node_name", "scrape", "unmapped",
	}, slices.Sorted(maps.Keys(keys)))
	assert.Equal(t, []string{"kubeconfig_file", "label_selector", "namespaces", "node_name", "port"},
		slices.Sorted(maps.Keys(keys["kubernetes"].(map[string]any))))
}

// TestOwnMetrics lists the receiver's own metrics and what their attributes can be: rules
// for alerts have them. The values are those that the shared machinery counts under.
func TestOwnMetrics(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var metadata struct {
		Attributes map[string]struct{ Enum []string }
		Telemetry  struct {
			Metrics map[string]struct{ Attributes []string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	metrics := map[string][]string{}
	for name, m := range metadata.Telemetry.Metrics {
		metrics[name] = m.Attributes
	}
	assert.Equal(t, map[string][]string{
		"dcgm_receiver_devices":        nil,
		"dcgm_receiver_rows_refused":   {"exporter", "reason", "receiver"},
		"dcgm_receiver_scrapes":        {"outcome"},
		"dcgm_receiver_unknown_fields": nil,
	}, metrics)
	reasons := []string{}
	for reason := range (devicemap.Refused{}) {
		switch devicemap.Reason(reason) {
		case devicemap.Dropped: // DCGM's table drops no family
		default:
			reasons = append(reasons, dcgm.Vendor.Reason(devicemap.Reason(reason)))
		}
	}
	assert.Equal(t, metadata.Attributes["reason"].Enum, reasons)
	assert.Equal(t, []string{
		"sentinel", "not_a_number", "negative", "no_sensor", "no_device", "not_dcgm", "unmapped", "wrong_type", "limit", "repeated", "unparsable",
		"implausible", "ambiguous",
	}, reasons)
	outcomes := []string{}
	for _, o := range []fetch.Outcome{
		fetch.OK, fetch.Connect, fetch.TLS, fetch.Timeout, fetch.Status, fetch.Redirect, fetch.CutOff, fetch.TooLarge, fetch.Parse, fetch.Empty,
		dcgm.Exporter.Other(), fetch.NoValue, fetch.NoDevice,
	} {
		outcomes = append(outcomes, string(o))
	}
	assert.Equal(t, metadata.Attributes["outcome"].Enum, outcomes)
	assert.Equal(t, []string{
		"ok", "connect", "tls", "timeout", "http_status", "redirect", "cut_off", "too_large", "parse", "empty", "not_dcgm", "no_value", "no_device",
	}, outcomes)
}
