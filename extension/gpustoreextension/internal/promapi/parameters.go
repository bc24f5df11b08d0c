// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package promapi // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/promapi"

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

var (
	// noTime as a default makes a parameter mandatory.
	noTime = time.Time{}.Add(-1)
	// unbounded is what store.Selection calls so.
	unbounded = time.Time{}
)

// furthest bounds times, in seconds from 1970, so that nothing overflows that
// calculates with them in nanoseconds.
const furthest = 1 << 33 // the year 2242

// timeOf reads a time: seconds since 1970, or RFC 3339.
func timeOf(r *http.Request, name string, missing time.Time) (time.Time, error) {
	text := r.Form.Get(name)
	if text == "" {
		if missing.Equal(noTime) {
			return time.Time{}, store.Errorf(store.BadQuery, "invalid parameter %q: it is missing", name)
		}
		return missing, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(seconds) {
		// Clients write the ends of time as far as their language goes.
		whole, part := math.Modf(max(-furthest, min(furthest, seconds)))
		return time.Unix(int64(whole), int64(math.Round(part*1000))*int64(time.Millisecond)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, store.Errorf(store.BadQuery, "invalid parameter %q: cannot parse %.100q to a valid timestamp", name, text)
	}
	switch seconds := t.Unix(); {
	case seconds < -furthest:
		t = time.Unix(-furthest, 0)
	case seconds > furthest:
		t = time.Unix(furthest, 0)
	}
	return t.UTC(), nil
}

// durationOf reads a positive duration: seconds, or as in PromQL.
func durationOf(r *http.Request, name string) (time.Duration, error) {
	text := r.Form.Get(name)
	d := time.Duration(0)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(seconds) || seconds > math.MaxInt64/float64(time.Second) {
			return 0, store.Errorf(store.BadQuery, "invalid parameter %q: %.100q is out of range", name, text)
		}
		d = time.Duration(max(seconds, 0) * float64(time.Second))
	} else if parsed, err := model.ParseDuration(text); err == nil {
		d = time.Duration(parsed)
	} else {
		return 0, store.Errorf(store.BadQuery, "invalid parameter %q: cannot parse %.100q to a valid duration", name, text)
	}
	if d <= 0 {
		return 0, store.Errorf(store.BadQuery, "invalid parameter %q: it must be longer than 0", name)
	}
	return d, nil
}

// limitOf reads the most that the client wants; 0 is all.
func limitOf(r *http.Request) (int, error) {
	text := r.Form.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, store.Errorf(store.BadQuery, "invalid parameter %q: it is a whole number from 0 up", "limit")
	}
	return limit, nil
}
