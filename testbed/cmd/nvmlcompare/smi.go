// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// value is what one side has of a quantity: a number, or a text.
type value struct {
	text   string // of a quantity that is no number
	number float64
	// unit is what nvidia-smi prints it in, in the unit of the number, and step the least that
	// it can print: of 300.00 W they are 1000 and 10 (mW).
	unit, step float64
}

func (v value) String() string {
	if v.text != "" {
		return strconv.Quote(v.text)
	}
	return strconv.FormatFloat(v.number, 'f', -1, 64)
}

// side is what one side has, by device (a board's UUID, or with "/" and the GPU instance)
// and name of the quantity. What is the node's is under "".
type side map[string]map[string]value

func (s side) set(device, name string, v value) {
	if s[device] == nil {
		s[device] = map[string]value{}
	}
	s[device][name] = v
}

// node is an element of the XML.
type node struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	Children []node `xml:",any"`
}

// all returns the elements of a path, and find its text.
func (n node) all(path string) []node {
	name, rest, deeper := strings.Cut(path, "/")
	var found []node
	for _, child := range n.Children {
		switch {
		case child.XMLName.Local != name:
		case deeper:
			found = append(found, child.all(rest)...)
		default:
			found = append(found, child)
		}
	}
	return found
}

func (n node) find(path string) (string, bool) {
	found := n.all(path)
	if len(found) == 0 {
		return "", false
	}
	text := strings.TrimSpace(found[0].Text)
	return text, known(text)
}

// known is whether a text is a reading. nvidia-smi writes words where it has none.
func known(text string) bool {
	for _, word := range []string{"N/A", "Unknown", "ERR!", "Requested functionality", "Insufficient Permissions", "GPU is lost", "GPU requires reset", "Function Not Found"} {
		if strings.Contains(text, word) {
			return false
		}
	}
	return text != ""
}

// readSMI reads the output of nvidia-smi -q -x.
func readSMI(r io.Reader) (side, error) {
	var log node
	decoder := xml.NewDecoder(r)
	if err := decoder.Decode(&log); err != nil {
		return nil, fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	if log.XMLName.Local != "nvidia_smi_log" {
		return nil, fmt.Errorf("nvidia-smi -q -x: <%s> and not <nvidia_smi_log>", log.XMLName.Local)
	}
	s := side{}
	if driver, ok := log.find("driver_version"); ok {
		s.set("", "driver", value{text: driver})
	}
	for _, gpu := range log.all("gpu") {
		uuid, ok := gpu.find("uuid")
		if !ok {
			return nil, fmt.Errorf("nvidia-smi -q -x: a GPU has no UUID: is the library that nvidia-smi loads the driver's?")
		}
		s.set(uuid, "uuid", value{text: uuid})
		for _, q := range quantities {
			if v, ok := gpu.read(q); ok {
				s.set(uuid, q.name, v)
			}
		}
		gpu.instances(s, uuid)
	}
	return s, nil
}

// instances adds the layout, and what the instances have of their own.
func (n node) instances(s side, uuid string) {
	var layout []string
	for _, instance := range n.all("mig_devices/mig_device") {
		gi, ok := instance.find("gpu_instance_id")
		if !ok {
			continue
		}
		ci, _ := instance.find("compute_instance_id")
		layout = append(layout, gi+"/"+ci)
		for _, q := range quantities {
			if v, ok := instance.read(q); ok && strings.HasPrefix(q.name, "memory.") {
				s.set(uuid+"/"+gi, q.name, v)
			}
		}
	}
	if len(layout) > 0 {
		slices.Sort(layout)
		s.set(uuid, "layout", value{text: strings.Join(layout, " ")})
	}
}

// read returns a quantity of a <gpu> or a <mig_device>.
func (n node) read(q quantity) (value, bool) {
	for _, path := range q.smi {
		var sum value
		complete := true
		for part := range strings.SplitSeq(path, " + ") {
			text, ok := n.find(part)
			if !ok {
				complete = false
				break
			}
			v := parse(q, text)
			sum.text, sum.unit, sum.step = v.text, v.unit, v.step
			sum.number += v.number
		}
		if complete {
			return sum, true
		}
	}
	return value{}, false
}

// texts are the quantities that are no numbers, whatever they look like.
var texts = []string{"name", "serial", "vbios", "pci"}

// words are numbers that nvidia-smi has words for; actions are those of recovery.action.
var (
	words   = map[string]float64{"Enabled": 1, "Disabled": 0, "Active": 1, "Not Active": 0, "Yes": 1, "No": 0}
	actions = map[string]float64{"None": 0, "Reset": 1, "Reboot": 2, "Drain P2P": 3, "Drain and Reset": 4}
	units   = map[string]float64{"MiB": 1 << 20, "W": 1000, "C": 1, "MHz": 1, "%": 1}
)

func parse(q quantity, text string) value {
	if slices.Contains(texts, q.name) {
		return value{text: text}
	}
	if q.name == "recovery.action" {
		if n, ok := actions[text]; ok {
			return value{number: n}
		}
		return value{text: text}
	}
	if n, ok := words[text]; ok {
		return value{number: n}
	}
	digits, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseFloat(digits, 64)
	factor := units[unit]
	if err != nil || unit != "" && factor == 0 {
		return value{text: text}
	}
	if unit == "" {
		return value{number: n}
	}
	v := value{number: n * factor, unit: factor, step: factor}
	if _, decimals, ok := strings.Cut(digits, "."); ok {
		for range decimals {
			v.step /= 10
		}
	}
	if factor == 1 && v.step == 1 {
		v.step = 0 // NVML has the same unit: nothing is rounded
	}
	return v
}
