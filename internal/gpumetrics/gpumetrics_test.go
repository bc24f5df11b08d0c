// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpumetrics

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// field is a field of a structure, as its declaration has it: how many of how many bytes.
type field struct {
	name  string
	bytes int
	count int
}

// The structures up to the energy, written from their declarations, and their sizes as a
// C compiler has them.
var header = []field{{"size", 2, 1}, {"format", 1, 1}, {"content", 1, 1}}

var common = append(header[:3:3], field{"hotspot", 2, 1}, field{"memory", 2, 1}, field{"vrsoc", 2, 1}, field{"power", 2, 1},
	field{"gfx", 2, 1}, field{"umc", 2, 1})

var structures = map[string]struct {
	content byte
	size    int
	fields  []field
}{
	"1.3": {3, 120, append(header[:3:3], field{"edge", 2, 1}, field{"hotspot", 2, 1}, field{"memory", 2, 1}, field{"vr", 2, 3},
		field{"gfx", 2, 1}, field{"umc", 2, 1}, field{"mm", 2, 1}, field{"power", 2, 1}, field{"energy", 8, 1})},
	"1.4":            {4, 288, append(common[:9:9], field{"vcn", 2, 4}, field{"energy", 8, 1})},
	"1.5":            {5, 360, append(common[:9:9], field{"vcn", 2, 4}, field{"jpeg", 2, 32}, field{"energy", 8, 1})},
	"1.6, the first": {6, 384, append(common[:9:9], field{"vcn", 2, 4}, field{"jpeg", 2, 32}, field{"energy", 8, 1})},
	"1.6":            {6, 1664, append(common[:9:9], field{"energy", 8, 1})},
	"1.7":            {7, 2208, append(common[:9:9], field{"bandwidth", 8, 1}, field{"energy", 8, 1})},
	"1.8":            {8, 3872, append(common[:9:9], field{"bandwidth", 8, 1}, field{"energy", 8, 1})},
}

// file writes a structure whose other fields have all bits set.
func file(t testing.TB, version string, values map[string]uint64) []byte {
	s := structures[version]
	b := make([]byte, s.size)
	for i := range b {
		b[i] = 0xff
	}
	values["size"], values["format"], values["content"] = uint64(s.size), 1, uint64(s.content)
	at := 0
	for _, f := range s.fields {
		at = (at + f.bytes - 1) / f.bytes * f.bytes // as a C compiler aligns
		if v, ok := values[f.name]; ok {
			var buf [8]byte
			binary.LittleEndian.PutUint64(buf[:], v)
			copy(b[at:], buf[:f.bytes])
		}
		at += f.bytes * f.count
	}
	require.LessOrEqual(t, at, s.size)
	return b
}

func TestDecode(t *testing.T) {
	for version := range structures {
		t.Run(version, func(t *testing.T) {
			b := file(t, version, map[string]uint64{
				"hotspot": 71, "memory": 63, "power": 742, "gfx": 88, "umc": 12,
				"energy": 1_000_000 << 16, // a million joules
			})
			for _, padded := range [][]byte{b, append(b[:len(b):len(b)], make([]byte, 4096)...)} {
				m, err := Decode(padded)
				require.NoError(t, err)
				for q, want := range map[Quantity]float64{Hotspot: 71, Memory: 63, Power: 742, Activity: 88, MemoryActivity: 12, Energy: 1e6} {
					got, known := m.Get(q)
					assert.True(t, known, q)
					assert.InDelta(t, want, got, 0, q)
				}
			}

			none, err := Decode(file(t, version, map[string]uint64{}))
			require.NoError(t, err)
			for q := range quantities {
				_, known := none.Get(q)
				assert.False(t, known, q)
			}
		})
	}
}

// A step of the accumulator is 2^-16 J: 65,536 of them are one joule, and one is 15.2588 µJ.
func TestEnergyStep(t *testing.T) {
	m, err := Decode(file(t, "1.4", map[string]uint64{"energy": 1}))
	require.NoError(t, err)
	joules, _ := m.Get(Energy)
	assert.InDelta(t, 15.2587890625e-6, joules, 0)
}

func TestRefused(t *testing.T) {
	good := file(t, "1.3", map[string]uint64{})
	with := func(size uint16, format, content byte) []byte {
		b := make([]byte, 4096)
		binary.LittleEndian.PutUint16(b, size)
		b[2], b[3] = format, content
		return b
	}
	for name, tt := range map[string]struct {
		file []byte
		want error
	}{
		"empty":                     {nil, ErrTruncated},
		"3 bytes":                   {good[:3], ErrTruncated},
		"the header alone":          {good[:4], ErrTruncated},
		"one byte short":            {good[:119], ErrTruncated},
		"all zero":                  {make([]byte, 120), ErrFormat},
		"format 2 of 120 bytes":     {with(120, 2, 1), ErrFormat},
		"format 2, content 3":       {with(120, 2, 3), ErrFormat},
		"format 3":                  {with(264, 3, 0), ErrFormat},
		"content 2":                 {with(96, 1, 2), ErrFormat},
		"content 9":                 {with(120, 1, 9), ErrFormat},
		"content 255":               {with(math.MaxUint16, 1, 255), ErrFormat},
		"size 0":                    {with(0, 1, 3), ErrSize},
		"size of another content":   {with(120, 1, 4), ErrSize},
		"size larger than a page":   {with(math.MaxUint16, 1, 8), ErrTruncated},
		"a size that no kernel has": {with(328, 1, 5), ErrSize},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Decode(tt.file)
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, Metrics{}, m)
		})
	}
}

// FuzzDecode: whatever the file, readings are finite and not negative, and a refused file
// has none.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	for version := range structures {
		f.Add(file(f, version, map[string]uint64{"energy": 1 << 40, "power": 300}))
	}
	f.Add(append(file(f, "1.3", map[string]uint64{}), make([]byte, 3976)...))
	f.Add([]byte{120, 0, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			require.Equal(t, Metrics{}, m)
		}
		for q := range quantities {
			v, known := m.Get(q)
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, v)
			require.True(t, known || v == 0)
		}
	})
}
