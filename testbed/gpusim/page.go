// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/spelling"
)

const (
	xidField    = "DCGM_FI_DEV_XID_ERRORS"
	nvlinkTotal = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
	// An older exporter does not start with this one in its counters file, so that it is
	// printed where it is asked for.
	recoveryField = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
	watchField    = "DCGM_EXP_GPU_HEALTH_STATUS"
	pathField     = "DCGM_EXP_P2P_STATUS"

	// What DCGM stores for a field that a board does not have.
	intSentinel   = "9223372036854775794"
	floatSentinel = "140737488355330.000000"
)

// newFields are those that exporters before 4.x do not know.
var newFields = []int{175, 346, 385, 386, 387, 388, 389, 1523}

// watches are those of DCGM's health checks.
var watches = []string{"PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER"}

// prints reports whether the node's exporter is configured to print a family that it
// does not print by itself.
func prints(n *node, name string) bool {
	return slices.Contains(n.cfg.With, name) && !slices.Contains(n.cfg.Without, name)
}

// line is one row of the page, its labels written out.
type line struct {
	*reading
	labels, attributes, xidAttributes string
}

// shown is a field as the node's exporter prints it.
type shown struct {
	*field
	as spelling.Field
}

// spell is how the exporter prints a field; false where it does not know it.
func (x *exporter) spell(f *field) (spelling.Field, bool) {
	s := spelling.Field{ID: f.id, Name: f.name, Help: f.help, Float: f.float}
	switch {
	case x.first:
		s.Name = spelling.First[f.id]
	case x.newest:
		return spelling.Newest(s), true
	case f.id == 112 && x.throttleName:
		s.Name = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
	}
	if f.link() {
		s.Of = func(v float64) float64 { return math.Floor(v / legacyLinkUnit) }
	}
	return s, s.Name != ""
}

// fields are those that the node's exporter is configured to print, in its order.
func (w *writer) fields() []shown {
	var out []shown
	profiling := w.node.cfg.Profiling == nil || *w.node.cfg.Profiling
	for i := range fields {
		f := &fields[i]
		byDefault := !f.all || f.id == 250 && w.node.exp.newest
		if !byDefault && w.node.cfg.Fields != "all" || !profiling && strings.HasPrefix(f.name, "DCGM_FI_PROF_") {
			continue
		}
		if f.name == "DCGM_FI_DEV_FB_RESERVED" && !w.node.exp.reserved || slices.Contains(newFields, f.id) && !w.node.exp.reserved {
			continue
		}
		if f.name == recoveryField && !prints(w.node, f.name) || slices.Contains(w.node.cfg.Without, f.name) {
			continue
		}
		if as, known := w.node.exp.spell(f); known {
			out = append(out, shown{f, as})
		}
	}
	switch {
	case w.node.exp.byFieldID:
		slices.SortStableFunc(out, func(a, b shown) int { return a.as.ID - b.as.ID })
	case w.node.exp.first:
		slices.SortFunc(out, func(a, b shown) int { return strings.Compare(a.as.Name, b.as.Name) })
	}
	return out
}

// writer collects a page.
type writer struct {
	bytes.Buffer
	node   *node
	suffix string
}

// family writes a family; one without samples leaves no header either.
func (w *writer) family(f shown, lines []line) {
	headed := false
	for _, l := range lines {
		if _, ok := w.text(f, l.reading); ok && !headed {
			w.header(f)
			headed = true
		}
		w.sample(f, l)
	}
}

func (w *writer) header(f shown) {
	name, help := f.as.Name, f.as.Help
	if w.node.exp.oldTexts {
		help = strings.Replace(help, "(in ns)", "(in us)", 1)
		if strings.HasPrefix(help, "Ratio of") {
			help = strings.TrimSuffix(help, ".") + " (in %)."
		}
	}
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, f.typ)
}

func (w *writer) sample(f shown, l line) {
	text, ok := w.text(f, l.reading)
	if !ok {
		return
	}
	attributes := l.attributes
	if f.name == xidField {
		attributes = l.xidAttributes
	}
	w.row(f.as.Name, l.labels+attributes, text)
}

