// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"hash/maphash"
	"maps"
	"sync/atomic"
)

// shards bounds what a change copies: one part of this many.
const shards = 256

var seed = maphash.MakeSeed()

// index is a map that is read without a lock. A change replaces the shards that
// it concerns; writers take turns.
type index[V any] struct {
	shards [shards]atomic.Pointer[map[string]V]
}

func (x *index[V]) get(key string) (v V) {
	if m := x.shards[shard(key)].Load(); m != nil {
		return (*m)[key]
	}
	return v
}

// update calls change for each of keys with the value that is there; what it
// returns takes its place, or nothing if keep is false.
func (x *index[V]) update(keys []string, change func(key string, old V) (v V, keep bool)) {
	var fresh [shards]map[string]V
	for _, key := range keys {
		i := shard(key)
		if fresh[i] == nil {
			fresh[i] = map[string]V{}
			if m := x.shards[i].Load(); m != nil {
				fresh[i] = maps.Clone(*m)
			}
		}
		if v, keep := change(key, fresh[i][key]); keep {
			fresh[i][key] = v
		} else {
			delete(fresh[i], key)
		}
	}
	for i := range fresh {
		if fresh[i] != nil {
			x.shards[i].Store(&fresh[i])
		}
	}
}

func (x *index[V]) each(f func(key string, v V)) {
	for i := range x.shards {
		if m := x.shards[i].Load(); m != nil {
			for key, v := range *m {
				f(key, v)
			}
		}
	}
}

func shard(key string) int { return int(maphash.String(seed, key) % shards) }
