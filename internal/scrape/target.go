// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"net"
	"net/url"
	"strconv"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
)

// location is where an exporter is.
type location struct {
	url      string // identity among targets; its query may hold a token
	name     string // the URL for people, without query
	job      string // Prometheus' label job
	instance string // host:port, its label instance
	exporter devicemap.Exporter
}

func locate(u *url.URL, job string) location {
	l := location{job: job, url: u.String(), name: u.Scheme + "://" + u.Host + u.Path, instance: u.Host}
	l.exporter.Address, l.exporter.Port = hostPort(u)
	return l
}

func hostPort(u *url.URL) (string, int64) {
	if port, err := strconv.ParseInt(u.Port(), 10, 64); err == nil {
		return u.Hostname(), port
	}
	port, err := net.LookupPort("tcp", u.Scheme)
	if err != nil {
		port = 0
	}
	return u.Hostname(), int64(port)
}

// target is one exporter: its state, and what was logged about it.
type target struct {
	location

	mu          sync.Mutex // over reading, never over I/O
	reader      *pagetext.Reader
	mapping     *devicemap.Target
	devices     int
	unknown     int  // fields that were counted
	left        bool // it is no target any more, and its state may be another's
	scrapes     outcomeLog
	lines       outcomeLog
	limits      outcomeLog
	pipeline    outcomeLog
	missing     outcomeLog
	doubts      outcomeLog
	repeats     bool // duplicate series on the page were logged
	implausible bool // values that no device can have were logged
	long        bool // samples over a limit of a line were logged
	unnamed     bool // rows without a device were logged
	renamed     outcomeLog
}

// leave ends a target: a scrape that still runs emits nothing any more. It returns
// the numbers of devices and of unknown fields that the target was counted with.
func (t *target) leave() (devices, unknown int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	devices, unknown = t.devices, t.unknown
	t.devices, t.unknown, t.left = 0, 0, true
	return devices, unknown
}

// moved is a target that was left, back at a location with the same URL. The old
// one may still forward its last scrape, and log how that went: it keeps outcome
// logs of its own.
func (t *target) moved(at location) *target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &target{
		location: at, reader: t.reader, mapping: t.mapping,
		scrapes: t.scrapes.clone(), lines: t.lines.clone(), limits: t.limits.clone(), pipeline: t.pipeline.clone(), repeats: t.repeats, long: t.long, implausible: t.implausible,
		missing: t.missing.clone(), doubts: t.doubts.clone(), unnamed: t.unnamed, renamed: t.renamed.clone(),
	}
}
