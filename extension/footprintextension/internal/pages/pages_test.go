// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry is a mapping in smaps, cut down to the lines that are read and some that are not.
func entry(header string, rss, anonymous, swap, locked string) string {
	return header + "\nSize: 900 kB\nRss: " + rss + " kB\nAnonymous: " + anonymous + " kB\nSwap: " + swap + " kB\nSwapPss: 0 kB\nLocked: " + locked + " kB\nTHPeligible: 0\nVmFlags: rd ex mr\n"
}

func TestClean(t *testing.T) {
	const text = "00400000-00500000 r-xp 00000000 fd:00 12 "
	for name, test := range map[string]struct {
		smaps string
		want  []mapping
	}{
		"empty":                  {"", nil},
		"code":                   {entry(text+"/bin/us", "64", "0", "0", "0"), []mapping{{0x400000, 0x500000, 64 << 10}}},
		"two":                    {entry(text+"/bin/us", "4", "0", "0", "0") + entry("00600000-00700000 r--p 00100000 fd:00 12 /bin/us", "8", "0", "0", "0"), []mapping{{0x400000, 0x500000, 4 << 10}, {0x600000, 0x700000, 8 << 10}}},
		"a path with spaces":     {entry(text+"                  /opt/a b/us", "64", "0", "0", "0"), nil},
		"nothing resident":       {entry(text+"/bin/us", "0", "0", "0", "0"), nil},
		"another file":           {entry(text+"/lib/libc.so", "64", "0", "0", "0"), nil},
		"no file":                {entry("00400000-00500000 r-xp 00000000 00:00 0", "64", "64", "0", "0"), nil},
		"can be written":         {entry("00400000-00500000 rw-p 00000000 fd:00 12 /bin/us", "64", "0", "0", "0"), nil},
		"shared":                 {entry("00400000-00500000 r--s 00000000 fd:00 12 /bin/us", "64", "0", "0", "0"), nil},
		"was written":            {entry("00400000-00500000 r--p 00000000 fd:00 12 /bin/us", "64", "4", "0", "0"), nil},
		"was written, on disk":   {entry("00400000-00500000 r--p 00000000 fd:00 12 /bin/us", "64", "0", "4", "0"), nil},
		"locked":                 {entry(text+"/bin/us", "64", "0", "0", "64"), nil},
		"written before a clean": {entry("00400000-00500000 r--p 00000000 fd:00 12 /bin/us", "64", "4", "0", "0") + entry("00600000-00700000 r--p 00100000 fd:00 12 /bin/us", "8", "0", "0", "0"), []mapping{{0x600000, 0x700000, 8 << 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clean(strings.NewReader(test.smaps), "/bin/us")
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	got, err := clean(strings.NewReader(entry(text+"     /opt/a b/us", "64", "0", "0", "0")), "/opt/a b/us")
	require.NoError(t, err)
	assert.Len(t, got, 1)
}

// What is not smaps is an error, never a wrong address.
func TestCleanRefuses(t *testing.T) {
	for _, smaps := range []string{
		"nonsense", "00400000 r-xp 0 0 0 /bin/us", "zz-00500000 r-xp 0 0 0 /bin/us", "00400000-zz r-xp 0 0 0 /bin/us",
		"00400000-00500000 r-xp 0 0 0 /bin/us\nRss:", "00400000-00500000 r-xp 0 0 0 /bin/us\nRss: many kB",
	} {
		_, err := clean(strings.NewReader(smaps), "/bin/us")
		assert.Error(t, err, smaps)
	}
}

func FuzzClean(f *testing.F) {
	f.Add(entry("00400000-00500000 r-xp 00000000 fd:00 12 /bin/us", "64", "0", "0", "0"))
	f.Add("00400000-00500000 r-xp 0 0 0 /bin/us\nRss:")
	f.Fuzz(func(t *testing.T, smaps string) {
		all, err := clean(strings.NewReader(smaps), "/bin/us")
		if err != nil {
			return
		}
		for _, m := range all {
			assert.Positive(t, m.resident)
			assert.Contains(t, smaps, "/bin/us")
		}
	})
}
