// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import "time"

// RangeAnswer are the charts of a service.
type RangeAnswer struct {
	Freshness Freshness `json:"freshness"`
	Window    string    `json:"window"`
	By        string    `json:"by"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Step      float64   `json:"step"`
	Points    int       `json:"points"`
	Charts    Charts    `json:"charts"`
	Truncated int       `json:"truncated"`
}

// Charts are the four charts, and those of inference servers where they report any
// value: of the 95th percentile, and of tokens per second.
type Charts struct {
	Utilization        Chart  `json:"utilization"`
	Memory             Chart  `json:"memory"`
	Tensor             Chart  `json:"tensor"`
	Power              Chart  `json:"power"`
	TimeToFirstToken   *Chart `json:"time_to_first_token,omitempty"`
	TimePerOutputToken *Chart `json:"time_per_output_token,omitempty"`
	InterTokenLatency  *Chart `json:"inter_token_latency,omitempty"`
	OutputTokens       *Chart `json:"output_tokens,omitempty"`
}

// DeviceRangeAnswer are the charts of a node's devices, or of one device.
type DeviceRangeAnswer struct {
	Freshness Freshness    `json:"freshness"`
	Window    string       `json:"window"`
	Start     time.Time    `json:"start"`
	End       time.Time    `json:"end"`
	Step      float64      `json:"step"`
	Points    int          `json:"points"`
	Devices   []DeviceLine `json:"devices"`
	Charts    DeviceCharts `json:"charts"`
	Truncated int          `json:"truncated"`
}

// DeviceLine is a device that has a line on each chart.
type DeviceLine struct {
	ID          string  `json:"id"`
	Parent      *string `json:"parent"`
	Index       *string `json:"index"`
	MIGProfile  *string `json:"mig_profile"`
	MIGInstance *string `json:"mig_instance"`
	Partition   *string `json:"partition"`
}

// DeviceCharts are the six charts of devices.
type DeviceCharts struct {
	Utilization Chart `json:"utilization"`
	Memory      Chart `json:"memory"`
	Power       Chart `json:"power"`
	Temperature Chart `json:"temperature"`
	Clock       Chart `json:"clock"`
	Throttle    Chart `json:"throttle"`
}

// Chart is a chart; Limit is null where there is none.
type Chart struct {
	Unit   string     `json:"unit"`
	Series []Series   `json:"series"`
	Limit  []*float64 `json:"limit"`
}

// Series is a line; Pods is null by pod.
type Series struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"`
	Pods   []*int     `json:"pods"`
}

// EventsAnswer is a page of events.
type EventsAnswer struct {
	Freshness Freshness `json:"freshness"`
	Events    []Event   `json:"events"`
	Total     int       `json:"total"`
	Next      *string   `json:"next"`
	Raised    int       `json:"raised"`
	Notices   int       `json:"notices"`
}

// Event is an event.
type Event struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Key          string         `json:"key"`
	State        *string        `json:"state"`
	Notice       bool           `json:"notice"`
	Active       bool           `json:"active"`
	Acknowledged *time.Time     `json:"acknowledged_at"`
	Severity     *string        `json:"severity"`
	Time         time.Time      `json:"time"`
	Body         *string        `json:"body"`
	Subject      Subject        `json:"subject"`
	Attributes   map[string]any `json:"attributes"`
	Deliveries   []Delivery     `json:"deliveries"`
}

// Acknowledgement is the body of a request that acknowledges a notice.
type Acknowledgement struct {
	EventID string `json:"event_id"`
}

// AcknowledgeAnswer is the notice as it is then.
type AcknowledgeAnswer struct {
	Event Event `json:"event"`
}

// Subject is what an event or a reason is about.
type Subject struct {
	Cluster   *string `json:"cluster"`
	Namespace *string `json:"namespace"`
	Service   *string `json:"service"`
	Pod       *string `json:"pod"`
	Node      *string `json:"node"`
	Device    *string `json:"device"`
	// Of what is on Slurm; then Namespace is the account.
	SlurmCluster *string `json:"slurm_cluster,omitempty"`
	Job          *string `json:"job,omitempty"`
}

