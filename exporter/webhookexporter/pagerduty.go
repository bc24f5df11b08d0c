// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	pagerDutyURL     = "https://events.pagerduty.com/v2/enqueue"
	pagerDutySummary = 1024
	pagerDutyDedup   = 255
	// pagerDutyTime is RFC 3339 in milliseconds, as in PagerDuty's examples.
	pagerDutyTime = "2006-01-02T15:04:05.000Z07:00"
)

var pagerDutyRoutingKey = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// parseRoutingKey takes the routing key over, which PagerDuty cannot do without
// and which means nothing to others. It is a secret: errors do not show it.
func (t *target) parseRoutingKey(key, raw string) error {
	t.routingKey = strings.TrimSpace(raw) // a secret kept in a file often ends in a line feed
	switch {
	case t.format != formatPagerDuty && t.routingKey == "":
		return nil
	case t.format != formatPagerDuty:
		return fmt.Errorf("%s::routing_key: belongs to format %s, and the format is %s; remove it", key, formatPagerDuty, t.format)
	case t.routingKey == "":
		return fmt.Errorf("%s::routing_key: is empty; format %s needs the integration key of an Events API v2 integration", key, formatPagerDuty)
	case !pagerDutyRoutingKey.MatchString(t.routingKey):
		return fmt.Errorf("%s::routing_key: is not 32 letters and digits; copy the integration key of an Events API v2 integration", key)
	}
	return nil
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

var errNoRoutingKey = errors.New("no routing key")

func encodePagerDuty(t *target, events []*event) ([]byte, error) {
	if t == nil || t.routingKey == "" {
		return nil, errNoRoutingKey
	}
	e := events[0]
	action := "trigger"
	if e.State == names.EventCleared {
		action = "resolve"
	}
	class := strings.Map(typeRune, e.Name)
	summary := e.mark() + class
	if sentence := e.sentence(); sentence != "" {
		summary += ": " + sentence
	}
	source := e.node()
	for _, s := range []string{e.subject(), "unknown"} {
		if source == "" {
			source = s
		}
	}
	component := e.text(names.HwID)
	if component == "" {
		component = e.text(names.ServiceName)
	}
	return encodeJSON(pagerDutyBody{
		RoutingKey:  t.routingKey,
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
func dedupKey(e *event) string {
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
func pagerDutyGroup(e *event) string {
	cluster, namespace := e.text(names.K8sClusterName), e.text(names.K8sNamespaceName)
	if cluster != "" && namespace != "" {
		return cluster + "/" + namespace
	}
	return cluster + namespace
}
