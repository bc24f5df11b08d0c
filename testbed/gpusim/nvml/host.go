// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// host writes sysfs, /proc and /dev of the boards.
func (h *Host) host(boards []gpusim.DriverBoard) error {
	if h.opts.Root == "" {
		return nil
	}
	driver := h.driver(boards)
	files := map[string]string{
		"sys/module/nvidia/version":  driver + "\n",
		"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + driver + "\n",
		"dev/nvidiactl":              "",
	}
	for i := range boards {
		address := strings.ToLower(boards[i].PCIBusID[4:])
		folder := "sys/devices/pci0000:00/" + address
		if _, err := os.Lstat(h.root("sys/bus/pci/devices", address)); err == nil {
			continue // what a test has changed stays
		}
		files[folder+"/vendor"] = "0x10de\n"
		files[folder+"/device"] = "0x2330\n"
		files[folder+"/class"] = "0x030200\n"
		files[folder+"/power/control"] = "on\n"
		files[folder+"/power/runtime_status"] = "active\n"
		files["sys/bus/pci/drivers/nvidia/module"] = ""
		for link, to := range map[string]string{
			"sys/bus/pci/devices/" + address:        "../../../devices/pci0000:00/" + address,
			folder + "/driver":                      "../../../bus/pci/drivers/nvidia",
			"sys/bus/pci/drivers/nvidia/" + address: "../../../../devices/pci0000:00/" + address,
		} {
			if err := os.MkdirAll(filepath.Dir(h.root(link)), 0o755); err != nil {
				return err
			}
			if err := os.Symlink(to, h.root(link)); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if old, err := os.ReadFile(h.root(name)); err == nil && string(old) == text {
			continue
		}
		if err := write(h.root(name), text); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) root(parts ...string) string {
	return filepath.Join(append([]string{h.opts.Root}, parts...)...)
}
