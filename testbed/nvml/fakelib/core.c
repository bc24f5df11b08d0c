// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The system, handles, and the readings of one number.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

EXPORT R nvmlInit_v2(void)
{
	CALL(NULL, "nvmlInit_v2");
	return OK;
}

EXPORT R nvmlShutdown(void)
{
	CALL(NULL, "nvmlShutdown");
	return OK;
}

EXPORT const char *nvmlErrorString(R r)
{
	switch (r) {
	case OK: return "The operation was successful";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID: return "Invalid Argument";
	case UNSUPPORTED: return "Not Supported";
	case 4: return "Insufficient Permissions";
	case NOT_FOUND: return "Not Found";
	case SMALL: return "Insufficient Size";
	case NO_DRIVER: return "Driver Not Loaded";
	case TIMEOUT: return "Timeout";
	case NO_FUNCTION: return "Function Not Found";
	case LOST: return "GPU is lost";
	case 16: return "GPU requires reset";
	case 17: return "GPU access blocked by the operating system";
	case 18: return "Driver/library version mismatch";
	case VERSION: return "Argument version mismatch";
	case NO_GPU: return "GPU not found";
	default: return "Unknown Error";
	}
}

static R text(struct call *c, const char *key, char *out, unsigned length)
{
	return get_text(c, key, out, length);
}

EXPORT R nvmlSystemGetDriverVersion(char *out, unsigned length)
{
	CALL(NULL, "nvmlSystemGetDriverVersion");
	return text(&c, "driver", out, length);
}

EXPORT R nvmlSystemGetNVMLVersion(char *out, unsigned length)
{
	CALL(NULL, "nvmlSystemGetNVMLVersion");
	return text(&c, "nvml", out, length);
}

EXPORT R nvmlDeviceGetCount_v2(unsigned *out)
{
	CALL(NULL, "nvmlDeviceGetCount_v2");
	if (!out)
		return INVALID;
	*out = slots();
	return OK;
}

static R handle(int slot, Device *out, const char *name)
{
	Device d = handle_of(slot, -1);
	if (!d || !out)
		return slot < 0 ? NOT_FOUND : INVALID;
	CALL(d, name);
	*out = d;
	return OK;
}

EXPORT R nvmlDeviceGetHandleByPciBusId_v2(const char *pci, Device *out)
{
	return handle(pci ? slot_by_pci(pci) : -2, out, "nvmlDeviceGetHandleByPciBusId_v2");
}

EXPORT R nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *out)
{
	return handle(index, out, "nvmlDeviceGetHandleByIndex_v2");
}

