// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// checkBody holds a body against what its receiver documents. It knows nothing
// of the encoders: limits, required fields and enumerations are written here a
// second time, from Slack's Block Kit reference, PagerDuty's Events API v2
// schema and Alertmanager's webhook documentation.
func checkBody(format string, body []byte, events []*event.Event) error {
	if !utf8.Valid(body) || !json.Valid(body) {
		return errors.New("not JSON")
	}
	for _, r := range string(body) {
		if safetext.IsHidden(r) {
			return fmt.Errorf("hidden character %U", r)
		}
	}
	switch format {
	case "slack":
		return checkSlack(body, events)
	case "pagerduty":
		return checkPagerDuty(body, events[0])
	case "alertmanager":
		return checkAlertmanager(body, events)
	}
	return nil
}

// strict decodes and refuses fields that the receiver does not know.
func strict(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

func length(s string) int { return len(utf16.Encode([]rune(s))) }

func within(what, s string, least, most int) error {
	if n := length(s); n < least || n > most {
		return fmt.Errorf("%s has %d characters, not %d to %d", what, n, least, most)
	}
	return nil
}

type slackTextDoc struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Emoji    *bool  `json:"emoji"`
	Verbatim bool   `json:"verbatim"`
}

var (
	slackEntity   = regexp.MustCompile(`&(amp|lt|gt);`)
	slackCallsAll = regexp.MustCompile(`(?i)@(here|channel|everyone)\b`)
	severityWord  = regexp.MustCompile(`\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b`)
)

func checkSlack(body []byte, events []*event.Event) error {
	var msg struct {
		Text   string `json:"text"`
		Blocks []struct {
			Type     string         `json:"type"`
			Text     *slackTextDoc  `json:"text"`
			Fields   []slackTextDoc `json:"fields"`
			Elements []slackTextDoc `json:"elements"`
		} `json:"blocks"`
	}
	if err := strict(body, &msg); err != nil {
		return err
	}
	errs := []error{within("text", msg.Text, 1, 4000), harmlessInSlack(msg.Text)}
	if len(msg.Blocks) < 1 || len(msg.Blocks) > 50 {
		errs = append(errs, fmt.Errorf("%d blocks", len(msg.Blocks)))
	}
	total, headers := 0, 0
	text := func(what string, o slackTextDoc, most int) {
		total += length(o.Text)
		errs = append(errs, within(what, o.Text, 1, most), harmlessInSlack(o.Text))
		switch {
		case strings.TrimSpace(o.Text) == "":
			errs = append(errs, fmt.Errorf("%s is blank", what))
		case o.Type == "mrkdwn" && o.Emoji != nil, o.Type == "plain_text" && o.Verbatim:
			errs = append(errs, fmt.Errorf("%s has a field of the other type of text", what))
		case o.Type == "mrkdwn" && !o.Verbatim:
			errs = append(errs, fmt.Errorf("%s lets Slack make links of texts", what))
		case o.Type != "mrkdwn" && o.Type != "plain_text":
			errs = append(errs, fmt.Errorf("%s has type %q", what, o.Type))
		}
	}
	for _, b := range msg.Blocks {
		switch b.Type {
		case "header":
			if b.Text == nil || b.Text.Type != "plain_text" {
				return errors.New("a header without plain text")
			}
			headers++
			text("header", *b.Text, 150)
			if !severityWord.MatchString(b.Text.Text) {
				errs = append(errs, errors.New("a header without a severity"))
			}
		case "section":
			if b.Text == nil && len(b.Fields) == 0 {
				errs = append(errs, errors.New("a section without text"))
			}
			if b.Text != nil {
				text("section", *b.Text, 3000)
			}
			if len(b.Fields) > 10 {
				errs = append(errs, fmt.Errorf("%d fields", len(b.Fields)))
			}
			for _, f := range b.Fields {
				text("field", f, 2000)
				if strings.Contains(f.Text, "``") {
					errs = append(errs, fmt.Errorf("a field without content: %q", f.Text))
				}
				if strings.Count(f.Text, "`") != 2 {
					errs = append(errs, fmt.Errorf("a field whose code is not closed: %q", f.Text))
				}
			}
		case "context":
			if len(b.Elements) < 1 || len(b.Elements) > 10 {
				errs = append(errs, fmt.Errorf("%d elements", len(b.Elements)))
			}
			for _, o := range b.Elements {
				text("element", o, 3000)
			}
		case "divider":
			if b.Text != nil || b.Fields != nil || b.Elements != nil {
				errs = append(errs, errors.New("a divider with content"))
			}
		default:
			errs = append(errs, fmt.Errorf("unknown block %q", b.Type))
		}
	}
	if headers != len(events) {
		errs = append(errs, fmt.Errorf("%d of %d events are described", headers, len(events)))
	}
	if total > 10_000 {
		errs = append(errs, fmt.Errorf("blocks hold %d characters", total))
	}
	return errors.Join(errs...)
}

// harmlessInSlack refuses every reserved character: nothing that is sent needs
// a link or a mention.
func harmlessInSlack(s string) error {
	if strings.ContainsAny(s, "<>") || strings.Contains(slackEntity.ReplaceAllString(s, ""), "&") {
		return fmt.Errorf("reserved characters in %q", s)
	}
	if slackCallsAll.MatchString(s) {
		return fmt.Errorf("a mention in %q", s)
	}
	return nil
}

