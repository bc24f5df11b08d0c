// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	alertmanagerGroup   = 20
	alertmanagerVersion = "4"

	alertFiring   = "firing"
	alertResolved = "resolved"
)

// Annotations that the format itself sets, beside the event's attributes.
const (
	annotationSummary  = "summary"
	annotationSeverity = "severity"
	annotationTraceID  = "trace_id"
	// annotationUnknown marks a clearing without a known beginning.
	annotationUnknown = "starts_at_unknown"
	// annotationEarlier names what happened to the same condition before, in
	// the same message.
	annotationEarlier = "gpu_event_ids_earlier"
)

var alertmanager = Format{
	Name: "alertmanager", Group: alertmanagerGroup,
	new: func(endpoint string, _ Config) (EncodeFunc, error) {
		return func(events []*event.Event) ([]byte, error) { return encodeAlertmanager(endpoint, events) }, nil
	},
}

// alertmanagerBody is what Alertmanager's webhook receiver gets.
type alertmanagerBody struct {
	Version           string         `json:"version"`
	GroupKey          string         `json:"groupKey"`
	TruncatedAlerts   uint64         `json:"truncatedAlerts"`
	Status            string         `json:"status"`
	Receiver          string         `json:"receiver"`
	GroupLabels       model.LabelSet `json:"groupLabels"`
	CommonLabels      model.LabelSet `json:"commonLabels"`
	CommonAnnotations model.LabelSet `json:"commonAnnotations"`
	ExternalURL       string         `json:"externalURL"`
	Alerts            []alert        `json:"alerts"`
}

type alert struct {
	Status       string         `json:"status"`
	Labels       model.LabelSet `json:"labels"`
	Annotations  model.LabelSet `json:"annotations"`
	StartsAt     time.Time      `json:"startsAt"`
	EndsAt       time.Time      `json:"endsAt"` // zero while it fires, as Alertmanager writes it
	GeneratorURL string         `json:"generatorURL"`
	Fingerprint  string         `json:"fingerprint"`
}

// encodeAlertmanager writes every event; several of one condition make one
// alert, as a fingerprint is unique in a message of Alertmanager.
func encodeAlertmanager(endpoint string, events []*event.Event) ([]byte, error) {
	body := alertmanagerBody{Version: alertmanagerVersion, Status: alertResolved, Receiver: endpoint}
	at := map[string]int{} // of a fingerprint's alert
	for _, e := range events {
		a, err := newAlert(e)
		if err != nil {
			return nil, err
		}
		if i, again := at[a.Fingerprint]; again {
			a.follow(&body.Alerts[i])
			body.Alerts[i] = a
			continue
		}
		at[a.Fingerprint] = len(body.Alerts)
		body.Alerts = append(body.Alerts, a)
	}
	for i, a := range body.Alerts {
		if a.Status == alertFiring {
			body.Status = alertFiring
		}
		if i == 0 {
			body.CommonLabels, body.CommonAnnotations = a.Labels.Clone(), a.Annotations.Clone()
			continue
		}
		keepCommon(body.CommonLabels, a.Labels)
		keepCommon(body.CommonAnnotations, a.Annotations)
	}
	body.GroupLabels = body.CommonLabels
	body.GroupKey = groupKey(body.GroupLabels, body.Alerts)
	return event.JSON(body)
}

// newAlert describes one event. What differs between a raising and its
// clearing, the severity above all, is an annotation: the labels, and with them
// the fingerprint, are the condition's.
func newAlert(e *event.Event) (alert, error) {
	annotations, err := annotationsOf(e)
	if err != nil {
		return alert{}, err
	}
	labels := labelsOf(e)
	a := alert{
		Status:      alertFiring,
		Labels:      labels,
		Annotations: annotations,
		StartsAt:    e.Time,
		Fingerprint: labels.Fingerprint().String(),
	}
	if e.State == names.EventCleared {
		// Since when it was raised is not known here. Alertmanager's own rule
		// for an alert without a start is to take the end.
		a.Status, a.EndsAt = alertResolved, e.Time
		a.Annotations[annotationUnknown] = "true"
	}
	return a, nil
}

