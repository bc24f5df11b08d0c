// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
)

// auditKinds are faults of the webhooks' audit file alone. The gateway goes on
// as though nothing were: deliveries are made, and their records wait in memory.
func auditKinds() []*Kind {
	of := func(name string, block, back func(path string) error) *Kind {
		failed := counter{name: "otelcol_exporter_webhook_audit_failures"}
		return &Kind{name: "gateway_audit_" + name, place: onGateway, harmless: true, weight: 2, recovery: reconnect, counts: failed, begin: func(s *Scene, f *Fault) (func() error, error) {
			if err := block(s.Audit); err != nil {
				return nil, err
			}
			// One record that still gets into the file, so that the next checkpoint
			// finds it gone; and one that has to wait.
			if err := sendEvent(s.Collectors.Gateway, f, 1); err != nil {
				return nil, err
			}
			time.Sleep(2 * pace.Interval)
			return func() error { return back(s.Audit) }, sendEvent(s.Collectors.Gateway, f, 2)
		}}
	}
	away := func(path string) string { return filepath.Dir(path) + "-away" }
	return []*Kind{
		// As a rotation by another does, and a folder takes the file's place:
		// none can be made there, even by root.
		of("blocked", blockAudit, os.Remove),
		// As a volume that is mounted again.
		of("away", func(path string) error { return os.Rename(filepath.Dir(path), away(path)) },
			func(path string) error { return os.Rename(away(path), filepath.Dir(path)) }),
	}
}

// blockAudit renames an audit file as a full one is and puts a folder in its
// place. The writer may rotate or make the file again at the same moment.
func blockAudit(path string) error {
	for tries := 0; tries < 100; tries++ {
		ext := filepath.Ext(path)
		full, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext)
		if err != nil {
			return err
		}
		to := fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(path, ext), len(full)+1, ext)
		// No rename, which would write over a file that was rotated just now.
		if err := os.Link(path, to); errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("%s comes back again and again", path)
}

// sendEvent sends an event to the gateway as an agent does; webhooks get it.
func sendEvent(gateway *process.Process, f *Fault, n int) error {
	ld := plog.NewLogs()
	resource := ld.ResourceLogs().AppendEmpty()
	a := resource.Resource().Attributes()
	a.PutStr(names.K8sClusterName, fleet.Cluster)
	a.PutStr(names.HwID, f.name)
	record := resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(names.EventXID)
	record.SetSeverityNumber(plog.SeverityNumberError)
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	record.Body().SetStr("sent by the test")
	id := fmt.Sprintf("%s-%d-%016x", f.name, n, f.rand.Uint64())
	record.Attributes().PutStr(names.GPUEventID, id)
	record.Attributes().PutStr(names.GPUEventKey, names.EventXID+"/"+id)
	record.Attributes().PutStr(names.GPUEventState, names.EventRaised)
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < reconnect; time.Sleep(pace.Interval / 4) {
		if post(gateway, "logs", body) == http.StatusOK {
			return nil
		}
	}
	return errors.New("the gateway takes no events")
}
