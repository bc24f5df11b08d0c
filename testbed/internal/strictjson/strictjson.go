// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package strictjson is the JSON of the simulators' configurations and HTTP APIs.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// limit is how many bytes Decode reads.
const limit = 8 << 20

// Duration is a time.Duration that JSON writes as "1m30s"; plain numbers are
// read as seconds.
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads text such as "90s", or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var s float64
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("duration %s: write it as \"90s\" or as a number of seconds", b)
		}
		*d = Duration(s * float64(time.Second))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: write it as \"90s\" or as a number of seconds", s)
	}
	*d = Duration(v)
	return nil
}

// Decode decodes exactly one JSON value without unknown keys.
func Decode(r io.Reader, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Reply writes a value as indented JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// Refuse writes the reason why a request cannot be done.
func Refuse(w http.ResponseWriter, status int, err error) {
	Reply(w, status, map[string]string{"error": err.Error()})
}
