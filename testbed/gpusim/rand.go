// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"hash/fnv"
	"math"
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on
// 64 bits whose output looks random for any input.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// stream derives an independent random stream from a seed and a name.
func stream(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(seed ^ h.Sum64())
}

// unit maps 64 random bits to [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// noise is white noise in [-1, 1) at step k of a stream.
func noise(s uint64, k int64) float64 { return 2*unit(mix(s+uint64(k))) - 1 }

// smooth is value noise in [0, 1): random at the integers, smooth between.
func smooth(s uint64, x float64) float64 {
	i := math.Floor(x)
	f := x - i
	f = f * f * (3 - 2*f)
	a, b := unit(mix(s+uint64(int64(i)))), unit(mix(s+uint64(int64(i)+1)))
	return a + (b-a)*f
}

// uuidFrom formats 128 random bits of a stream in the layout of a UUID.
func uuidFrom(s uint64) string {
	a, b := mix(s), mix(s+1)
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, (a>>16)&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}
