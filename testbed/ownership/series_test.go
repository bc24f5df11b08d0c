// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func ends(p Point) Point {
	p.Ended, p.Value = true, 0
	return p
}

func end(second float64, h Owner) Point { return ends(usage(second, h)) }

// of is a point of a service.
func of(p Point, service string) Point {
	p.Service = service
	return p
}

func TestFollow(t *testing.T) {
	unowned := Owner{}
	l := NewLedger() // ann has it, but for 50 to 51
	for second, s := range []State{0: by(ann), 49: by(ann), 50: by(bob), 51: by(ann)} {
		if second == 0 || second > 48 {
			observe(l, float64(second), "GPU-1", s)
		}
	}
	observe(l, 55, "GPU-1", State{})
	l.Undecided("", at(60), at(62))
	otherwise := func(p *Point) { p.Description = "gpu.mig.profile=2g.20gb\n" }
	for name, tc := range map[string]struct {
		points []Point
		series int
		ended  int
		want   string // empty: nothing is wrong
	}{
		"handed over":                   {points: []Point{usage(1, ann), usage(2, ann), end(3, ann), usage(3, bob)}, series: 2, ended: 1},
		"arrived in another order":      {points: []Point{usage(3, bob), usage(1, ann), end(3, ann)}, series: 2, ended: 1},
		"free and again hers":           {points: []Point{usage(1, ann), end(2, ann), usage(2, unowned), end(3, unowned), usage(3, ann)}, series: 3, ended: 2},
		"a new uid is the same series":  {points: []Point{usage(1, ann), usage(2, Owner{Namespace: "n", Pod: "ann", Container: "c", UID: "7"})}, series: 1},
		"the device is gone":            {points: []Point{usage(1, ann), end(2, ann)}, series: 1, ended: 1},
		"not ended":                     {points: []Point{usage(1, ann), usage(2, bob)}, series: 2, want: "has not ended"},
		"ended twice":                   {points: []Point{usage(1, ann), end(2, ann), end(2.5, ann), usage(3, bob)}, series: 2, ended: 1, want: "ended twice"},
		"ended, but not alive":          {points: []Point{usage(1, ann), end(2, bob), end(3, ann), usage(3, bob)}, series: 2, ended: 0, want: "not alive"},
		"alive after its end":           {points: []Point{usage(1, ann), end(2, ann), usage(3, ann)}, series: 1, ended: 1, want: "alive after its end"},
		"described otherwise":           {points: []Point{usage(1, ann), end(2, ann), with(usage(2, ann), otherwise)}, series: 2, ended: 1},
		"described, and not ended":      {points: []Point{usage(1, ann), with(usage(2, ann), otherwise)}, series: 2, want: "has not ended"},
		"another's, without a point":    {points: []Point{usage(48, ann), end(50, ann), usage(52, ann)}, series: 1, ended: 1},
		"free, and unknown for a time":  {points: []Point{usage(59, unowned), end(61, unowned), usage(63, unowned)}, series: 1, ended: 1},
		"free, and ended for no reason": {points: []Point{usage(69, unowned), end(71, unowned), usage(73, unowned)}, series: 1, ended: 1, want: "alive after its end"},
		"twice at one time":             {points: []Point{usage(1, ann), usage(1, ann)}, series: 1, want: "twice"},
		"a snapshot sent again":         {points: []Point{allocation(1, 1, ann), allocation(1, 1, ann)}, series: 1},
		"a snapshot that changed":       {points: []Point{allocation(1, 1, ann), allocation(1, .5, ann)}, series: 1, want: "twice"},
		"allocation: ended within an interval": {points: []Point{
			allocation(1, 1, ann), allocation(2, 1, bob), ends(allocation(4, 1, ann)), allocation(5, 1, bob)}, series: 2, ended: 1},
		"allocation: not ended":       {points: []Point{allocation(1, 1, ann), allocation(2, 1, bob), allocation(5, 1, bob)}, series: 2, want: "has not ended"},
		"allocation: an interval ago": {points: []Point{allocation(1, 1, ann), allocation(4, 1, bob)}, series: 2},
		"two holders at one time":     {points: []Point{usage(1, ann), usage(1, bob)}, series: 1, want: "twice"},
		"another service": {points: []Point{
			with(usage(1, ann), func(p *Point) { p.Service = "s" }), end(2, ann), usage(2, bob)}, series: 2, want: "service"},
		"a service that is known later": {points: []Point{
			usage(1, ann), of(usage(2, ann), "s"), end(3, ann), of(usage(3, ann), "s"), ends(of(usage(4, ann), "s")), usage(4, bob)}, series: 2, ended: 2},
		"a service that is known later, and not ended": {points: []Point{
			usage(1, ann), of(usage(2, ann), "s"), ends(of(usage(3, ann), "s")), usage(3, bob)}, series: 2, ended: 1, want: "its service became known"},
		"a service that is known within a snapshot": {points: []Point{
			allocation(1, 1, ann), of(allocation(1, 1, ann), "s"), ends(allocation(1.001, 1, ann)), ends(of(allocation(2, 1, ann), "s"))}, series: 1, ended: 2},
		"a service that is known within a snapshot, and not ended": {points: []Point{
			allocation(1, 1, ann), of(allocation(1, 1, ann), "s"), ends(of(allocation(2, 1, ann), "s"))}, series: 1, ended: 1, want: "its service became known"},
		"a service that is known with the end": {points: []Point{
			usage(1, ann), end(2, ann), of(usage(2, ann), "s")}, series: 2, ended: 1},
		"replaced under its name, before the device is": {points: []Point{
			usage(1, ann), end(2, ann), with(usage(2, ann), func(p *Point) { p.Owner.UID = "7" })}, series: 2, ended: 1},
		"its pod is known to have started": {points: []Point{
			usage(1, ann), end(2, ann), with(usage(2, ann), func(p *Point) { p.Started = "now" })}, series: 2, ended: 1},
		"allocation: alive after its end, under another uid": {points: []Point{
			allocation(1, 1, ann), ends(allocation(2, 1, ann)), with(allocation(2, 1, ann), func(p *Point) { p.Owner.UID = "" })}, series: 1, ended: 1, want: "alive after its end"},
		"a service that is known no more": {points: []Point{
			of(usage(1, ann), "s"), end(2, ann), of(usage(2, ann), "s")}, series: 1, want: "service"},
		"not about a device": {points: []Point{{Metric: "gpu.exporter.up", Time: at(1)}, {Metric: "gpu.exporter.up", Time: at(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Follow(tc.points, l, 3*time.Second)
			if tc.want == "" {
				assert.Zero(t, e.Faults, e.Findings)
				assert.Equal(t, tc.ended, e.Ended)
			} else if assert.NotEmpty(t, e.Findings) {
				assert.Contains(t, e.Findings[0], tc.want)
			}
			assert.Equal(t, tc.series, e.Series)
		})
	}
}

// A finding is read at the end of a long log: it has the points around it, and one of
// the device's series stands for all that have it at one time.
func TestFindingsHaveTheirPoints(t *testing.T) {
	var points []Point
	for second := range 12 {
		for _, metric := range []string{"a", "b"} {
			p := with(usage(float64(second), ann), func(p *Point) { p.Metric = metric })
			if points = append(points, p); second == 8 || second == 9 {
				points[len(points)-1] = ends(p)
			}
		}
	}
	l := NewLedger()
	observe(l, 0, "GPU-1", by(ann))
	e := Follow(points, l, 3*time.Second)
	assert.Equal(t, 4, e.Faults)
	if assert.Len(t, e.Findings, 2) {
		lines := strings.Split(e.Findings[0], "\n")
		assert.Equal(t, "12:00:09.000 a of GPU-1 on a, n/ann/c (1): ended twice", lines[0])
		assert.Len(t, lines, 2+shownBefore+1+2)
		assert.Equal(t, `> 12:00:09.000 arrived 00:00:00.000: end, n/ann/c (1), service ""`, strings.TrimSpace(lines[2+shownBefore]))
		assert.Contains(t, e.Findings[1], "alive after its end at 12:00:09.000")
	}
}
