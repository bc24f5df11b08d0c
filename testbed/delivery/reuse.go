// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import "strconv"

// What testbed/chaos uses, which has collectors and events of its own.

// Wants reports whether the receiver's filter selects an event.
func (r *Receiver) Wants(e Event) bool { return r.windows.wants(e) }

// Configuration is the receiver's part of the webhook exporter's configuration,
// for a run of about so many events.
func (r *Receiver) Configuration(events int) map[string]any {
	profile := r.windows.profile
	queue := events
	if profile.queue > 0 {
		queue = max(10, int(profile.queue*float64(events)))
	}
	receiver := m{
		"url":     "http://" + address(r.port) + "/hook/secret-" + strconv.Itoa(r.port),
		"timeout": "1s", "workers": workers, "queue_size": queue,
	}
	if profile.events != nil {
		receiver["events"] = profile.events
	}
	if profile.minSeverity != "" {
		receiver["min_severity"] = profile.minSeverity
	}
	if profile.format != "" {
		receiver["format"] = profile.format
	}
	return receiver
}

// ReadAudit returns the records of the audit log at path, rotated files
// included, and how many lines of other kinds there are.
func ReadAudit(path string) ([]Record, map[string]int, error) {
	files, err := auditFiles(path)
	if err != nil {
		return nil, nil, err
	}
	return readRecords(files)
}

// SetAside are the files of audit logs that the collector did not continue.
func SetAside(path string) ([]string, error) { return setAside(path) }
