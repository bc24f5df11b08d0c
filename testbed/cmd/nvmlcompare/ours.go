// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// once is what otelcol-gpu-nvml -once prints, as far as it is compared.
type once struct {
	System struct {
		Return  int      `json:"r"`
		Error   string   `json:"error"`
		Missing []string `json:"missing"`
		Driver  string   `json:"driver"`
	} `json:"system"`
	Boards []struct {
		Thread string   `json:"thread"`
		Return int      `json:"r"`
		Error  string   `json:"error"`
		Lost   bool     `json:"lost"`
		UUID   string   `json:"uuid"`
		Name   string   `json:"name"`
		Serial string   `json:"serial"`
		VBIOS  string   `json:"vbios"`
		PCI    string   `json:"pci"`
		Minor  *float64 `json:"minor"`
		MIG    *struct {
			Current float64 `json:"current"`
			Pending float64 `json:"pending"`
		} `json:"mig"`
		Values    []reading `json:"values"`
		Instances []struct {
			GI      int `json:"gi"`
			Compute []struct {
				CI int `json:"ci"`
			} `json:"compute"`
			Values []reading `json:"values"`
		} `json:"instances"`
	} `json:"boards"`
	Calls []call `json:"calls"`
}

type reading struct {
	Name   string      `json:"n"`
	Row    string      `json:"w"`
	Value  json.Number `json:"v"`
	Return int         `json:"r"`
}

// call is one of the library, with its return and what it took in µs.
type call struct {
	Name   string  `json:"c"`
	Return int     `json:"r"`
	Micros float64 `json:"us"`
}

// readOnce reads the output of otelcol-gpu-nvml -once.
func readOnce(text []byte) (once, side, error) {
	var o once
	if err := json.Unmarshal(text, &o); err != nil {
		return o, nil, fmt.Errorf("otelcol-gpu-nvml -once: %w", err)
	}
	if len(o.System.Missing) > 0 {
		return o, nil, fmt.Errorf("otelcol-gpu-nvml -once: no library: %s", strings.Join(o.System.Missing, "; "))
	}
	if o.System.Return != 0 {
		return o, nil, fmt.Errorf("otelcol-gpu-nvml -once: nvmlInit returned %d (%s)", o.System.Return, o.System.Error)
	}
	s := side{}
	s.set("", "driver", value{text: o.System.Driver})
	for _, b := range o.Boards {
		if b.Return != 0 || b.Lost || b.UUID == "" {
			continue // compare reports it as absent
		}
		for name, text := range map[string]string{"uuid": b.UUID, "name": b.Name, "serial": b.Serial, "vbios": b.VBIOS, "pci": b.PCI} {
			if text != "" {
				s.set(b.UUID, name, value{text: text})
			}
		}
		if b.Minor != nil {
			s.set(b.UUID, "minor", value{number: *b.Minor})
		}
		if b.MIG != nil {
			s.set(b.UUID, "mig.current", value{number: b.MIG.Current})
			s.set(b.UUID, "mig.pending", value{number: b.MIG.Pending})
		}
		s.readings(b.UUID, b.Values)
		var layout []string
		for _, i := range b.Instances {
			for _, c := range i.Compute {
				layout = append(layout, fmt.Sprintf("%d/%d", i.GI, c.CI))
			}
			s.readings(b.UUID+"/"+strconv.Itoa(i.GI), i.Values)
		}
		if len(layout) > 0 {
			slices.Sort(layout)
			s.set(b.UUID, "layout", value{text: strings.Join(layout, " ")})
		}
	}
	return o, s, nil
}

func (s side) readings(device string, all []reading) {
	for _, r := range all {
		n, err := r.Value.Float64()
		switch {
		case r.Return != 0 || err != nil || r.Row != "" && r.Row != "0":
		case r.Name == "clock.reasons":
			for bit, name := range reasonNames {
				s.set(device, "clock.reasons."+name, value{number: float64(uint64(n) >> bit & 1)})
			}
		default:
			s.set(device, r.Name, value{number: n})
		}
	}
}

// readPage takes the quantities off a Prometheus page of the collector.
func readPage(families map[string]*dto.MetricFamily) side {
	s := side{}
	for _, q := range quantities {
		family, labels, _ := strings.Cut(q.page, " ")
		label, wanted, _ := strings.Cut(labels, "=")
		for _, m := range families[family].GetMetric() {
			device := collector.Label(m, "hw_id")
			if device == "" || label != "" && collector.Label(m, label) != wanted {
				continue
			}
			s.set(device, "uuid", value{text: strings.SplitN(device, "/", 2)[0]})
			s.set(device, q.name, value{number: collector.Value(m) * q.factor})
		}
	}
	return s
}
