// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package random has the simulator's pseudo-random numbers: functions of a seed, the
// same on every run.
package random

import (
	"fmt"
	"hash/fnv"
	"math"
)

// Mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on
// 64 bits with output that looks random for any input.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// Stream derives an independent random stream from a seed and a name.
func Stream(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return Mix(seed ^ h.Sum64())
}

// Unit maps 64 random bits to [0, 1).
func Unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// Noise is white noise in [-1, 1) at step k of a stream.
func Noise(s uint64, k int64) float64 { return 2*Unit(Mix(s+uint64(k))) - 1 }

// Smooth is value noise in [0, 1): random at the integers, smooth between.
func Smooth(s uint64, x float64) float64 {
	i := math.Floor(x)
	f := x - i
	f = f * f * (3 - 2*f)
	a, b := Unit(Mix(s+uint64(int64(i)))), Unit(Mix(s+uint64(int64(i)+1)))
	return a + (b-a)*f
}

// UUID formats 128 random bits of a stream in the layout of a UUID.
func UUID(s uint64) string {
	a, b := Mix(s), Mix(s+1)
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, (a>>16)&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

// Source is a sequence of random numbers; its zero value is one too.
type Source struct{ stream, drawn uint64 }

// NewSource is the sequence of a stream.
func NewSource(stream uint64) Source { return Source{stream: stream} }

// Float64 is the next number in [0, 1).
func (s *Source) Float64() float64 {
	s.drawn++
	return Unit(Mix(s.stream + s.drawn))
}

// Exp is the next number of an exponential distribution with mean 1.
func (s *Source) Exp() float64 { return -math.Log(1 - s.Float64()) }

// Normal is the next number of a normal distribution with mean 0 and deviation 1.
func (s *Source) Normal() float64 {
	return math.Sqrt(2*s.Exp()) * math.Cos(2*math.Pi*s.Float64())
}
