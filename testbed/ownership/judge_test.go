// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

var (
	ann = Owner{Namespace: "n", Pod: "ann", Container: "c", UID: "1"}
	bob = Owner{Namespace: "n", Pod: "bob", Container: "c", UID: "2"}
)

func by(h ...Owner) State { return State{Node: "a", Owners: h, Share: 1} }

// observe looks at one device, exactly at a time.
func observe(l *Ledger, second float64, device string, s State) {
	l.Observe(at(second), at(second), map[string]State{device: s})
}

// story: ann has GPU-1 from 10 to 20, bob from 30 on. An interval is 3 s.
func story() *Ledger {
	l := NewLedger()
	for second, s := range []State{0: by(), 10: by(ann), 20: by(), 30: by(bob), 40: by(bob)} {
		if second%10 == 0 {
			// A look just before each change reports that it was then.
			if second > 0 {
				observe(l, float64(second)-.001, "GPU-1", l.Now()["GPU-1"])
			}
			observe(l, float64(second), "GPU-1", s)
		}
	}
	return l
}

func usage(second float64, h Owner) Point {
	return Point{Time: at(second), Metric: names.GPUMemoryUsage.Name, Node: "a", Device: "GPU-1", Owner: h, Value: 5}
}

func allocation(second, share float64, h Owner) Point {
	p := usage(second, h)
	p.Metric, p.Value = names.GPUAllocation.Name, share
	return p
}

func with(p Point, change func(*Point)) Point { change(&p); return p }

func TestJudge(t *testing.T) {
	unowned := Owner{}
	other := with(usage(15, ann), func(p *Point) { p.Owner.UID = "9" })
	silence := Silence{Node: "a", From: at(12), Unknown: at(16), Until: at(25)}
	for name, tc := range map[string]struct {
		point    Point
		silences []Silence
		want     Verdict
	}{
		"the holder":                                {point: usage(15, ann)},
		"the holder, its uid not known":             {point: with(usage(15, ann), func(p *Point) { p.Owner.UID = "" })},
		"another pod of that name, never seen":      {point: other, want: Verdict{Wrong: 1}},
		"who never held it":                         {point: usage(15, bob), want: Verdict{Wrong: 1}},
		"who will hold it later":                    {point: usage(25, bob), want: Verdict{Wrong: 1}},
		"a fact within the slack":                   {point: usage(29.5, bob)},
		"the former holder, within the interval":    {point: usage(22.5, ann)},
		"the former holder, later":                  {point: usage(23.5, ann), want: Verdict{Stale: 1}},
		"free":                                      {point: usage(25, unowned)},
		"no owner yet, within the interval":         {point: usage(12.5, unowned)},
		"no owner, although it is held for long":    {point: usage(15, unowned), want: Verdict{Unknown: 1}},
		"an unknown device":                         {point: with(usage(15, ann), func(p *Point) { p.Device = "GPU-9" }), want: Verdict{Wrong: 1}},
		"not about a device":                        {point: with(usage(15, ann), func(p *Point) { p.Device = "" }), want: Verdict{Points: -1}},
		"a marker":                                  {point: with(usage(25, ann), func(p *Point) { p.Ended = true }), want: Verdict{Points: -1}},
		"allocation: the holder":                    {point: allocation(15, 1, ann)},
		"allocation: another share":                 {point: allocation(15, .5, ann), want: Verdict{Wrong: 1}},
		"allocation: the former holder, later":      {point: allocation(25, 1, ann), want: Verdict{Stale: 1}},
		"allocation: free":                          {point: allocation(25, 0, unowned)},
		"allocation: free, but it is held":          {point: allocation(15, 0, unowned), want: Verdict{Wrong: 1}},
		"allocation: a share without a holder":      {point: allocation(25, 1, unowned), want: Verdict{Wrong: 1}},
		"silence: what was heard last, for a while": {point: usage(15, ann), silences: []Silence{silence}},
		"silence: unknown":                          {point: usage(17, unowned), silences: []Silence{silence}, want: Verdict{Expected: 1}},
		"silence: what was heard last, for too long": {
			point: usage(17, ann), silences: []Silence{silence}, want: Verdict{Stale: 1}},
		"silence: allocation goes on":              {point: allocation(17, 1, ann), silences: []Silence{silence}, want: Verdict{Stale: 1}},
		"silence: allocation calls it free":        {point: allocation(24, 0, unowned), silences: []Silence{silence}, want: Verdict{Stale: 1}},
		"silence: of another node":                 {point: with(usage(17, unowned), func(p *Point) { p.Node = "b" }), silences: []Silence{silence}, want: Verdict{Unknown: 1}},
		"silence: just over, still unknown":        {point: usage(18.5, unowned), silences: []Silence{{Node: "a", From: at(14), Unknown: at(16), Until: at(17)}}, want: Verdict{Expected: 1}},
		"silence: over for long and still unknown": {point: usage(18.5, unowned), silences: []Silence{{Node: "a", From: at(13.5), Unknown: at(14), Until: at(15)}}, want: Verdict{Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge([]Point{tc.point}, story(), Rules{Interval: 3 * time.Second, Slack: time.Second, Silences: tc.silences})
			assert.Len(t, got.Findings, tc.want.Wrong+tc.want.Stale+tc.want.Unknown)
			got.Findings = nil
			tc.want.Points++
			assert.Equal(t, tc.want, got)
		})
	}
}

