// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The classic form, which Grafana 10 and later read; the new one needs 12.

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"cmp"
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

// board is a dashboard.
type board struct {
	uid, title, description string
	since                   string // when the time on display begins; now-1h where empty
	variables               []variable
	rows                    []row
}

// variable is one that a reader chooses; its values are those of a label.
type variable struct {
	name, label, description string
	// values is what label_values() is asked for; empty is the data source.
	values string
}

// row is a titled group of panels, which are laid out in their order.
type row struct {
	title  string
	panels []panel
}

// datasource is the variable that every panel asks.
const datasource = "datasource"

// tag is what all boards have, so that they can link to each other.
const tag = "otelcol-gpu"

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${" + datasource + "}")}

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).
		Uid(b.uid).Description(b.description).Tags([]string{tag, "gpu"}).
		Readonly().Timezone("browser").Time(cmp.Or(b.since, "now-1h"), "now").Refresh("30s").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("GPU dashboards").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).AsDropdown(true).KeepTime(true).IncludeVars(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder(datasource).Label("Data source").Type("prometheus").
			Description("A Prometheus, or gpu_store, that has the telemetry."))
	for _, v := range b.variables {
		d = d.WithVariable(v.build())
	}
	for _, r := range b.rows {
		d = d.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			built, err := p.build()
			if err != nil {
				return dashboard.Dashboard{}, fmt.Errorf("%s: %w", p.title, err)
			}
			d = d.WithPanel(built)
		}
	}
	return d.Build()
}

func (v variable) build() *dashboard.QueryVariableBuilder {
	all := dashboard.VariableOption{
		Selected: cog.ToPtr(true),
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
	return dashboard.NewQueryVariableBuilder(v.name).Label(v.label).Description(v.description).
		Datasource(source).Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(" + v.values + ")")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc).
		// .* and not a list of all: what has no such label belongs to it.
		Multi(true).IncludeAll(true).AllValue(".*").Current(all)
}

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
	queries.Cluster: "Cluster", queries.Namespace: "Namespace", queries.Account: "Account", queries.SlurmCluster: "Slurm cluster", queries.Service: serviceColumn, queries.Pod: "Pod",
	queries.Node: "Node", queries.Host: "Host", queries.Device: "Device", queries.Model: "Model", queries.Index: "GPU",
	queries.MIGProfile: "MIG profile", queries.Partition: "Partition", queries.PartitionMode: "Partition mode", queries.XIDCode: "XID", queries.StateOfPod: "State", queries.ErrorType: "Error",
	queries.Address: "Address", queries.Port: "Port", "receiver": "Receiver", "outcome": "Outcome", "reason": "Reason",
	queries.Tenant: "Tenant", queries.Currency: "Currency", queries.CapacityState: "State", queries.CapacityType: "Capacity", queries.HostType: "Machine type", queries.Region: "Region",
	queries.Budget: "Budget", queries.BudgetKind: "Kind", queries.HealthWatch: "Watch", queries.HwState: "State", queries.HealthReason: "Reason", queries.HealthAction: "Action", "alertname": "Alert", "severity": "Severity",
	queries.QueueScheduler: "Scheduler", queries.QueueOf: "Queue", queries.Resource: "Resource", queries.SlurmJob: "Job", queries.TrainingRun: "Run",
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
