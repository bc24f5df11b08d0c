// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"strings"
)

// render is the number of the first render node.
const render = 128

// sysfs are the files that join the ids of device plugins to devices: PCI devices, DRM
// names, the platform devices of partitions, and the topology of KFD.
func sysfs(h *host, all []*state) map[string]string {
	files := map[string]string{}
	processor := "class/kfd/kfd/topology/nodes/0/properties"
	if h.model.Vendor == AMD && !h.NoKFD {
		files[processor] = kfdNode(0, 0)
	}
	for _, s := range all {
		pciFiles(h, files, s)
		if h.model.Vendor != AMD {
			continue
		}
		for i := range s.parts {
			at := render + s.index*8 + i
			if i > 0 {
				xcp := fmt.Sprintf("devices/platform/amdgpu_xcp_%d/drm/", xcp(h, s, &s.parts[i]))
				files[fmt.Sprintf("%srenderD%d/dev", xcp, at)] = fmt.Sprintf("226:%d\n", at)
				files[fmt.Sprintf("%scard%d/dev", xcp, 64+at)] = fmt.Sprintf("226:%d\n", 64+at)
			}
			if !h.NoKFD {
				location := s.bus()<<8 | i<<28
				files[fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/properties", 1+s.index*8+i)] = kfdNode(location, at)
			}
		}
	}
	return files
}

// bus is the number of a board's PCI bus; its domain, device and function are 0.
func (b *board) bus() (bus int) {
	_, _ = fmt.Sscanf(b.pci, "0000:%x:", &bus)
	return bus
}

func kfdNode(location, render int) string {
	return fmt.Sprintf("cpu_cores_count 0\nsimd_count %d\nvendor_id 4098\nlocation_id %d\ndomain 0\ndrm_render_minor %d\n", 152*b2i(render > 0), location, render)
}

func pciFiles(h *host, files map[string]string, s *state) {
	dir := "bus/pci/devices/" + s.pci + "/"
	vendor, driver, class := 0x1002, "amdgpu", 0x120000
	switch h.model.Vendor {
	case Gaudi:
		vendor, driver = 0x1da3, "habanalabs"
	case Intel:
		vendor, driver, class = 0x8086, "i915", 0x038000
		if h.Model == "B60" {
			driver = "xe"
		}
	}
	files[dir+"vendor"] = fmt.Sprintf("0x%04x\n", vendor)
	files[dir+"device"] = fmt.Sprintf("0x%04x\n", h.model.PCIDevice)
	files[dir+"class"] = fmt.Sprintf("0x%06x\n", class)
	files[dir+"uevent"] = fmt.Sprintf("DRIVER=%s\nPCI_CLASS=%X\nPCI_SLOT_NAME=%s\n", driver, class, s.pci)
	if h.model.Vendor == AMD {
		files[dir+"unique_id"] = fmt.Sprintf("%016x\n", s.uid)
		files[dir+"product_name"] = h.model.Name + "\n"
		if !h.Guest {
			files[dir+"serial_number"] = s.serial + "\n"
		}
		if !h.model.AveragePower {
			files[dir+"current_compute_partition"] = strings.ToUpper(s.compute) + "\n"
			files[dir+"current_memory_partition"] = strings.ToUpper(s.memory) + "\n"
		}
	}
	if h.model.Vendor != Gaudi {
		at := render + s.index*8
		files[fmt.Sprintf("%sdrm/renderD%d/dev", dir, at)] = fmt.Sprintf("226:%d\n", at)
		files[fmt.Sprintf("%sdrm/card%d/dev", dir, s.card())] = fmt.Sprintf("226:%d\n", s.card())
		files[fmt.Sprintf("class/drm/card%d/device/uevent", s.card())] = files[dir+"uevent"]
		files[fmt.Sprintf("class/drm/card%d/device/vendor", s.card())] = files[dir+"vendor"]
	}
}
