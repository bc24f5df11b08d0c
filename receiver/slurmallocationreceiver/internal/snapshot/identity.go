// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
)

// maxService is the length of service.name in bytes.
const maxService = 256

// Identity is what of a job is on telemetry.
type Identity struct {
	// Users: the user is.
	Users bool
	// Service is user_job, job, user_partition or partition.
	Service string
	// Names: the map can have the names of jobs, which are waited for as long as NameWait.
	Names    bool
	NameWait time.Duration
}

// job is the owner that a job is. Its service is decided once, and is the same after a restart of
// this process if the files are.
func (i *Identity) job(j *jobmap.Job, m *memory, now time.Time) owner.Job {
	if !m.decided {
		m.service, m.decided = i.service(j, now)
		m.service = safetext.Shorten(m.service, maxService)
	}
	o := owner.Job{
		Cluster: j.Cluster, ID: j.ID, User: j.User, Account: j.Account, Partition: j.Partition, Service: m.service,
	}
	if m.service != "" {
		o.Namespace = j.Account
	}
	if !i.Users {
		o.User = ""
	}
	return o
}

// service is service.name of a job, and whether that is decided. It is "" where what it is made of
// is not in the map.
func (i *Identity) service(j *jobmap.Job, now time.Time) (service string, decided bool) {
	if name := ofComment(j.Comment); name != "" {
		return name, true
	}
	switch i.Service {
	case "job":
		return j.ID, true
	case "partition":
		return j.Partition, true
	case "user_job":
		until := j.Start.Add(i.NameWait)
		switch {
		case !i.Names:
		case j.Name != "" && !j.NamedAt.After(until):
			return of(j.User, j.Name), true
		case !now.After(until) && !j.Start.After(now.Add(time.Minute)):
			return "", false
		}
	}
	return of(j.User, j.Partition), true
}

func of(user, what string) string {
	if user == "" || what == "" {
		return ""
	}
	return user + "/" + what
}

// ofComment is the name in service.name=<name>, a word of the job's comment.
func ofComment(comment string) string {
	for word := range strings.FieldsFuncSeq(comment, func(r rune) bool { return strings.ContainsRune(" \t\n,;", r) }) {
		if name, ok := strings.CutPrefix(word, "service.name="); ok {
			return safetext.Strip(name, maxService)
		}
	}
	return ""
}