// follow continues an earlier alert of the same condition in the same message.
func (a *alert) follow(before *alert) {
	id := model.LabelName(labelName(names.GPUEventID))
	earlier := string(before.Annotations[id])
	if e := before.Annotations[annotationEarlier]; e != "" {
		earlier = string(e) + "," + earlier
	}
	a.Annotations[annotationEarlier] = model.LabelValue(earlier)
	switch {
	case before.StartsAt.After(a.StartsAt), before.Status == alertResolved && a.Status == alertFiring:
		// A new beginning.
	default:
		a.StartsAt = before.StartsAt
		delete(a.Annotations, annotationUnknown)
		if unknown, ok := before.Annotations[annotationUnknown]; ok {
			a.Annotations[annotationUnknown] = unknown
		}
	}
}

// labelsOf returns what is the same in every event of a condition: the event's
// name, its key, and the subject as far as the key identifies it. An event
// without a key is an alert of its own.
func labelsOf(e *event.Event) model.LabelSet {
	labels := model.LabelSet{model.AlertNameLabel: model.LabelValue(e.Name)}
	if e.Key != "" {
		labels[model.LabelName(labelName(names.GPUEventKey))] = model.LabelValue(e.Key)
	} else {
		labels[model.LabelName(labelName(names.GPUEventID))] = model.LabelValue(e.ID)
	}
	subject := []string{names.K8sClusterName}
	switch {
	case e.Resource[names.HwID] != nil:
		subject = append(subject, names.HwID)
	case e.Resource[names.ServiceName] != nil:
		subject = append(subject, names.K8sNamespaceName, names.SlurmClusterName, names.ServiceNamespace, names.ServiceName)
	default:
		subject = append(subject, names.K8sNodeName)
	}
	for _, name := range subject {
		if s, ok := e.Resource[name].(string); ok && s != "" {
			labels[model.LabelName(labelName(name))] = model.LabelValue(s)
		}
	}
	return labels
}

// annotationsOf returns everything in the event. Attributes with names that become
// the same share an annotation.
func annotationsOf(e *event.Event) (model.LabelSet, error) {
	all := maps.Clone(e.Resource)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, e.Attributes)
	out := make(model.LabelSet, len(all)+6)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text, err := event.PlainText(all[key])
		if err != nil {
			return nil, err
		}
		name := model.LabelName(labelName(key))
		if before, ok := out[name]; ok {
			text = string(before) + "; " + text
		}
		out[name] = model.LabelValue(text)
	}
	set := func(name, text string) {
		if text != "" {
			out[model.LabelName(labelName(name))] = model.LabelValue(text)
		}
	}
	set(annotationSummary, e.Sentence())
	set(annotationSeverity, eventrecord.SeverityName(e.Severity))
	set(annotationTraceID, e.TraceID)
	set(names.GPUEventID, e.ID)
	for name, is := range map[string]bool{"test": e.IsTest(), "replay": e.IsReplay(), "truncated": e.Truncated} {
		if is {
			set(name, "true")
		}
	}
	// These two are set here, and not by an attribute.
	delete(out, annotationUnknown)
	delete(out, annotationEarlier)
	return out, nil
}

// labelName makes a name that every version of Prometheus takes, as its OTLP
// endpoint does: other characters than letters, digits and underscores become
// underscores, and no name starts with a digit, or with the underscores that
// Prometheus keeps for itself.
func labelName(name string) string {
	out := strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name), "_")
	switch {
	case out == "":
		return "key"
	case out[0] >= '0' && out[0] <= '9':
		return "key_" + out
	}
	return out
}

// keepCommon removes from common what is not the same in other.
func keepCommon(common, other model.LabelSet) {
	maps.DeleteFunc(common, func(name model.LabelName, value model.LabelValue) bool {
		v, ok := other[name]
		return !ok || v != value
	})
}

// groupKey names the group that the message is about. One alert is a group of
// its own, so its clearing has the key of its raising. Several alerts are a
// group only with each other: a message about some alerts of a node must not
// pass for one about all of them.
func groupKey(labels model.LabelSet, alerts []alert) string {
	key := "{}:" + labels.String()
	if len(alerts) < 2 {
		return key
	}
	prints := make([]string, len(alerts))
	for i, a := range alerts {
		prints[i] = a.Fingerprint
	}
	slices.Sort(prints)
	sum := sha256.Sum256([]byte(strings.Join(prints, ",")))
	return key + "/" + hex.EncodeToString(sum[:8])
}
