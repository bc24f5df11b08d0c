// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var start = time.Unix(1_700_000_000, 0)

func TestSeriesOfASenderAndOfAll(t *testing.T) {
	g := New(Limits{Series: 5, SeriesPerSender: 3, ItemsPerMinute: 100})
	a := g.Sender("a", start)
	for i := range uint64(3) {
		assert.Equal(t, Admitted, a.Point(i, 0, 1))
	}
	assert.Equal(t, OverSeriesOfSender, a.Point(3, 0, 1))
	assert.Equal(t, Admitted, a.Point(0, 0, 1), "what is known goes on")
	assert.Equal(t, Admitted, g.Sender("b", start).Point(0, 0, 2), "the same fingerprint of another sender is another series")
	assert.Equal(t, OverSeries, g.Sender("c", start).Point(0, 0, 1))
	assert.Equal(t, 5, g.Series())
}

func TestAWeightCountsWhole(t *testing.T) {
	g := New(Limits{Series: 100, SeriesPerSender: 17, ItemsPerMinute: 100})
	s := g.Sender("a", start)
	assert.Equal(t, OverSeriesOfSender, s.Point(1, 0, 18))
	assert.Equal(t, Admitted, s.Point(2, 0, 17))
	assert.Equal(t, OverSeriesOfSender, s.Point(3, 0, 1))
}

// One series of Prometheus that is written in two ways is there once: as it came
// first, until that has not come for the window.
func TestTwoWaysToWriteASeries(t *testing.T) {
	g := New(Limits{Series: 10, SeriesPerSender: 10, ItemsPerMinute: 100})
	at := func(minutes int) *Sender { return g.Sender("a", start.Add(time.Duration(minutes)*time.Minute)) }
	assert.Equal(t, Admitted, at(0).Point(1, 7, 1))
	assert.Equal(t, Ambiguous, at(0).Point(1, 8, 1))
	assert.Equal(t, Admitted, at(0).Point(1, 7, 1))
	assert.Equal(t, Ambiguous, g.Sender("b", start).Point(1, 8, 1), "also of another sender")
	assert.Equal(t, Admitted, g.Sender("b", start).Point(1, 7, 1))
	assert.Equal(t, Ambiguous, at(6).Point(1, 8, 1))
	assert.Equal(t, Admitted, at(12).Point(1, 8, 1))
	assert.Equal(t, Ambiguous, at(12).Point(1, 7, 1))
	assert.Equal(t, 1, g.Series())

	assert.True(t, g.Type(1, 5))
	assert.True(t, g.Type(1, 6), "nothing of it was admitted yet")
	g.Keep(1, 5)
	assert.False(t, g.Type(1, 6))
	at(18)
	assert.False(t, g.Type(1, 6))
	at(24)
	assert.True(t, g.Type(1, 6))
}

func TestTheWindowSlides(t *testing.T) {
	g := New(Limits{Series: 10, SeriesPerSender: 2, ItemsPerMinute: 100})
	at := func(minutes int) *Sender { return g.Sender("a", start.Add(time.Duration(minutes)*time.Minute)) }
	at(0).Point(1, 0, 1)
	at(0).Point(2, 0, 1)
	assert.Equal(t, OverSeriesOfSender, at(4).Point(3, 0, 1))
	assert.Equal(t, Admitted, at(6).Point(1, 0, 1))
	assert.Equal(t, OverSeriesOfSender, at(7).Point(3, 0, 1), "series 2 was there in the half before")
	assert.Equal(t, Admitted, at(12).Point(3, 0, 1), "series 2 is over")
	assert.Equal(t, OverSeriesOfSender, at(12).Point(2, 0, 1))
	assert.Equal(t, 2, g.Series())
	at(60)
	assert.Zero(t, g.Series())
	at(-60) // a clock that was set back
	assert.Equal(t, Admitted, at(-60).Point(9, 0, 1))
}