#define GET_TEXT(name, key) \
	EXPORT R name(Device d, char *out, unsigned length) \
	{ \
		CALL(d, #name); \
		return d ? text(&c, key, out, length) : INVALID; \
	}
#define GET_U32(name, key) \
	EXPORT R name(Device d, uint32_t *out) \
	{ \
		CALL(d, #name); \
		return d ? get_u32(&c, key, out) : INVALID; \
	}
#define GET_U64(name, key) \
	EXPORT R name(Device d, uint64_t *out) \
	{ \
		CALL(d, #name); \
		return d ? get_u64(&c, key, out) : INVALID; \
	}

GET_TEXT(nvmlDeviceGetName, "name")
GET_TEXT(nvmlDeviceGetUUID, "uuid")
GET_TEXT(nvmlDeviceGetSerial, "serial")
GET_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
GET_U32(nvmlDeviceGetMinorNumber, "minor")
GET_U32(nvmlDeviceGetIndex, "index")
GET_U32(nvmlDeviceGetPowerUsage, "power")
GET_U32(nvmlDeviceGetPowerManagementLimit, "power.management")
GET_U32(nvmlDeviceGetEnforcedPowerLimit, "power.enforced")
GET_U64(nvmlDeviceGetTotalEnergyConsumption, "energy")
GET_U64(nvmlDeviceGetCurrentClocksThrottleReasons, "reasons")
GET_U32(nvmlDeviceGetFanSpeed, "fan.0")
#if DRIVER >= 450051
GET_U32(nvmlDeviceGetArchitecture, "arch")
#endif
#if DRIVER >= 510039
GET_U32(nvmlDeviceGetNumFans, "fans")
#endif
#if DRIVER >= 535043
GET_U64(nvmlDeviceGetCurrentClocksEventReasons, "reasons")
#endif

// with_number is a call with a number beside the device: "name(2)" for faults, "key.2".
static R with_number(struct call *c, const char *key, unsigned number, uint32_t *out)
{
	char name[96], full[48];
	snprintf(name, sizeof name, "%s(%u)", c->name, number);
	R r = fault_return(c, name);
	if (r != OK)
		return r;
	snprintf(full, sizeof full, "%s.%u", key, number);
	return get_u32(c, full, out);
}

#define GET_NUMBERED(name, key) \
	EXPORT R name(Device d, unsigned number, uint32_t *out) \
	{ \
		CALL(d, #name); \
		return d ? with_number(&c, key, number, out) : INVALID; \
	}

GET_NUMBERED(nvmlDeviceGetTemperatureThreshold, "threshold")
GET_NUMBERED(nvmlDeviceGetClockInfo, "clock")
GET_NUMBERED(nvmlDeviceGetFanSpeed_v2, "fan")

EXPORT R nvmlDeviceGetPcieThroughput(Device d, unsigned counter, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetPcieThroughput");
	if (!d)
		return INVALID;
	pause_call(&c, 20);
	return with_number(&c, "pcie", counter, out);
}

EXPORT R nvmlDeviceGetTemperature(Device d, unsigned sensor, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetTemperature");
	return d && sensor == 0 ? get_u32(&c, "temperature", out) : INVALID;
}

struct temperature {
	uint32_t version, sensor;
	int32_t value;
};
_Static_assert(sizeof(struct temperature) == 12, "layout");

#if DRIVER >= 565057
EXPORT R nvmlDeviceGetTemperatureV(Device d, struct temperature *out)
{
	CALL(d, "nvmlDeviceGetTemperatureV");
	if (!d || !out)
		return INVALID;
	if (out->version != 0x100000C)
		return VERSION;
	return out->sensor == 0 ? get_u32(&c, "temperature", (uint32_t *)&out->value) : INVALID;
}
#endif

struct margin {
	uint32_t version;
	int32_t value;
};
_Static_assert(sizeof(struct margin) == 8, "layout");

#if DRIVER >= 570086
EXPORT R nvmlDeviceGetMarginTemperature(Device d, struct margin *out)
{
	CALL(d, "nvmlDeviceGetMarginTemperature");
	if (!d || !out)
		return INVALID;
	if (out->version != 0x1000008)
		return VERSION;
	return get_u32(&c, "margin", (uint32_t *)&out->value);
}
#endif

struct pci {
	char legacy[16];
	uint32_t domain, bus, device, id, subsystem;
	char address[32];
};
_Static_assert(sizeof(struct pci) == 68 && offsetof(struct pci, address) == 36, "layout");

#if DRIVER >= 450051
EXPORT R nvmlDeviceGetPciInfo_v3(Device d, struct pci *out)
{
	CALL(d, "nvmlDeviceGetPciInfo_v3");
	const char *pci = get(&c, "pci");
	unsigned function = 0;
	if (!d || !out)
		return INVALID;
	if (!pci || sscanf(pci, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) < 3)
		return UNSUPPORTED;
	out->id = 0x233010de;
	out->subsystem = 0x16c110de;
	snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.%X", out->domain & 0xffff, out->bus, out->device, function);
	return get_text(&c, "pci", out->address, sizeof out->address);
}
#endif

struct rates {
	uint32_t gpu, memory;
};

EXPORT R nvmlDeviceGetUtilizationRates(Device d, struct rates *out)
{
	CALL(d, "nvmlDeviceGetUtilizationRates");
	if (!d || !out)
		return INVALID;
	R r = get_u32(&c, "utilization.gpu", &out->gpu);
	return r != OK ? r : get_u32(&c, "utilization.memory", &out->memory);
}

static R utilization(struct call *c, const char *key, uint32_t *out, uint32_t *period)
{
	if (!period)
		return INVALID;
	*period = 167000;
	return get_u32(c, key, out);
}

EXPORT R nvmlDeviceGetEncoderUtilization(Device d, uint32_t *out, uint32_t *period)
{
	CALL(d, "nvmlDeviceGetEncoderUtilization");
	return d ? utilization(&c, "utilization.encoder", out, period) : INVALID;
}

EXPORT R nvmlDeviceGetDecoderUtilization(Device d, uint32_t *out, uint32_t *period)
{
	CALL(d, "nvmlDeviceGetDecoderUtilization");
	return d ? utilization(&c, "utilization.decoder", out, period) : INVALID;
}

struct memory {
	uint64_t total, free, used;
};

struct memory_v2 {
	uint32_t version;
	uint64_t total, reserved, free, used;
};
_Static_assert(sizeof(struct memory_v2) == 40 && offsetof(struct memory_v2, used) == 32, "layout");

static R memory(struct call *c, struct memory_v2 *out)
{
	R r = get_u64(c, "memory.total", &out->total);
	if (r == OK)
		r = get_u64(c, "memory.used", &out->used);
	if (r == OK)
		r = get_u64(c, "memory.reserved", &out->reserved);
	if (r == OK && get_u64(c, "memory.free", &out->free) != OK)
		out->free = out->total - out->used - out->reserved;
	return r;
}

EXPORT R nvmlDeviceGetMemoryInfo(Device d, struct memory *out)
{
	CALL(d, "nvmlDeviceGetMemoryInfo");
	struct memory_v2 m;
	if (!d || !out)
		return INVALID;
	R r = memory(&c, &m);
	if (r == OK)
		*out = (struct memory){m.total, m.free, m.used + m.reserved};
	return r;
}

#if DRIVER >= 510039
EXPORT R nvmlDeviceGetMemoryInfo_v2(Device d, struct memory_v2 *out)
{
	CALL(d, "nvmlDeviceGetMemoryInfo_v2");
	if (!d || !out)
		return INVALID;
	return out->version == 0x2000028 ? memory(&c, out) : NO_FUNCTION;
}
#endif
