// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The classic form, which Grafana 10 and later read; the new one needs 12.

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"cmp"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
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
