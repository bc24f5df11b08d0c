// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	pagerDutyURL     = "https://events.pagerduty.com/v2/enqueue"
	pagerDutySummary = 1024
	pagerDutyDedup   = 255
	// pagerDutyTime is RFC 3339 in milliseconds, as in PagerDuty's examples.
	pagerDutyTime = "2006-01-02T15:04:05.000Z07:00"
)

var pagerDuty = Format{
	Name: "pagerduty", Group: 1, URL: pagerDutyURL, Keys: []string{"routing_key"},
	Example: Config{PagerDutyConfig: PagerDutyConfig{RoutingKey: "0123456789abcdefABCDEF0123456789"}},
	new:     newPagerDuty,
}

// PagerDutyConfig are the settings of format pagerduty.
type PagerDutyConfig struct {
	// RoutingKey is the integration key of an Events API v2 integration, which is
	// sent with each event.
	RoutingKey configopaque.String `mapstructure:"routing_key"`
}

var pagerDutyRoutingKey = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

func newPagerDuty(_ string, c Config) (EncodeFunc, error) {
	key := strings.TrimSpace(string(c.RoutingKey)) // a secret kept in a file often ends in a line feed
	switch {
	case key == "":
		return nil, errors.New("routing_key: is empty; format pagerduty needs the integration key of an Events API v2 integration")
	case !pagerDutyRoutingKey.MatchString(key):
		return nil, errors.New("routing_key: is not 32 letters and digits; copy the integration key of an Events API v2 integration")
	}
	return func(events []*event.Event) ([]byte, error) { return encodePagerDuty(key, events[0]) }, nil
}

// pagerDutyBody is an event of the Events API v2.
type pagerDutyBody struct {
	RoutingKey  string           `json:"routing_key"`
	EventAction string           `json:"event_action"`
	DedupKey    string           `json:"dedup_key"`
	Client      string           `json:"client"`
	Payload     pagerDutyPayload `json:"payload"`
}

type pagerDutyPayload struct {
	Summary       string           `json:"summary"`
	Source        string           `json:"source"`
	Severity      string           `json:"severity"`
	Timestamp     string           `json:"timestamp"`
	Component     string           `json:"component,omitempty"`
	Group         string           `json:"group,omitempty"`
	Class         string           `json:"class"`
	CustomDetails pagerDutyDetails `json:"custom_details"`
}

type pagerDutyDetails struct {
	standardData
	XID         string `json:"xid,omitempty"`
	MissingPods string `json:"missing_pods,omitempty"`
}

func encodePagerDuty(routingKey string, e *event.Event) ([]byte, error) {
	action := "trigger"
	if e.State == names.EventCleared {
		action = "resolve"
	}
	class := event.TypeName(e.Name)
	summary := e.Mark() + class
	if sentence := e.Sentence(); sentence != "" {
		summary += ": " + sentence
	}
	source := e.Node()
	for _, s := range []string{e.Subject(), "unknown"} {
		if source == "" {
			source = s
		}
	}
	component := e.Text(names.HwID)
	if component == "" {
		component = e.Text(names.ServiceName)
	}
	return event.JSON(pagerDutyBody{
		RoutingKey:  routingKey,
		EventAction: action,
		DedupKey:    dedupKey(e),
		Client:      "otelcol-gpu",
		Payload: pagerDutyPayload{
			Summary:       cut(summary, pagerDutySummary, nil),
			Source:        source,
			Severity:      pagerDutySeverity(e.Severity),
			Timestamp:     e.Time.UTC().Format(pagerDutyTime),
			Component:     component,
			Group:         pagerDutyGroup(e),
			Class:         class,
			CustomDetails: pagerDutyDetails{dataOf(e), xid(e), missingPods(e)},
		},
	})
}

// dedupKey is the event's key: what is raised under it is resolved under it.
// An event without one is an alert of its own. A clearing without one resolves
// nothing, which PagerDuty takes and passes over.
func dedupKey(e *event.Event) string {
	key := e.Key
	if key == "" {
		key = e.ID
	}
	if len(key) > pagerDutyDedup {
		sum := sha256.Sum256([]byte(key))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return key
}

func pagerDutySeverity(n plog.SeverityNumber) string {
	switch {
	case n >= plog.SeverityNumberFatal:
		return "critical"
	case n >= plog.SeverityNumberError:
		return "error"
	case n >= plog.SeverityNumberWarn:
		return "warning"
	default:
		return "info"
	}
}

// pagerDutyGroup is the cluster and, for what lives in one, the namespace.
func pagerDutyGroup(e *event.Event) string {
	cluster, namespace := e.Cluster(), e.Namespace()
	if cluster != "" && namespace != "" {
		return cluster + "/" + namespace
	}
	return cluster + namespace
}
