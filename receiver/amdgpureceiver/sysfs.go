// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/sysfs"
)

// Source is where readings come from.
type Source string

const (
	// SourceExporter reads the pages of AMD's Device Metrics Exporter.
	SourceExporter Source = "exporter"
	// SourceSysfs reads the files of the driver on this host.
	SourceSysfs Source = "sysfs"
)

// SourceConfig has the keys of the receiver that others do not have.
type SourceConfig struct {
	// Source is exporter or sysfs.
	Source Source `mapstructure:"source"`
	// SysfsRoot is where the host's sysfs is mounted. Identity of boards comes from it, and
	// with source sysfs all readings.
	SysfsRoot string `mapstructure:"sysfs_root"`
}

func defaultSource() SourceConfig {
	return SourceConfig{Source: SourceExporter, SysfsRoot: "/sys"}
}

// check reports what is wrong with the keys, given the others.
func (c *SourceConfig) check(other *scrape.Config) error {
	var errs []error
	switch c.Source {
	case SourceExporter:
	case SourceSysfs:
		if len(other.Endpoints) > 0 {
			errs = append(errs, errors.New("endpoints: is set with source: sysfs, which reads no exporter: remove it, or use source: exporter"))
		}
		if other.Kubernetes != nil {
			errs = append(errs, errors.New("kubernetes: is set with source: sysfs, which reads no exporter: remove it and set node_name, or use source: exporter"))
		}
	default:
		errs = append(errs, fmt.Errorf("source: is %q: use exporter or sysfs", c.Source))
	}
	if !filepath.IsAbs(c.SysfsRoot) {
		errs = append(errs, fmt.Errorf("sysfs_root: is %q: use an absolute path, such as /sys or /host/sys", c.SysfsRoot))
	}
	return errors.Join(errs...)
}

// local is the source of pages that reads the files of the driver.
func local(host *gpusysfs.Reader, logger *zap.Logger, unread metric.Int64Counter) *scrape.Local {
	var logged logonce.Causes
	reader := sysfs.New(host.Snapshot, func(u sysfs.Unread) {
		cause := string(u.Cause)
		unread.Add(context.Background(), 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("cause", cause))))
		if logged.First(cause, time.Now()) {
			logger.Warn("a file of the driver gives no reading, it is left out",
				zap.String("cause", cause), zap.String("file", u.Path), zap.String("remedy", sysfs.Causes[u.Cause]), zap.Error(u.Err))
		}
	})
	return &scrape.Local{Name: string(SourceSysfs), Page: func(ctx context.Context, memory []byte) ([]byte, error) {
		page, err := reader.Page(ctx, memory)
		if errors.Is(err, sysfs.ErrNoBoards) {
			err = scrape.ErrAbsent
		}
		return page, err
	}}
}

// driver is the driver in the place of the exporter, in texts.
func driver(e fetch.Exporter) fetch.Exporter {
	e.Program = "the driver amdgpu"
	e.Remedies = map[fetch.Outcome]string{
		fetch.Empty:    "no file of a board can be read: look at the causes in this log, and at dmesg for amdgpu",
		fetch.NoValue:  "the boards have no reading: look at dmesg for amdgpu",
		fetch.NoDevice: "the driver has no unique_id and no serial number of a board, as in guests and for older consumer boards: it cannot be identified",
	}
	return e
}

// firstReading is how long a start waits for the host's sysfs, which takes milliseconds
// unless a file blocks.
const firstReading = time.Second

// withHost is a receiver that knows the boards of the host.
type withHost struct {
	*scrape.Receiver
	host *gpusysfs.Reader
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// Start implements component.Component.
func (r *withHost) Start(ctx context.Context, h component.Host) error {
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.wg.Go(func() { r.host.Run(running) })
	// The boards must be known before the first page: without them it would have other
	// descriptions, or by serial numbers another hw.id, than the pages after it.
	waiting, cancel := context.WithTimeout(ctx, firstReading)
	defer cancel()
	r.host.Since(waiting, time.Now())
	if err := r.Receiver.Start(ctx, h); err != nil {
		stop()
		r.wg.Wait()
		return err
	}
	return nil
}

// Shutdown implements component.Component.
func (r *withHost) Shutdown(ctx context.Context) error {
	if r.stop != nil {
		r.stop()
		r.wg.Wait()
	}
	return r.Receiver.Shutdown(ctx)
}