func (w *writer) row(name, labels, text string) {
	w.WriteString(name)
	w.WriteByte('{')
	w.WriteString(labels)
	w.WriteString("} ")
	w.WriteString(text)
	w.WriteString(w.suffix)
}

// text is a sample's value as the exporter prints it: %d or %f.
func (w *writer) text(f shown, r *reading) (string, bool) {
	x := w.node.exp
	if r.deviceOnly && !f.byProcess() || r.board.model.Integrated && f.ofItsOwn() {
		return "", false
	}
	for _, s := range r.blank {
		if len(s.Fields) == 0 || slices.Contains(s.Fields, f.name) {
			return sentinel(f), true
		}
	}
	if f.name == xidField && r.xid == 0 && !x.xidZero {
		return "", false
	}
	if r.process != nil && f.byProcess() {
		own := *r
		own.util, own.used = r.process.util, r.process.used
		r = &own
	}
	v, ok := f.value(r)
	if !ok && r.mig == nil {
		switch {
		case f.id == 140 && x.gddrTempZero, f.id == 449 && x.nvlinkAlways:
			v, ok = 0, true
		case f.id == 140 && x.sentinels:
			return sentinel(f), true
		}
	}
	if !ok {
		return "", false
	}
	if f.as.Of != nil {
		v = f.as.Of(v)
	}
	if f.as.Float {
		return strconv.FormatFloat(v, 'f', 6, 64), true
	}
	return strconv.FormatInt(int64(v), 10), true
}

func sentinel(f shown) string {
	if f.as.Float {
		return floatSentinel
	}
	return intSentinel
}

// labels writes what identifies a row, in the exporter's order, and the fields
// that are printed as labels.
func (w *writer) labels(r *reading, number int, host string) string {
	x := w.node.exp
	if x.first {
		return firstLabels(r, number)
	}
	var b strings.Builder
	index := strconv.Itoa(number)
	fmt.Fprintf(&b, "gpu=%q,", index)
	if x.spaceAfterGPU {
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "UUID=%q", r.board.current(r.boards))
	add := func(k, v string) { fmt.Fprintf(&b, ",%s=%q", k, v) }
	if x.pciBusID {
		add("pci_bus_id", r.board.pci)
	}
	if x.deviceLabel {
		add("device", "nvidia"+index)
	}
	if x.modelName {
		add("modelName", r.board.model.Name)
	}
	if r.mig != nil {
		add("GPU_I_PROFILE", r.mig.profile)
		add("GPU_I_ID", strconv.Itoa(r.mig.id))
	}
	if x.hostname != "" {
		add(x.hostname, host)
	}
	if x.driverLabel != "" {
		add(x.driverLabel, r.driver)
	}
	if x.podLabels && w.node.cfg.PodLabels && r.pod != nil {
		keys := make([]string, 0, len(r.pod.Labels))
		for k := range r.pod.Labels {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			add(x.podPrefix+sanitize(k), r.pod.Labels[k])
		}
	}
	return b.String()
}

// firstLabels are all labels of a row of the first exporters, by their names.
func firstLabels(r *reading, number int) string {
	own := fmt.Sprintf("gpu=%q", strconv.Itoa(number))
	if r.pod != nil {
		own = fmt.Sprintf("container_name=%q,%s,pod_name=%q,pod_namespace=%q", r.pod.Container, own, r.pod.Name, r.pod.Namespace)
	}
	return own + fmt.Sprintf(",uuid=%q", r.board.current(r.boards))
}

// attributes writes the labels that follow, which the exporter sorts by name:
// container, err_code, err_msg, namespace, pod, pod_uid, vgpu.
func (w *writer) attributes(r *reading, xid bool) string {
	var b strings.Builder
	if w.node.exp.first {
		return ""
	}
	add := func(k, v string) { fmt.Fprintf(&b, ",%s=%q", k, v) }
	p := r.pod
	if p == nil && w.node.exp.emptyPod && w.node.asksKubelet() {
		p = &Pod{}
	}
	if p != nil {
		add("container", p.Container)
	}
	if xid && w.node.exp.xidText {
		add("err_code", strconv.Itoa(r.xid))
		add("err_msg", xidText(r.xid))
	}
	if p != nil {
		add("namespace", p.Namespace)
		add("pod", p.Name)
	}
	if r.pod != nil && w.node.exp.podLabels && w.node.cfg.PodUID {
		add("pod_uid", p.uid(w.node.fleet.cfg.Seed))
	}
	if r.replica >= 0 {
		add("vgpu", strconv.Itoa(r.replica))
	}
	return b.String()
}

