// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

// Cause is why a driver gives no readings, as the receiver logs and counts it.
type Cause string

// The causes.
const (
	CauseNone            Cause = "ok"
	CauseNoLibrary       Cause = "no_library"
	CauseNoDriver        Cause = "no_driver"
	CauseVersionMismatch Cause = "version_mismatch"
	CauseInit            Cause = "init"             // any other return of nvmlInit_v2
	CauseNoBoards        Cause = "no_boards"        // initialised, and there is no board
	CauseStarting        Cause = "starting"         // nvmlInit_v2 has not returned yet
	CauseStuck           Cause = "stuck"            // no board answers
	CauseTimeout         Cause = "timeout"          // the helper does not answer
	CauseCrashed         Cause = "crashed"          // the helper has ended
	CauseFrames          Cause = "frames"           // what the helper writes cannot be read
	CauseHelperMissing   Cause = "helper_missing"   // no such program
	CauseHelperStart     Cause = "helper_start"     // it cannot be started
	CauseBlocked         Cause = "blocked"          // former helpers do not end
	CauseUnknownError    Cause = "unknown_error"    // 999 of nvmlInit_v2, or of all boards
	CauseMachine         Cause = "helper_machine"   // built for another architecture
	CauseLoader          Cause = "helper_loader"    // no glibc
	CauseNotExecutable   Cause = "helper_no_rights" // not executable
)

// Cause is why a System gives no readings, CauseNone where it does.
func (s *System) Cause() Cause {
	switch {
	case s.Library == "" && (len(s.Missing) > 0 || s.Return == LibraryNotFound):
		return CauseNoLibrary
	case s.Return == DriverNotLoaded:
		return CauseNoDriver
	case s.Return == LibraryDriverMismatch:
		return CauseVersionMismatch
	case s.Return == Unknown:
		return CauseUnknownError
	case s.Return != Success:
		return CauseInit
	}
	return CauseNone
}

// Remedy is what to do about a cause, in a container or on a host.
func (c Cause) Remedy(container bool) string {
	switch c {
	case CauseNoLibrary:
		if container {
			return "run the container with NVIDIA's container runtime and NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility in its environment, or with the CDI device management.nvidia.com/gpu=all of NVIDIA Container Toolkit 1.18 and later; if libnvidia-ml.so.1 is elsewhere, set library"
		}
		return "install the package with libnvidia-ml.so.1 of NVIDIA's driver, such as nvidia-utils, libnvidia-compute or nvidia-driver-cuda-libs; if it is elsewhere, set library"
	case CauseNoDriver:
		if container {
			return "load the driver on the host: modprobe nvidia there, and look at dmesg for NVRM; if nvidia-smi works there, give the container /dev/nvidiactl and the boards' devices by NVIDIA's container runtime"
		}
		return "load the driver: modprobe nvidia, and look at dmesg for NVRM; after an update of the kernel, the module must be built for it"
	case CauseVersionMismatch:
		if container {
			return "the driver was upgraded after this container began: delete the pod, or make the container again, so that it gets the new library"
		}
		return "the driver's library was upgraded and its kernel module was not: load the new module (end all users of the GPUs, rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia, modprobe nvidia), or reboot"
	case CauseInit:
		return "run nvidia-smi on the host: if it fails likewise, look at dmesg for NVRM"
	case CauseNoBoards:
		if container {
			return "set NVIDIA_VISIBLE_DEVICES=all in the container's environment; on the host, nvidia-smi -L lists the boards that the driver has"
		}
		return "run nvidia-smi -L: if it lists no board, look at dmesg for NVRM, and at lspci -k for the driver that has the board"
	case CauseStarting:
		return "wait: the driver initialises boards, which takes up to a minute for eight boards without persistence mode; nvidia-persistenced avoids it"
	case CauseStuck, CauseTimeout:
		return "look at dmesg for NVRM and for tasks that are blocked for more than 120 seconds; a board that hangs needs a reset (nvidia-smi --gpu-reset), or the host a reboot"
	case CauseCrashed:
		return "look at this log for lines of the helper, and at dmesg; run otelcol-gpu-nvml -once, which prints the last call; if the driver's library crashes, another version of the driver may not"
	case CauseFrames:
		return "install otelcol-gpu-nvml of the same release as this program"
	case CauseHelperMissing:
		return "install otelcol-gpu-nvml beside this program or in PATH (make build in a checkout of otelcol-gpu writes it to bin/), or set helper"
	case CauseMachine:
		return "install otelcol-gpu-nvml for this machine's architecture: there are builds for amd64 and arm64"
	case CauseLoader:
		return "use an image or a host with glibc, such as the image flavour -nvml: the driver's library needs it; static images and Alpine do not have it"
	case CauseNotExecutable:
		return "make otelcol-gpu-nvml executable for the user of this program: chmod 755, on a file system that is not mounted noexec"
	case CauseHelperStart:
		return "run the helper by hand with -version as the user of this program, and look at the limits of processes and memory"
	case CauseBlocked:
		return "reboot the host when it is next free: helpers hang in the driver and cannot be ended; one that ends makes room for another"
	case CauseUnknownError:
		if container {
			return "delete the pod, or make the container again: systemctl daemon-reload on the host takes devices away from running containers; with the cgroup driver systemd and CDI or nvidia-ctk system create-dev-char-symlinks they keep them"
		}
		return "run nvidia-smi on the host: if it fails likewise, look at dmesg for NVRM and reset the boards, or reboot"
	}
	return ""
}

// DeniedRemedy is what to do where a call returns that rights are missing.
func DeniedRemedy(call string, container bool) string {
	switch {
	case call == string(MethodGPM):
		return "profiling counters need rights: run as root, or with NVreg_RestrictProfilingToAdminUsers=0 for the driver; remove profiling from groups if it is read elsewhere"
	case container:
		return "run as root, or let the container's user read /dev/nvidiactl and /dev/nvidia*; for MIG instances set NVIDIA_MIG_MONITOR_DEVICES=all in a container with CAP_SYS_ADMIN (chart: nvml.migDevices)"
	}
	return "run as root, or let the user read /dev/nvidiactl, /dev/nvidia* and, for MIG instances, /dev/nvidia-caps"
}
