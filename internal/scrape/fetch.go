// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	commonconfig "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// fetcher asks exporters for their pages.
type fetcher struct {
	client  *http.Client
	header  http.Header
	timeout time.Duration
	limit   int64 // of a page, in bytes
	unzip   sync.Pool
}

// firstRead is the most memory that is asked for before any of a page was read.
const firstRead = 1 << 20

func newFetcher(cfg *promconfig.ScrapeConfig, userAgent string) (*fetcher, error) {
	client, err := commonconfig.NewClientFromConfig(cfg.HTTPClientConfig, cfg.JobName, commonconfig.WithUserAgent(userAgent))
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	if cfg.HTTPClientConfig.FollowRedirects {
		client.CheckRedirect = fetch.FollowWithin
	}
	f := &fetcher{
		client:  client,
		timeout: time.Duration(cfg.ScrapeTimeout),
		limit:   int64(cfg.BodySizeLimit),
		header: http.Header{
			"Accept":          {"text/plain;version=0.0.4;q=0.9,*/*;q=0.1"},
			"Accept-Encoding": {"identity"},
			"X-Prometheus-Scrape-Timeout-Seconds": {
				strconv.FormatFloat(time.Duration(cfg.ScrapeTimeout).Seconds(), 'f', -1, 64),
			},
		},
	}
	if cfg.EnableCompression {
		f.header.Set("Accept-Encoding", "gzip")
	}
	if f.limit <= 0 { // as in Prometheus
		f.limit = math.MaxInt64
	}
	return f, nil
}

// fetch gets a page. It asks for memory when an answer comes, not before: an
// exporter that hangs holds none. It returns that memory, or more where that was
// not enough, on an error too.
func (f *fetcher) fetch(ctx context.Context, url string, memory func() []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = f.header.Clone() // clients may add to it
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	// What is left of a page that is too large is not read: the connection closes.
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can serve again
		return nil, &fetch.StatusError{Code: resp.StatusCode, Text: resp.Status}
	}
	zipped := resp.Header.Get("Content-Encoding") == "gzip"
	if !zipped && resp.ContentLength > f.limit {
		return nil, fetch.ErrTooLarge
	}
	buf := memory()[:0]
	if zipped {
		return f.readGzip(resp.Body, buf)
	}
	if resp.ContentLength > 0 {
		// And one more to find the end. The length is a promise: beyond firstRead,
		// memory is asked for as the page comes.
		buf = slices.Grow(buf, int(min(resp.ContentLength, firstRead))+1)
	}
	return f.read(resp.Body, buf)
}

func (f *fetcher) readGzip(body io.Reader, buf []byte) ([]byte, error) {
	unzip, _ := f.unzip.Get().(*gzip.Reader)
	if unzip == nil {
		unzip = new(gzip.Reader)
	}
	defer f.unzip.Put(unzip)
	if err := unzip.Reset(body); err != nil {
		return buf, err
	}
	return f.read(unzip, buf)
}

// read reads to the end or to the limit.
func (f *fetcher) read(body io.Reader, buf []byte) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, 64<<10)
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > f.limit:
			return buf, fetch.ErrTooLarge
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }
