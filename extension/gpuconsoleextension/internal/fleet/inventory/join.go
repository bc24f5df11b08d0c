// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// joiner finds the nodes of exporters. A scrape knows an address, and the page behind
// it a host: but all points of one scrape have one time, so the device with a sample
// of the time of an exporter's was on its page. A silent one is looked up at the
// time of its last sample.
type joiner struct {
	*Inventory
	strays map[string][]*Exporter // those without a known node, by cluster
	may    map[*Node][]*Exporter  // that a node's may be one of
}

// candidates notes the exporters that are scraped now, and returns the nodes that none
// of them was found for, by the time of their last sample.
func (inv joiner) candidates() map[time.Time][]*Node {
	for _, e := range inv.Exporters {
		switch n := inv.Nodes[Place{e.ID.Cluster, e.ID.Address}]; {
		case e.ID.node != "":
			e.Nodes = []*Node{inv.Node(Place{e.ID.Cluster, e.ID.node})}
		case n != nil && !n.seen.IsZero():
			e.Nodes = []*Node{n} // its address is the host's name
		default:
			inv.strays[e.ID.Cluster] = append(inv.strays[e.ID.Cluster], e)
		}
	}
	silent := map[time.Time][]*Node{}
	for _, d := range inv.Devices {
		n := inv.Node(d.Node)
		if d.Seen.IsZero() || d.Identity[queries.Node] != "" || inv.strays[n.ID.Cluster] == nil {
			continue
		}
		if !inv.note(n, d.Seen, (*Exporter).page) && !slices.Contains(silent[d.Seen], n) {
			silent[d.Seen] = append(silent[d.Seen], n)
		}
	}
	maps.DeleteFunc(silent, func(_ time.Time, nodes []*Node) bool {
		return !slices.ContainsFunc(nodes, func(n *Node) bool { return len(inv.may[n]) == 0 })
	})
	return silent
}

// note notes the exporters that had a page at the time of a node's sample, and reports
// whether there are any.
func (inv joiner) note(n *Node, t time.Time, page func(*Exporter) time.Time) bool {
	found := false
	for _, e := range inv.strays[n.ID.Cluster] {
		if page(e).Equal(t) {
			found = true
			if !slices.Contains(inv.may[n], e) {
				inv.may[n] = append(inv.may[n], e)
			}
		}
	}
	return found
}

// settle gives nodes their exporters.
func (inv joiner) settle() {
	inv.decide()
	for _, e := range inv.Exporters {
		for _, n := range e.Nodes {
			n.has(e)
		}
	}
	inv.adopt()
	for _, d := range inv.Devices {
		if n := inv.Node(d.Node); n.Exporter == consoleapi.ExporterFrozen {
			d.FrozenSince = n.FrozenSince
		}
	}
}

// maxScrapes is how many scrapes of silent nodes are looked up.
const maxScrapes = 16

// lookUp asks which exporters were scraped when silent nodes were last seen, and notes
// their pages. Questions may not be open.
func lookUp(ctx context.Context, q *ask.Questions, s queries.Selector, silent map[time.Time][]*Node, note func(*Node, time.Time, func(*Exporter) time.Time) bool) error {
	times := slices.SortedFunc(maps.Keys(silent), func(a, b time.Time) int { return b.Compare(a) })
	times = times[:min(len(times), maxScrapes)]
	found := make([]*model.Vector, len(times))
	q.More(ctx)
	for i, t := range times {
		found[i] = q.VectorAt(queries.ExporterTimes(s), t)
	}
	if err := q.Wait(); err != nil {
		return err
	}
	for i, t := range times {
		then := map[exporterID]time.Time{}
		for _, sample := range *found[i] {
			then[exporterOf(sample.Metric)] = ask.Seconds(sample.Value)
		}
		for _, n := range silent[t] {
			note(n, t, func(e *Exporter) time.Time { return then[e.ID] })
		}
	}
	return nil
}

// decide joins exporters to the nodes that they may be of, where that is one. What
// is known of one is not of another, and one exporter of one node is its own.
func (inv joiner) decide() {
	may := inv.may
	for range 2 {
		for n, all := range may {
			if len(all) > 1 {
				may[n] = slices.DeleteFunc(all, func(e *Exporter) bool { return len(e.Nodes) > 0 && !slices.Contains(e.Nodes, n) })
			}
			if one := may[n]; len(one) == 1 && !slices.Contains(one[0].Nodes, n) {
				one[0].Nodes = append(one[0].Nodes, n)
			}
		}
	}
	hosts := map[string][]*Node{}
	for _, d := range inv.Devices {
		if n := inv.Node(d.Node); d.Identity[queries.Node] == "" && !d.Seen.IsZero() && !slices.Contains(hosts[n.ID.Cluster], n) {
			hosts[n.ID.Cluster] = append(hosts[n.ID.Cluster], n)
		}
	}
	for cluster, all := range inv.strays {
		if len(all) == 1 && len(hosts[cluster]) == 1 {
			all[0].Nodes = hosts[cluster]
		}
	}
}

// adopt reports the exporters of hosts that none could be joined to: if all of
// them that are left in a cluster are in one state, so is each host's.
func (inv joiner) adopt() {
	type common struct {
		state consoleapi.ExporterState
		seen  time.Time // the least recent
		moved time.Time // likewise
		down  bool      // one is
	}
	of := map[string]common{}
	for _, e := range inv.Exporters {
		if len(e.Nodes) > 0 {
			continue
		}
		c, found := of[e.ID.Cluster]
		switch {
		case !found:
			c = common{state: e.State(), seen: e.Seen, moved: e.moved}
		case c.state != e.State():
			c.state = consoleapi.ExporterUnknown
		}
		c.seen, c.moved = earlier(c.seen, e.Seen), earlier(c.moved, e.moved)
		c.down = c.down || e.State() == consoleapi.ExporterDown
		of[e.ID.Cluster] = c
	}
	for _, d := range inv.Devices {
		n, c := inv.Node(d.Node), of[d.Node.Cluster]
		if d.Identity[queries.Node] != "" || n.Exporter != consoleapi.ExporterUnknown {
			continue
		}
		n.suspect = c.down
		if c.down {
			n.exporterSeen = c.seen
		}
		if c.state != "" && c.state != consoleapi.ExporterUnknown {
			n.Exporter, n.exporterSeen, n.FrozenSince = c.state, c.seen, c.moved
		}
	}
}