func TestItemsOfAMinute(t *testing.T) {
	g := New(Limits{Series: 10, SeriesPerSender: 10, ItemsPerMinute: 2})
	s := g.Sender("a", start)
	assert.Equal(t, Admitted, s.Item())
	assert.Equal(t, Admitted, s.Point(1, 0, 1))
	assert.Equal(t, OverRate, s.Item())
	assert.Equal(t, OverRate, s.Point(2, 0, 1), "also of a series that would have room")
	assert.Equal(t, Admitted, g.Sender("b", start).Item())
	assert.Equal(t, Admitted, g.Sender("a", start.Add(time.Minute)).Item())
}

// What is given back in its minute may be sent again, also by a sender that shares its limits.
func TestGiveBack(t *testing.T) {
	g := New(Limits{Series: 10, SeriesPerSender: 10, ItemsPerMinute: 2})
	for _, name := range []string{"a", "shared"} {
		if name == "shared" {
			for i := range maxSenders {
				g.Sender(fmt.Sprint(i), start)
			}
		}
		s := g.Sender(name, start)
		s.Item()
		var sent Sent
		s.Note(&sent)
		s.Point(1, 0, 1)
		s.End(1, 0, 1)
		s.Note(nil)
		g.GiveBack(name, &sent, start.Add(-time.Minute))
		assert.Equal(t, OverRate, s.Item(), "of another minute")
		g.GiveBack(name, &sent, start)
		assert.Equal(t, Admitted, s.Item())
		assert.Equal(t, OverRate, s.Item())
		assert.Equal(t, Admitted, s.End(1, 0, 1), "the end comes again")
	}
}

// The end of a known series uses up nothing, once for each time that it goes on. Every other
// end counts as a point does.
func TestEnds(t *testing.T) {
	g := New(Limits{Series: 10, SeriesPerSender: 2, ItemsPerMinute: 4})
	s := g.Sender("a", start)
	for _, fingerprint := range []uint64{1, 2} {
		assert.Equal(t, Admitted, s.Point(fingerprint, 7, 1))
	}
	assert.Equal(t, OverSeriesOfSender, s.End(3, 7, 1), "of a series that was not there")
	assert.Equal(t, Ambiguous, s.End(1, 8, 1), "written in another way")
	assert.Equal(t, OverRate, s.Item(), "both counted")
	assert.Equal(t, Admitted, s.End(1, 7, 1))
	assert.Equal(t, OverRate, s.End(1, 7, 1), "again")
	assert.Equal(t, 2, g.Series(), "what ends makes no room: else series could follow each other without end")

	later := start.Add(6 * time.Minute)
	s = g.Sender("a", later)
	assert.Equal(t, Admitted, s.Point(1, 7, 1), "it goes on")
	for range 3 {
		s.Item()
	}
	assert.Equal(t, Admitted, s.End(1, 7, 1))
	assert.Equal(t, Admitted, s.End(2, 7, 1), "of the half before")
}

func TestSendersAreBounded(t *testing.T) {
	g := New(Limits{Series: 1 << 20, SeriesPerSender: 2, ItemsPerMinute: 1 << 20})
	for i := range maxSenders {
		g.Sender(fmt.Sprint(i), start).Point(1, 0, 1)
	}
	assert.Equal(t, Admitted, g.Sender("x", start).Point(1, 0, 1))
	assert.Equal(t, Admitted, g.Sender("y", start).Point(2, 0, 1))
	assert.Equal(t, OverSeriesOfSender, g.Sender("z", start).Point(3, 0, 1), "those beyond share the limits of one")
	assert.Equal(t, Admitted, g.Sender("7", start).Point(2, 0, 1))
	assert.Equal(t, maxSenders, g.Senders())
	g.Sender("new", start.Add(time.Hour))
	assert.Equal(t, 1, g.Senders())
	assert.Zero(t, g.Series())
}
