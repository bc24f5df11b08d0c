// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write writes files below a folder; a value that begins with -> is a link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if len(content) > 2 && content[:2] == "->" {
			require.NoError(t, os.Symlink(content[2:], path))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

const pci = "sys/bus/pci/devices/"

func TestRead(t *testing.T) {
	board := func(address, driver string, more map[string]string) map[string]string {
		files := map[string]string{
			pci + address + "/vendor": "0x10de\n", pci + address + "/class": "0x030200\n",
			pci + address + "/power/control": "on\n", pci + address + "/power/runtime_status": "active\n",
		}
		if driver != "" {
			files[pci+address+"/driver"] = "->../../../bus/pci/drivers/" + driver
		}
		for k, v := range more {
			files[pci+address+"/"+k] = v
		}
		return files
	}
	for name, c := range map[string]struct {
		files []map[string]string
		want  Snapshot
	}{
		"nothing": {},
		"a board": {
			[]map[string]string{board("0000:3b:00.0", "nvidia", nil), {"sys/module/nvidia/version": "550.127.05\n", "dev/nvidiactl": ""}},
			Snapshot{Boards: []Board{{PCI: "0000:3b:00.0", Driver: "nvidia"}}, Driver: "550.127.05", Hardware: true, Device: true},
		},
		"no driver": {
			[]map[string]string{board("0000:3b:00.0", "", nil)},
			Snapshot{Boards: []Board{{PCI: "0000:3b:00.0"}}, Hardware: true},
		},
		"given to a virtual machine": {[]map[string]string{board("0000:3b:00.0", "vfio-pci", nil)}, Snapshot{}},
		"of a notebook": {
			[]map[string]string{board("0000:01:00.0", "nvidia", map[string]string{"class": "0x030000\n", "power/control": "auto\n", "power/runtime_status": "suspended\n"})},
			Snapshot{Boards: []Board{{PCI: "0000:01:00.0", Driver: "nvidia", Managed: true, Suspended: true}}, Hardware: true},
		},
		"its sound, a switch, and another vendor's": {[]map[string]string{
			board("0000:01:00.1", "snd_hda_intel", map[string]string{"class": "0x040300\n"}),
			board("0000:c1:00.0", "nvidia-nvswitch", map[string]string{"class": "0x068000\n"}),
			board("0000:03:00.0", "amdgpu", map[string]string{"vendor": "0x1002\n"}),
		}, Snapshot{}},
		"its parts for virtual machines (SR-IOV)": {
			[]map[string]string{board("0000:3b:00.0", "nvidia", nil), board("0000:3b:00.4", "nvidia", map[string]string{"physfn": "->../0000:3b:00.0"})},
			Snapshot{Boards: []Board{{PCI: "0000:3b:00.0", Driver: "nvidia"}}, Hardware: true},
		},
		"Windows below": {[]map[string]string{{"dev/dxg": ""}}, Snapshot{Hardware: true, Device: true}},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{}
			for _, files := range c.files {
				for k, v := range files {
					all[k] = v
				}
			}
			r := New(write(t, all))
			assert.Equal(t, &c.want, r.Read())
			assert.Equal(t, &c.want, r.Read(), "from what is remembered")
		})
	}
}

// FuzzRead: whatever the files have, reading them ends, and what comes out is safe.
func FuzzRead(f *testing.F) {
	f.Add("0x10de\n", "0x030200\n", "auto\n", "suspended\n", "550\n")
	f.Fuzz(func(t *testing.T, vendor, class, control, status, version string) {
		const address = "0000:3b:00.0"
		s := New(write(t, map[string]string{
			pci + address + "/vendor": vendor, pci + address + "/class": class,
			pci + address + "/power/control": control, pci + address + "/power/runtime_status": status,
			"sys/module/nvidia/version": version,
		})).Read()
		assert.LessOrEqual(t, len(s.Boards), 1)
		assert.LessOrEqual(t, len([]rune(s.Driver)), maxText)
	})
}