// xidWindow is the exporter's window for counting XIDs.
const xidWindow = 300 * time.Second

// xidFamilies writes the exporter's own XID families: a count over a sliding
// window, which falls again, and in later versions a true counter.
func (w *writer) xidFamilies(lines []line, k int64) {
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.deviceOnly })
	const name = "DCGM_EXP_XID_ERRORS_COUNT"
	if w.node.exp.xidCount != "" && !slices.Contains(w.node.cfg.Without, name) {
		fmt.Fprintf(w, "# HELP %s reported XIDs during last window\n# TYPE %s %s\n", name, name, w.node.exp.xidCount)
		window := fmt.Sprintf(",window_size_in_ms=%q", strconv.FormatInt(xidWindow.Milliseconds(), 10))
		for _, l := range lines {
			counts := w.node.faults.xidCounts(l.reading, k, int64(xidWindow/time.Second))
			if len(counts) == 0 {
				w.row(name, l.labels+window+l.attributes, "0")
			}
			for _, c := range counts {
				w.row(name, fmt.Sprintf("%s%s,xid=%q%s", l.labels, window, strconv.Itoa(c[0]), l.attributes), strconv.Itoa(c[1]))
			}
		}
	}
	const total = "DCGM_EXP_XID_ERRORS_TOTAL"
	if w.node.exp.xidTotal && !slices.Contains(w.node.cfg.Without, total) {
		headed := false
		for _, l := range lines {
			for _, c := range w.node.faults.xidCounts(l.reading, k, k+1) {
				if !headed {
					fmt.Fprintf(w, "# HELP %s reported XIDs since the exporter started\n# TYPE %s counter\n", total, total)
					headed = true
				}
				w.row(total, fmt.Sprintf("%s,xid=%q%s", l.labels, strconv.Itoa(c[0]), l.attributes), strconv.Itoa(c[1]))
			}
		}
	}
}

// watchFamily writes the results of DCGM's health checks: 0 pass, 10 warn, 20 fail.
func (w *writer) watchFamily(lines []line) {
	if !w.node.exp.reserved || !prints(w.node, watchField) {
		return
	}
	fmt.Fprintf(w, "# HELP %s Health of each watch (0 pass, 10 warn, 20 fail).\n# TYPE %s gauge\n", watchField, watchField)
	for _, l := range lines {
		for _, watch := range watches {
			if l.mig == nil && !l.deviceOnly {
				w.row(watchField, fmt.Sprintf("%s,health_watch=%q%s", l.labels, watch, l.attributes), strconv.Itoa(l.watches[watch]))
			}
		}
	}
}

// pathFamily writes NVML's status of the paths to the other devices: 0 is one over NVLink,
// 6 a state that is not known.
func (w *writer) pathFamily(lines []line) {
	if !w.node.exp.reserved || !prints(w.node, pathField) {
		return
	}
	headed := false
	for _, l := range lines {
		for i := range w.node.boards {
			if i == l.board.index || l.mig != nil || l.deviceOnly || !hasNVLink(l.board.model) {
				continue
			}
			if !headed {
				fmt.Fprintf(w, "# HELP %s Status of the path to another GPU.\n# TYPE %s gauge\n", pathField, pathField)
				headed = true
			}
			status := "0"
			if slices.Contains(l.cut, i) {
				status = "6"
			}
			w.row(pathField, fmt.Sprintf("%s,peer_gpu=%q%s", l.labels, strconv.Itoa(i), l.attributes), status)
		}
	}
}

// uid is the pod's: made from the seed and the pod's name, if not given.
func (p *Pod) uid(seed uint64) string {
	if p.UID != "" {
		return p.UID
	}
	return random.UUID(random.Stream(seed, "uid/"+p.Namespace+"/"+p.Name))
}
