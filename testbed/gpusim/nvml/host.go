// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

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

// Kernel writes records of the kernel log to dev/kmsg, which is a pipe, and waits until
// there is room for them.
func (h *Host) Kernel(lines ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log(lines...)
}

func (h *Host) log(lines ...string) error {
	if h.opts.Root == "" {
		return nil
	}
	if h.kernel == nil {
		path := h.root("dev/kmsg")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		var err error
		if h.kernel, err = os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil {
			return err
		}
	}
	for _, line := range lines {
		h.records++
		_ = h.kernel.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(h.kernel, "4,%d,%d,-;%s\n", h.records, 1000*h.records, line); err != nil {
			return fmt.Errorf("the kernel log is not read: %w", err)
		}
	}
	return nil
}

// Close closes the kernel log.
func (h *Host) Close() {
	if h.kernel != nil {
		_ = h.kernel.Close()
	}
}

// Follow writes the files of every node of a fleet each second until ctx ends:
// folder/NODE/lib and folder/NODE/root.
func Follow(ctx context.Context, fleet *gpusim.Fleet, folder string) error {
	var hosts []*Host
	for _, node := range fleet.Nodes() {
		h := New(fleet, node, Options{Library: filepath.Join(folder, node, "lib"), Root: filepath.Join(folder, node, "root")})
		if err := errors.Join(os.MkdirAll(h.opts.Library, 0o755), h.Kernel(), h.Write(fleet.Now())); err != nil {
			return err
		}
		hosts = append(hosts, h)
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, h := range hosts {
				_ = h.Write(fleet.Now()) // what cannot be written stays as it was
			}
		}
	}()
	return nil
}

func (h *Host) root(parts ...string) string {
	return filepath.Join(append([]string{h.opts.Root}, parts...)...)
}
