// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import "context"

// Hold keeps what queries of one request took until its answer is written: a
// result is in memory as long as its reader takes.
type Hold struct{ releases []func() }

type holdKey struct{}

// WithHold returns a context in which queries, one after the other, keep their
// turns until Release.
func WithHold(ctx context.Context) (context.Context, *Hold) {
	h := &Hold{}
	return context.WithValue(ctx, holdKey{}, h), h
}

// Release ends what is held.
func (h *Hold) Release() {
	for _, release := range h.releases {
		release()
	}
	h.releases = nil
}

// KeepOrRelease leaves release to the context's Hold, or calls it where there is
// none.
func KeepOrRelease(ctx context.Context, release func()) {
	if h, ok := ctx.Value(holdKey{}).(*Hold); ok {
		h.releases = append(h.releases, release)
		return
	}
	release()
}
