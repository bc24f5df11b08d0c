// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// MIG and virtual GPUs.
#include "fake.h"

#include <stdio.h>
#include <string.h>

#if DRIVER >= 450051
EXPORT R nvmlDeviceGetMigMode(Device d, uint32_t *current, uint32_t *pending)
{
	CALL(d, "nvmlDeviceGetMigMode");
	if (!d || !current || !pending || d->mig >= 0)
		return INVALID;
	R r = get_u32(&c, "mig.current", current);
	return r != OK ? r : get_u32(&c, "mig.pending", pending);
}

EXPORT R nvmlDeviceGetMaxMigDeviceCount(Device d, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetMaxMigDeviceCount");
	if (!d)
		return INVALID;
	if (get_u32(&c, "mig.max", out) != OK && out)
		*out = 0;
	return OK;
}

EXPORT R nvmlDeviceGetMigDeviceHandleByIndex(Device d, unsigned index, Device *out)
{
	CALL(d, "nvmlDeviceGetMigDeviceHandleByIndex");
	uint32_t mode = 0;
	char name[64];
	if (!d || !out || d->mig >= 0 || index >= 32)
		return INVALID;
	snprintf(name, sizeof name, "%s(%u)", c.name, index);
	R r = fault_return(&c, name);
	if (r != OK)
		return r;
	if (get_u32(&c, "mig.current", &mode) != OK || !mode)
		return UNSUPPORTED;
	if (!section(c.section->board, index))
		return NOT_FOUND;
	*out = handle_of(d->slot, index);
	return OK;
}

EXPORT R nvmlDeviceIsMigDeviceHandle(Device d, uint32_t *out)
{
	CALL(d, "nvmlDeviceIsMigDeviceHandle");
	if (!d || !out)
		return INVALID;
	*out = d->mig >= 0;
	return OK;
}

EXPORT R nvmlDeviceGetGpuInstanceId(Device d, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetGpuInstanceId");
	if (!d || !out || d->mig < 0)
		return INVALID;
	*out = c.section->gi;
	return OK;
}

EXPORT R nvmlDeviceGetComputeInstanceId(Device d, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetComputeInstanceId");
	if (!d || !out || d->mig < 0)
		return INVALID;
	*out = c.section->ci;
	return OK;
}

struct attributes {
	uint32_t multiprocessors, copy, decoders, encoders, jpeg, ofa, gi_slices, ci_slices;
	uint64_t memory;
};
_Static_assert(sizeof(struct attributes) == 40 && offsetof(struct attributes, memory) == 32, "layout");

EXPORT R nvmlDeviceGetAttributes_v2(Device d, struct attributes *out)
{
	CALL(d, "nvmlDeviceGetAttributes_v2");
	if (!d || !out)
		return INVALID;
	if (d->mig < 0)
		return UNSUPPORTED;
	memset(out, 0, sizeof *out);
	R r = get_u32(&c, "slices", &out->gi_slices);
	out->ci_slices = out->gi_slices;
	return r != OK ? r : get_u64(&c, "attributes.memory", &out->memory);
}
#endif

struct licences {
	int32_t supported;
	uint32_t count;
	struct {
		uint32_t code, state;
		char info[128], product[128];
		uint32_t enabled;
		struct {
			uint32_t year;
			uint16_t month, day, hour, min, sec;
			uint8_t status;
		} expiry;
	} features[3];
};
_Static_assert(sizeof(struct licences) == 860, "layout");

#if DRIVER >= 470057
EXPORT R nvmlDeviceGetGridLicensableFeatures_v4(Device d, struct licences *out)
{
	CALL(d, "nvmlDeviceGetGridLicensableFeatures_v4");
	uint32_t licensed;
	if (!d || !out)
		return INVALID;
	memset(out, 0, sizeof *out);
	if (get_u32(&c, "licensed", &licensed) != OK)
		return OK;
	out->supported = 1;
	out->count = 1;
	out->features[0].code = 1;
	out->features[0].state = out->features[0].enabled = licensed;
	strcpy(out->features[0].product, "NVIDIA Virtual Compute Server");
	return OK;
}
#endif

EXPORT R nvmlDeviceGetVirtualizationMode(Device d, uint32_t *out)
{
	CALL(d, "nvmlDeviceGetVirtualizationMode");
	return d ? get_u32(&c, "virtualization", out) : INVALID;
}