// Delivery is an attempt to deliver an event.
type Delivery struct {
	ID          string     `json:"id"`
	Time        time.Time  `json:"time"`
	Receiver    string     `json:"receiver"`
	URLHost     string     `json:"url_host"`
	Format      string     `json:"format"`
	Attempt     int        `json:"attempt"`
	MaxAttempts int        `json:"max_attempts"`
	Outcome     string     `json:"outcome"`
	Status      *int       `json:"status"`
	ErrorType   *string    `json:"error_type"`
	NextAttempt *time.Time `json:"next_attempt"`
	Duration    float64    `json:"duration"`
	Trigger     string     `json:"trigger"`
}

// State is the state of the whole.
type State string

// The states; the first one that applies counts.
const (
	StoreUnreachable State = "store_unreachable"
	NotStored        State = "not_stored" // samples arrive, or did a moment ago, and could not be stored
	NotEnabled       State = "not_enabled"
	ScraperDown      State = "scraper_down"
	NoServices       State = "no_services"
	WarmingUp        State = "warming_up"
	Ready            State = "ready"
)

// StatusAnswer is the state of the whole.
type StatusAnswer struct {
	Freshness Freshness   `json:"freshness"`
	Version   string      `json:"version"`
	State     State       `json:"state"`
	Store     StoreStatus `json:"store"`
	Telemetry Telemetry   `json:"telemetry"`
	Endpoints []Reason    `json:"endpoints"`
	Config    Config      `json:"config"`
}

// StoreStatus is the state of the store.
type StoreStatus struct {
	Engine      string   `json:"engine"`
	Reachable   bool     `json:"reachable"`
	Error       *Error   `json:"error"`
	CircuitOpen bool     `json:"circuit_open"`
	Retention   *float64 `json:"retention"`
	// Problems are what it cannot keep.
	Problems []StoreProblem `json:"problems"`
}

// StoreProblem is why a store does not keep something that arrives.
type StoreProblem struct {
	Part    string     `json:"part"`
	Reason  string     `json:"reason"`
	Since   time.Time  `json:"since"`
	Last    *time.Time `json:"last"`
	Ended   *time.Time `json:"ended"`
	Refused int64      `json:"refused"`
	Detail  string     `json:"detail"`
}

// Telemetry is what there is.
type Telemetry struct {
	ExportersUp     *int `json:"exporters_up"`
	ExportersDown   *int `json:"exporters_down"`
	ExportersFrozen *int `json:"exporters_frozen"`
	// ExportersUnrecognized answer with fields that are not known.
	ExportersUnrecognized *int       `json:"exporters_unrecognized"`
	DownExporters         []Exporter `json:"down_exporters"`
	Devices               *int       `json:"devices"`
	Services              *int       `json:"services"`
	ServicesPartial       *int       `json:"services_partial"`
	ServicesNoData        *int       `json:"services_no_data"`
	PodsWarming           *int       `json:"pods_warming"`
	RaisedEvents          *int       `json:"raised_events"`
	Notices               *int       `json:"notices"`
	Kubernetes            *bool      `json:"kubernetes"`
	Window                *string    `json:"window"`
}

// ThresholdsFrom is a component.
type ThresholdsFrom string

const (
	FromSummary ThresholdsFrom = "gpu_summary" // which published them
	FromConsole ThresholdsFrom = "gpu_console" // its own configuration, gpu_summary publishes none
)

// Config is what a page needs to know.
type Config struct {
	Windows          []string `json:"windows"`
	Refresh          float64  `json:"refresh"`
	Warmup           float64  `json:"warmup"`
	IdleThreshold    float64  `json:"idle_threshold"`
	IdleFor          float64  `json:"idle_for"`
	PartialThreshold float64  `json:"partial_threshold"`
	// ThresholdsFrom is where warmup and the three thresholds are from.
	ThresholdsFrom ThresholdsFrom `json:"thresholds_from"`
	Remembered     float64        `json:"remembered"`
	Limits         Limits         `json:"limits"`
	Grafana        *Grafana       `json:"grafana"`
}

// Limits are the API's limits.
type Limits struct {
	MaxServicesPerRequest int `json:"max_services_per_request"`
	MaxConcurrentRequests int `json:"max_concurrent_requests"`
	MaxPointsPerSeries    int `json:"max_points_per_series"`
	MaxSeriesPerRange     int `json:"max_series_per_range"`
}

// Grafana is where a link leads.
type Grafana struct {
	DashboardURL string            `json:"dashboard_url"`
	Variables    []GrafanaVariable `json:"variables"`
}

// GrafanaVariable is a variable of a dashboard, and which part of a service's
// identity it is set to: cluster, namespace or service.
type GrafanaVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