func checkPagerDuty(body []byte, e *event.Event) error {
	var msg struct {
		RoutingKey  string `json:"routing_key"`
		EventAction string `json:"event_action"`
		DedupKey    string `json:"dedup_key"`
		Client      string `json:"client"`
		ClientURL   string `json:"client_url"`
		Payload     *struct {
			Summary       string         `json:"summary"`
			Timestamp     string         `json:"timestamp"`
			Severity      string         `json:"severity"`
			Source        string         `json:"source"`
			Component     string         `json:"component"`
			Group         string         `json:"group"`
			Class         string         `json:"class"`
			CustomDetails map[string]any `json:"custom_details"`
		} `json:"payload"`
	}
	if err := strict(body, &msg); err != nil {
		return err
	}
	p := msg.Payload
	if p == nil {
		return errors.New("no payload")
	}
	errs := []error{
		within("routing_key", msg.RoutingKey, 32, 32),
		within("dedup_key", msg.DedupKey, 1, 255),
		within("summary", p.Summary, 1, 1024),
	}
	if strings.TrimSpace(p.Source) == "" {
		errs = append(errs, errors.New("no source"))
	}
	want := "trigger"
	if e.State == names.EventCleared {
		want = "resolve"
	}
	if msg.EventAction != want {
		errs = append(errs, fmt.Errorf("event_action %q, not %q", msg.EventAction, want))
	}
	if !slices.Contains([]string{"critical", "error", "warning", "info"}, p.Severity) {
		errs = append(errs, fmt.Errorf("severity %q", p.Severity))
	}
	if _, err := time.Parse(time.RFC3339, p.Timestamp); err != nil {
		errs = append(errs, err)
	}
	if len(body) > 512<<10 {
		errs = append(errs, fmt.Errorf("%d bytes", len(body)))
	}
	return errors.Join(errs...)
}

type alertmanagerDoc struct {
	Version           string         `json:"version"`
	GroupKey          string         `json:"groupKey"`
	TruncatedAlerts   uint64         `json:"truncatedAlerts"`
	Status            string         `json:"status"`
	Receiver          string         `json:"receiver"`
	GroupLabels       model.LabelSet `json:"groupLabels"`
	CommonLabels      model.LabelSet `json:"commonLabels"`
	CommonAnnotations model.LabelSet `json:"commonAnnotations"`
	ExternalURL       string         `json:"externalURL"`
	Alerts            []struct {
		Status       string         `json:"status"`
		Labels       model.LabelSet `json:"labels"`
		Annotations  model.LabelSet `json:"annotations"`
		StartsAt     time.Time      `json:"startsAt"`
		EndsAt       time.Time      `json:"endsAt"`
		GeneratorURL string         `json:"generatorURL"`
		Fingerprint  string         `json:"fingerprint"`
	} `json:"alerts"`
}

func checkAlertmanager(body []byte, events []*event.Event) error {
	var msg alertmanagerDoc
	if err := strict(body, &msg); err != nil {
		return err
	}
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if msg.Version != "4" || msg.GroupKey == "" || msg.Receiver == "" || len(msg.Alerts) == 0 {
		refuse("version %q, group %q, receiver %q, %d alerts", msg.Version, msg.GroupKey, msg.Receiver, len(msg.Alerts))
	}
	if msg.TruncatedAlerts != 0 {
		refuse("%d alerts are said to be left out, and none is", msg.TruncatedAlerts)
	}
	status := "resolved"
	seen := map[string]bool{}
	for _, a := range msg.Alerts {
		if seen[a.Fingerprint] {
			refuse("fingerprint %s twice", a.Fingerprint)
		}
		seen[a.Fingerprint] = true
		switch a.Status {
		case "firing":
			status = "firing"
			if !a.EndsAt.IsZero() {
				refuse("a firing alert ended")
			}
		case "resolved":
			if a.EndsAt.Before(a.StartsAt) {
				refuse("ended %v before it started %v", a.EndsAt, a.StartsAt)
			}
		default:
			refuse("status %q", a.Status)
		}
		if a.StartsAt.IsZero() {
			refuse("no start")
		}
		if want := a.Labels.Fingerprint().String(); a.Fingerprint != want {
			refuse("fingerprint %s, not %s", a.Fingerprint, want)
		}
		if _, ok := a.Labels["alertname"]; !ok {
			refuse("no alertname")
		}
		for _, set := range []model.LabelSet{a.Labels, a.Annotations} {
			for name, value := range set {
				if !model.LegacyValidation.IsValidLabelName(string(name)) || strings.HasPrefix(string(name), model.ReservedLabelPrefix) {
					refuse("label name %q", name)
				}
				if !value.IsValid() {
					refuse("label value %q", value)
				}
			}
		}
		for name, value := range msg.CommonLabels {
			if a.Labels[name] != value {
				refuse("common label %s is not common", name)
			}
		}
		for name, value := range msg.CommonAnnotations {
			if a.Annotations[name] != value {
				refuse("common annotation %s is not common", name)
			}
		}
		if err := model.LabelSet(a.Labels).Validate(); err != nil {
			refuse("%w", err)
		}
	}
	if msg.Status != status {
		refuse("status %q with alerts that are %q", msg.Status, status)
	}
	for _, e := range events { // none is lost, merged ones included
		if e.ID != "" && !bytes.Contains(body, mustJSON(e.ID)) {
			refuse("event %q is missing", e.ID)
		}
	}
	return errors.Join(errs...)
}

// mustJSON is the inner part of the text's JSON form.
func mustJSON(s string) []byte {
	b, err := event.JSON(s)
	if err != nil {
		panic(err)
	}
	return bytes.Trim(b, `"`)
}
