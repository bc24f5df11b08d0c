// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The processes on a board. Keys "process TYPE PID MEMORY GI CI" and "busy PID TIME SM
// MEMORY ENCODER DECODER", as often as there are.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
	uint32_t pid;
	uint64_t memory;
	uint32_t gi, ci;
};

#define ROOM 16384

// entry writes a process in one of the layouts: 16 bytes (pid, memory), 24 (and GI and CI)
// or 32 (and memory that is protected).
static void entry(char *out, int stride, struct process *p)
{
	uint32_t *words = (uint32_t *)out;
	memset(out, 0, stride);
	words[0] = p->pid;
	memcpy(out + 8, &p->memory, 8);
	if (stride >= 24) {
		words[4] = p->gi;
		words[5] = p->ci;
	}
	if (stride >= 32)
		memset(out + 24, 0xff, 8);
}

static R list(struct call *c, const char *type, int stride, unsigned *count, char *out)
{
	static int grown, times;
	static struct process found[ROOM];
	unsigned n = 0;
	if (!c->device || !count)
		return INVALID;
	for (int i = 0; i < c->section->n && n < ROOM; i++) {
		char is[16];
		struct process p;
		if (strcmp(c->section->pairs[i].key, "process"))
			continue;
		if (sscanf(c->section->pairs[i].value, "%15s %u %lu %u %u", is, &p.pid, &p.memory, &p.gi, &p.ci) == 5 && !strcmp(is, type))
			found[n++] = p;
	}
	const char *more = fault(c, c->name, "grow");
	int by = 0, often = ROOM;
	if (more && sscanf(more, "%d %d", &by, &often) >= 1 && times++ < often)
		grown += by;
	for (int i = 0; more && i < grown && n < ROOM; i++)
		found[n++] = (struct process){1000000 + i, 1 << 20, 0xffffffff, 0xffffffff};
	if (*count < n || (n && !out)) {
		*count = n;
		return SMALL;
	}
	const char *other = fault(c, c->name, "stride");
	if (other)
		stride = atoi(other);
	for (unsigned i = 0; i < n; i++) {
		if (stride == 16 || stride == 24 || stride == 32)
			entry(out + i * stride, stride, &found[i]);
		else
			memset(out + i * stride, 0x11, stride);
	}
	if (fault(c, c->name, "overrun")) // some bytes behind what the caller has room for
		memset(out + *count * 32 + 8, 0x5a, 16);
	*count = n;
	return OK;
}

#define LISTS(name, type) \
	EXPORT R name(Device d, unsigned *count, char *out) \
	{ \
		CALL(d, #name); \
		return list(&c, type, 16, count, out); \
	}
#define LISTS_V2(name, type) \
	EXPORT R name##_v2(Device d, unsigned *count, char *out) \
	{ \
		CALL(d, #name "_v2"); \
		return list(&c, type, 24, count, out); \
	}
#define LISTS_V3(name, type, stride) \
	EXPORT R name##_v3(Device d, unsigned *count, char *out) \
	{ \
		CALL(d, #name "_v3"); \
		return list(&c, type, stride, count, out); \
	}

LISTS(nvmlDeviceGetComputeRunningProcesses, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
#if DRIVER >= 460032
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
LISTS_V2(nvmlDeviceGetComputeRunningProcesses, "compute")
LISTS_V2(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
LISTS_V2(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
#endif

#if DRIVER >= 535043 && DRIVER <= 535086
#define STRIDE 32
#elif DRIVER == 550127
#define STRIDE 16
#elif DRIVER >= 510039 && DRIVER != 535098
#define STRIDE 24
#endif
#ifdef STRIDE
LISTS_V3(nvmlDeviceGetComputeRunningProcesses, "compute", STRIDE)
LISTS_V3(nvmlDeviceGetGraphicsRunningProcesses, "graphics", STRIDE)
LISTS_V3(nvmlDeviceGetMPSComputeRunningProcesses, "mps", STRIDE)
#endif

struct busy {
	uint32_t pid;
	uint64_t time;
	uint32_t sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct busy) == 32 && offsetof(struct busy, sm) == 16, "layout");

EXPORT R nvmlDeviceGetProcessUtilization(Device d, struct busy *out, unsigned *count, uint64_t since)
{
	CALL(d, "nvmlDeviceGetProcessUtilization");
	static struct busy found[ROOM];
	unsigned n = 0;
	uint32_t mig = 0;
	if (!d || !count)
		return INVALID;
	if (get_u32(&c, "mig.current", &mig) == OK && mig)
		return UNSUPPORTED;
	for (int i = 0; i < c.section->n && n < ROOM; i++) {
		struct busy b;
		if (strcmp(c.section->pairs[i].key, "busy"))
			continue;
		if (sscanf(c.section->pairs[i].value, "%u %lu %u %u %u %u", &b.pid, &b.time, &b.sm, &b.memory, &b.encoder, &b.decoder) == 6 && b.time > since)
			found[n++] = b;
	}
	if (!n)
		return NOT_FOUND;
	if (!out || *count < n) {
		*count = n;
		return SMALL;
	}
	memcpy(out, found, n * sizeof *out);
	*count = n;
	return OK;
}
