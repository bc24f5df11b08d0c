// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

type kind int

const (
	chart  kind = iota // over time, a line a series
	number             // now
	grid               // now, a row a series
	states             // over time, a bar a series
)

// panel is one picture of one unit.
type panel struct {
	kind               kind
	title, description string
	unit               string
	queries            []query
	width, height      uint32  // of 24 columns, in rows
	max                float64 // of the axis; 0 is none
	warn, alarm        float64 // thresholds; 0 is none
	off                bool    // thresholds colour what is below
	stacked            bool
	words              map[string]word // texts in place of values
	unmeasured         bool            // NaN is what vendors do not measure
	toService          bool            // a grid's services lead to their dashboard
}

// query is one expression and what its series are called.
type query struct {
	expr, legend string
	column, unit string // in a grid: the name of its values, and their unit if it is another
}

// word is what a value means.
type word struct{ text, color string }

// columnNames are what labels are called in a grid.
var columnNames = map[string]string{
	queries.Cluster: "Cluster", queries.Namespace: "Namespace", queries.Service: serviceColumn, queries.Pod: "Pod",
	queries.Node: "Node", queries.Host: "Host", queries.Device: "Device", queries.Model: "Model", queries.Index: "GPU",
	queries.MIGProfile: "MIG profile", queries.Partition: "Partition", queries.PartitionMode: "Partition mode", queries.XIDCode: "XID", queries.StateOfPod: "State", queries.ErrorType: "Error",
	queries.Address: "Address", queries.Port: "Port", "receiver": "Receiver", "outcome": "Outcome", "reason": "Reason",
	queries.Tenant: "Tenant", queries.Currency: "Currency", queries.CapacityState: "State", queries.CapacityType: "Capacity", queries.HostType: "Machine type", queries.Region: "Region",
	queries.Budget: "Budget", queries.BudgetKind: "Kind", queries.HealthWatch: "Watch", queries.HwState: "State", queries.HealthReason: "Reason", queries.HealthAction: "Action", "alertname": "Alert", "severity": "Severity",
}

const serviceColumn = "Service"

// serviceLink leads from a row to its service.
const serviceLink = "/d/" + queries.ServiceDashboard + "/?${datasource:queryparam}&${rack:queryparam}" +
	"&var-namespace=${__data.fields.Namespace:percentencode}&var-app=$__all" +
	"&var-service=${__data.fields." + serviceColumn + ":percentencode}&${__url_time_range}"

const (
	green, amber, red, blue, grey = "green", "orange", "red", "blue", "text"
)

func (p panel) target(i int, q query) *prometheus.DataqueryBuilder {
	t := prometheus.NewDataqueryBuilder().Datasource(source).RefId(string(rune('A' + i))).
		Expr(q.expr).LegendFormat(q.legend).EditorMode(prometheus.QueryEditorModeCode)
	switch p.kind {
	case chart, states:
		return t.Range()
	case grid:
		return t.Instant().Format(prometheus.PromQueryFormatTable)
	default:
		return t.Instant()
	}
}

func (p panel) targets() (targets []cog.Builder[variants.Dataquery]) {
	for i, q := range p.queries {
		targets = append(targets, p.target(i, q))
	}
	return targets
}

func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	normal, beyond := green, red
	if p.off {
		normal, beyond = red, green
	}
	steps := []dashboard.Threshold{{Color: normal}}
	if p.warn != 0 {
		steps = append(steps, dashboard.Threshold{Value: cog.ToPtr(p.warn), Color: amber})
	}
	if p.alarm != 0 {
		steps = append(steps, dashboard.Threshold{Value: cog.ToPtr(p.alarm), Color: beyond})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

func (p panel) mappings() []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for value, w := range p.words {
		options[value] = dashboard.ValueMappingResult{Text: cog.ToPtr(w.text), Color: cog.ToPtr(w.color)}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

func (p panel) build() (cog.Builder[dashboard.Panel], error) {
	if p.description == "" || p.unit == "" || len(p.queries) == 0 || p.width == 0 || p.height == 0 {
		return nil, fmt.Errorf("a panel needs description, unit, size and a query")
	}
	switch p.kind {
	case chart:
		return p.chart(), nil
	case number:
		return p.number(), nil
	case states:
		return p.states(), nil
	default:
		return p.grid(), nil
	}
}

func (p panel) chart() *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Targets(p.targets()).
		Unit(p.unit).Span(p.width).Height(p.height).Min(0).LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeAuto).
		// No data is a gap, and never a line across it.
		SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", "mean", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.max != 0 {
		b = b.Max(p.max)
	}
	if p.warn != 0 || p.alarm != 0 {
		b = b.Thresholds(p.thresholds()).ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	if p.stacked {
		b = b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(30)
	}
	if len(p.words) > 0 {
		b = b.Mappings(p.mappings())
	}
	return b
}

func (p panel) number() *stat.PanelBuilder {
	b := stat.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Targets(p.targets()).
		Unit(p.unit).Span(p.width).Height(p.height).GraphMode(common.BigValueGraphModeNone).Orientation(common.VizOrientationAuto).
		ColorMode(common.BigValueColorModeValue).NoValue("no data").
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Thresholds(p.thresholds())
	if len(p.words) > 0 {
		b = b.Mappings(p.mappings())
	}
	if p.unmeasured {
		b = b.Mappings([]dashboard.ValueMapping{{SpecialValueMap: &dashboard.SpecialValueMap{
			Type: dashboard.MappingTypeSpecialValue,
			Options: dashboard.DashboardSpecialValueMapOptions{
				Match:  dashboard.SpecialValueMatchNullAndNan,
				Result: dashboard.ValueMappingResult{Text: cog.ToPtr("not measured by this vendor"), Color: cog.ToPtr(grey)},
			},
		}}})
	}
	return b
}

func (p panel) states() *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Targets(p.targets()).
		Unit(p.unit).Span(p.width).Height(p.height).Mappings(p.mappings()).Thresholds(p.thresholds()).
		ShowValue(common.VisibilityModeNever).RowHeight(0.8).NeverSpanNulls()
}

// grid joins the queries by their labels: a row is a series, a column a label or
// a query's value.
func (p panel) grid() *table.PanelBuilder {
	renamed := map[string]string{}
	for label, name := range columnNames {
		renamed[label] = name
	}
	for i, q := range p.queries {
		name := "Value #" + string(rune('A'+i))
		if len(p.queries) == 1 {
			name = "Value"
		}
		renamed[name] = q.column
	}
	b := table.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Targets(p.targets()).
		Unit(p.unit).Span(p.width).Height(p.height).NoValue("—").Thresholds(p.thresholds()).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "__name__": true}, "renameByName": renamed,
		}})
	for _, q := range p.queries {
		if q.unit != "" {
			b = b.OverrideByName(q.column, []dashboard.DynamicConfigValue{{Id: "unit", Value: q.unit}})
		}
	}
	if len(p.words) > 0 {
		b = b.Mappings(p.mappings())
	}
	if p.toService {
		b = b.OverrideByName(serviceColumn, []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]string{{"title": "This service", "url": serviceLink}}}})
	}
	return b
}
