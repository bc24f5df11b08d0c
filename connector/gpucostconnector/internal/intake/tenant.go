// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// tenantKeys are the keys of tenants, and when a resource had each last.
type tenantKeys struct {
	keys   []string
	seen   []int64
	warned []bool
	owners int64 // when there was an owner last
}

func newTenantKeys(keys []string) tenantKeys {
	return tenantKeys{keys: keys, seen: make([]int64, len(keys)), warned: make([]bool, len(keys))}
}

// of is the tenant of a resource, as it is written there, and the place of its key in the
// list: the length of that where there is no tenant.
func (t *tenantKeys) of(attrs pcommon.Map, now int64) (tenant string, rank int) {
	t.owners = now
	rank = len(t.keys)
	for i, key := range t.keys {
		if t.seen[i] == 0 {
			t.seen[i] = now // the hour begins with the first owner
		}
		if rank < len(t.keys) && now-t.seen[i] < minute {
			continue
		}
		s := tenantOf(attrs, key)
		if s == "" {
			continue
		}
		t.seen[i] = now
		if rank == len(t.keys) {
			tenant, rank = s, i
		}
	}
	return tenant, rank
}

// invisible is true for what is removed from names: a tenant of that alone is absent.
func invisible(r rune) bool { return unicode.IsSpace(r) || safetext.IsHidden(r) }

func (t *tenantKeys) unused(now int64) (keys []string) {
	for i, key := range t.keys {
		if !t.warned[i] && t.seen[i] != 0 && t.owners-t.seen[i] >= hour && now-t.owners < hour {
			t.warned[i] = true
			keys = append(keys, key)
		}
	}
	return keys
}
