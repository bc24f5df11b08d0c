// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Selector is matchers of labels, joined by commas; empty selects all. Values in
// it are quoted, so that no name can be more than a name.
type Selector string

// All selects everything.
const All Selector = ""

// Is selects series with just that value of a label; empty is without it.
func Is(label, value string) Selector { return Selector(label + "=" + strconv.Quote(value)) }

// OneOf selects series with one of these values of a label.
func OneOf(label string, values ...string) Selector {
	if len(values) == 1 {
		return Is(label, values[0])
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	return Selector(label + "=~" + strconv.Quote(strings.Join(quoted, "|")))
}

// And selects what all of them select.
func And(all ...Selector) Selector {
	var parts []string
	for _, s := range all {
		if s != "" {
			parts = append(parts, string(s))
		}
	}
	return Selector(strings.Join(parts, ","))
}

// OfService selects what is of one service; an empty cluster is that of
// telemetry that names none.
func OfService(cluster, namespace, service string) Selector {
	return And(Is(Cluster, cluster), Is(Namespace, namespace), Is(Service, service))
}

// OfSlurmService selects what is of one service of an account on Slurm.
func OfSlurmService(cluster, slurm, account, service string) Selector {
	return And(Is(Cluster, cluster), Is(Namespace, ""), Is(SlurmCluster, slurm), Is(Account, account), Is(Service, service))
}

// of is a series selector.
func of(metric string, selectors ...Selector) string {
	return metric + "{" + string(And(selectors...)) + "}"
}

// anyOf selects several metrics at once; their names stay in the answer.
func anyOf(metrics []string, s Selector) string {
	return "{" + string(And(Selector(model.MetricNameLabel+`=~"`+strings.Join(metrics, "|")+`"`), s)) + "}"
}

func by(labels ...string) string { return " by (" + strings.Join(labels, ",") + ") " }

// duration writes a duration as PromQL does.
func duration(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10) + "ms"
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// general is the utilization that counts: of the whole engine.
func general(s ...Selector) string {
	return of(Utilization, slices.Concat([]Selector{Is(Task, "general")}, s)...)
}
