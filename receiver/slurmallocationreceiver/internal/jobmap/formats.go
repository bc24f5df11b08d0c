// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package jobmap

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// Format is how the files of a folder are named and written.
type Format struct {
	// Names: the folder has one of names beside the files.
	Names bool
	// is reports whether a name is that of a file of the map. Others are left alone.
	is func(name string) bool
	// Parse reads a file. The jobs of several files are joined by their ids.
	Parse func(name string, text []byte) ([]Job, error)
}

// Formats are the formats by name.
var Formats = map[string]*Format{
	"otelcol-gpu": {true, func(name string) bool { return strings.HasSuffix(name, ".json") }, parseOwn},
	// dcgm-exporter's indices are DCGM's: in the order of PCI addresses.
	"dcgm":     {false, isDevice, lines(true, false)},
	"ceems":    {false, isDevice, lines(false, false)},
	"jobstats": {false, func(name string) bool { return isDevice(name) || deviceid.IsMIG(name) }, lines(false, true)},
	"amd":      {false, isDevice, parseAMD},
}

// isDevice reports whether a name begins with a digit: <index> or <index>.<GPU instance>.
func isDevice(name string) bool { return name[0] >= '0' && name[0] <= '9' }

// own is a file of docs/examples/slurm.
type own struct {
	V         int             `json:"v"`
	Job       json.RawMessage `json:"job"`
	SLUID     string          `json:"sluid"`
	UID       *int64          `json:"uid"`
	User      string          `json:"user"`
	Account   string          `json:"account"`
	Partition string          `json:"partition"`
	QOS       string          `json:"qos"`
	Cluster   string          `json:"cluster"`
	Restarts  *uint32         `json:"restarts"`
	Comment   string          `json:"comment"`
	GPUs      string          `json:"gpus"`
	Visible   string          `json:"visible"`
}

func parseOwn(file string, text []byte) ([]Job, error) {
	want, err := jobID(strings.TrimSuffix(file, ".json"))
	if err != nil {
		return nil, refuse(BadName, "%q is no <job id>.json", file)
	}
	var o own
	if err := decode(text, &o); err != nil {
		return nil, err
	}
	if o.V != 1 {
		return nil, refuse(BadVersion, "v is %d, and this receiver reads 1", o.V)
	}
	j := Job{UID: -1}
	if j.ID, err = jobID(string(o.Job)); err != nil {
		return nil, err
	}
	if j.ID != want {
		return nil, refuse(BadID, "the file of job %s has job %s", want, j.ID)
	}
	for _, f := range []struct {
		key, text string
		to        *string
	}{
		{"user", o.User, &j.User}, {"account", o.Account, &j.Account}, {"partition", o.Partition, &j.Partition},
		{"qos", o.QOS, &j.QOS}, {"cluster", o.Cluster, &j.Cluster}, {"sluid", o.SLUID, &j.SLUID},
	} {
		if *f.to, err = name(f.key, f.text); err != nil {
			return nil, err
		}
	}
	if len(o.Comment) <= maxComment && utf8.ValidString(o.Comment) && !strings.ContainsRune(o.Comment, utf8.RuneError) {
		j.Comment = o.Comment // of users: it costs them nothing but a name of the service
	}
	if o.UID != nil && *o.UID >= 0 {
		j.UID = *o.UID
	}
	if o.Restarts != nil {
		j.Restarts = strconv.FormatUint(uint64(*o.Restarts), 10)
	}
	if j.Devices, err = devices(o.GPUs, o.Visible); err != nil {
		return nil, err
	}
	return []Job{j}, nil
}

// decode reads one JSON object and nothing behind it.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(into)
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil:
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return refuse(BadValue, "there is more than one JSON object")
		}
		return nil
	case errors.As(err, &shape) && shape.Field == "v":
		return refuse(BadVersion, "v is no number")
	case errors.As(err, &shape):
		return refuse(BadValue, "%s is a %s", shape.Field, shape.Value)
	case !utf8.Valid(text):
		return refuse(NotText, "the file is not UTF-8")
	}
	return refuse(HalfWritten, "the file is no JSON object")
}

// lines are files named after a device that have a job's id in each line, and behind it, with
// uid, the user's number.
func lines(byPCI, uid bool) func(string, []byte) ([]Job, error) {
	return func(file string, text []byte) ([]Job, error) {
		d, err := deviceOf(file, byPCI)
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(text) {
			return nil, refuse(NotText, "the file is not UTF-8")
		}
		var jobs []Job
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line) // of CRLF too
			if len(fields) == 0 {
				continue
			}
			j := Job{UID: -1, Devices: []Device{d}}
			if uid && len(fields) == 2 {
				n, err := strconv.ParseUint(fields[1], 10, 32)
				if err != nil {
					return nil, refuse(BadValue, "the user's number is none")
				}
				j.UID, fields = int64(n), fields[:1]
			}
			if len(fields) != 1 {
				return nil, refuse(BadID, "a line has %d words", len(fields))
			}
			if j.ID, err = jobID(fields[0]); err != nil {
				return nil, err
			}
			if len(jobs) == maxDevices {
				return nil, refuse(BadValue, "more than %d jobs have the device", maxDevices)
			}
			jobs = append(jobs, j)
		}
		return jobs, nil
	}
}

func deviceOf(file string, byPCI bool) (Device, error) {
	if deviceid.IsMIG(file) {
		return Device{Index: -1, UUID: file}, nil
	}
	number, instance, parts := strings.Cut(file, ".")
	n, ok := index(number)
	if parts {
		_, numbered := index(instance)
		ok = ok && numbered && byPCI
	}
	if !ok {
		return Device{}, refuse(BadName, "%q is no device", file)
	}
	return Device{Index: n, ByPCI: byPCI, Instance: instance}, nil
}

// parseAMD reads a file of AMD's Device Metrics Exporter: what the Prolog had in its environment.
func parseAMD(file string, text []byte) ([]Job, error) {
	d, err := deviceOf(file, false)
	if err != nil {
		return nil, err
	}
	var have map[string]any
	if err := decode(text, &have); err != nil {
		return nil, err
	}
	value := func(key string) string {
		switch v := have[key].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
		return ""
	}
	if value("SLURM_JOB_ID") == "" {
		return nil, nil // as it is between jobs
	}
	j := Job{UID: -1, Devices: []Device{d}}
	if j.ID, err = jobID(value("SLURM_JOB_ID")); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		key string
		to  *string
	}{
		{"SLURM_JOB_USER", &j.User}, {"SLURM_JOB_ACCOUNT", &j.Account},
		{"SLURM_JOB_PARTITION", &j.Partition}, {"SLURM_CLUSTER_NAME", &j.Cluster},
	} {
		if *f.to, err = name(f.key, value(f.key)); err != nil {
			return nil, err
		}
	}
	return []Job{j}, nil
}

// parseName reads a file of names: the job's name, the id of its array and that of the task, one
// per line. It is not complete before its third line ends.
func parseName(text []byte) (job, array, task string, complete bool) {
	lines := strings.SplitN(string(text), "\n", 4)
	if len(lines) < 4 || !utf8.Valid(text) {
		return "", "", "", false
	}
	job, err := name("name", lines[0])
	if err != nil || job == "" {
		return "", "", "", false
	}
	array, arrayErr := jobID(lines[1])
	if _, err := strconv.ParseUint(lines[2], 10, 32); err != nil || arrayErr != nil {
		return job, "", "", true
	}
	return job, array, lines[2], true
}