// The health of a board does not depend on the pod that uses it. With an owner it is judged
// like everything else.
func TestJudgeHealthOfBoards(t *testing.T) {
	status := with(usage(15, Owner{}), func(p *Point) { p.Metric = names.HwStatus.Name })
	owned := with(status, func(p *Point) { p.Owner = bob })
	v := Judge([]Point{status, owned}, story(), Rules{Interval: 5 * time.Second})
	assert.Equal(t, 1, v.Points)
	assert.Equal(t, 1, v.Wrong)
}

// Devices that are divided, shared, gone or known by another name.
func TestJudgeKindsOfDevices(t *testing.T) {
	l := NewLedger()
	l.Alias("a/MIG-x", "GPU-1/7")
	l.Observe(at(0), at(0), map[string]State{
		"GPU-1": {Node: "a", Divided: true}, "GPU-1/7": by(ann),
		"GPU-2": {Node: "a", Divided: true}, "GPU-2::0": {Node: "a", Owners: []Owner{ann}, Share: .5}, "GPU-2::1": {Node: "a", Share: .5},
		"GPU-3": by(ann, bob), "GPU-4": by(),
	})
	l.Observe(at(20), at(20), map[string]State{"GPU-4": by()})
	on := func(p Point, device string) Point { p.Device = device; return p }
	for name, tc := range map[string]struct {
		point Point
		want  Kind
	}{
		"an instance":                                 {point: on(usage(10, ann), "GPU-1/7")},
		"an instance by its other name":               {point: on(allocation(10, 1, ann), "a/MIG-x")},
		"the GPU of an instance":                      {point: on(usage(10, Owner{}), "GPU-1")},
		"the GPU of an instance has no owner":         {point: on(usage(10, ann), "GPU-1"), want: Wrong},
		"the GPU of an instance is not free":          {point: on(allocation(10, 0, Owner{}), "GPU-1"), want: Wrong},
		"a replica":                                   {point: on(allocation(10, .5, ann), "GPU-2::0")},
		"a free replica":                              {point: on(allocation(10, 0, Owner{}), "GPU-2::1")},
		"a replica is not the whole":                  {point: on(allocation(10, 1, ann), "GPU-2::0"), want: Wrong},
		"a device of two owners: on usage, neither":   {point: on(usage(10, Owner{}), "GPU-3")},
		"a device of two owners: in allocation, each": {point: on(allocation(10, 1, bob), "GPU-3")},
		"a device that is gone":                       {point: on(usage(24, Owner{}), "GPU-1/7"), want: Stale},
		"a device that is gone, by its other name":    {point: on(allocation(24, 0, Owner{}), "a/MIG-x"), want: Stale},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge([]Point{tc.point}, l, Rules{Interval: 3 * time.Second, Slack: time.Second})
			if tc.want == "" {
				assert.Empty(t, got.Findings)
				return
			}
			require.Len(t, got.Findings, 1)
			assert.Equal(t, tc.want, got.Findings[0].Kind)
		})
	}
}

// Between two owners there may have been a moment at which it was free, and a
// look that comes late blames nothing.
func TestLedgerDoesNotBlameWhatItCannotKnow(t *testing.T) {
	l := NewLedger()
	observe(l, 0, "GPU-1", by(ann))
	observe(l, 10, "GPU-1", by(bob))
	rules := Rules{Interval: time.Second}
	assert.Zero(t, Judge([]Point{allocation(5, 1, ann), allocation(5, 1, bob), allocation(5, 0, Owner{})}, l, rules).Wrong)
	assert.Equal(t, 1, Judge([]Point{allocation(12, 0, Owner{})}, l, rules).Wrong)
	assert.Equal(t, []Placement{
		{Device: "GPU-1", Node: "a", Owner: ann, At: at(0)},
		{Device: "GPU-1", Node: "a", Owner: bob, At: at(0)},
	}, l.Placements())
	assert.Equal(t, map[string]State{"GPU-1": by(bob)}, l.Now())
}
