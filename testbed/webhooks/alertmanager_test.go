// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhooks reads what the webhook exporter sends with the code of those
// who defined it.
package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/notify/webhook"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bodies are the golden bodies of the exporter's own tests, which hold them
// equal to what is sent.
const bodies = "../../exporter/webhookexporter/internal/format/testdata/bodies/alertmanager-*.json"

// read takes a body as a receiver does that uses Alertmanager's own type, and
// refuses any field that the type does not have.
func read(t *testing.T, file string) webhook.Message {
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	var m webhook.Message
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&m))
	_, err = dec.Token()
	require.True(t, errors.Is(err, io.EOF))
	return m
}

func eachBody(t *testing.T, check func(*testing.T, webhook.Message)) {
	files, err := filepath.Glob(bodies)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 6)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { check(t, read(t, file)) })
	}
}

func TestAlertmanagersTypesReadEveryBody(t *testing.T) {
	eachBody(t, func(t *testing.T, m webhook.Message) {
		require.NotNil(t, m.Data)
		assert.Equal(t, "4", m.Version)
		assert.Zero(t, m.TruncatedAlerts)
		assert.NotEmpty(t, m.GroupKey)
		assert.NotEmpty(t, m.Alerts)
		for _, a := range m.Alerts {
			assert.NotEmpty(t, a.Labels[model.AlertNameLabel])
			for _, set := range []template.KV{a.Labels, a.Annotations} {
				for name, value := range set {
					assert.True(t, model.LegacyValidation.IsValidLabelName(name), name)
					assert.True(t, model.LabelValue(value).IsValid(), value)
				}
			}
		}
	})
}

// Alertmanager itself, given alerts with these labels, annotations and times,
// computes the same status, fingerprints, common labels and annotations.
func TestAlertmanagerComputesTheSame(t *testing.T) {
	tmpl, err := template.FromGlobs(nil)
	require.NoError(t, err)
	tmpl.ExternalURL = new(url.URL)
	eachBody(t, func(t *testing.T, m webhook.Message) {
		var alerts []*alert.Alert
		for _, a := range m.Alerts {
			in := &alert.Alert{Alert: model.Alert{
				Labels: labelSet(a.Labels), Annotations: labelSet(a.Annotations), StartsAt: a.StartsAt, EndsAt: a.EndsAt,
			}}
			if a.EndsAt.IsZero() {
				in.EndsAt = time.Now().Add(time.Hour)
			}
			require.NoError(t, in.Validate())
			alerts = append(alerts, in)
		}
		want := tmpl.Data("ops", labelSet(m.GroupLabels), "", alerts...)
		assert.Equal(t, want.Status, m.Status)
		assert.Equal(t, want.Alerts, m.Alerts)
		assert.Equal(t, want.CommonLabels, m.CommonLabels)
		assert.Equal(t, want.CommonAnnotations, m.CommonAnnotations)
		assert.Equal(t, want.GroupLabels, m.GroupLabels)
		assert.Equal(t, len(want.Alerts.Firing()), len(m.Alerts.Firing()))
	})
}

func TestRaisedAndClearedPair(t *testing.T) {
	raised := read(t, filepath.Join(filepath.Dir(bodies), "alertmanager-raised.json"))
	cleared := read(t, filepath.Join(filepath.Dir(bodies), "alertmanager-cleared.json"))
	assert.Equal(t, raised.Alerts[0].Fingerprint, cleared.Alerts[0].Fingerprint)
	assert.Equal(t, raised.GroupKey, cleared.GroupKey)
	assert.Equal(t, "firing", raised.Status)
	assert.Equal(t, "resolved", cleared.Status)
}

func labelSet(kv template.KV) model.LabelSet {
	out := make(model.LabelSet, len(kv))
	for name, value := range kv {
		out[model.LabelName(name)] = model.LabelValue(value)
	}
	return out
}
