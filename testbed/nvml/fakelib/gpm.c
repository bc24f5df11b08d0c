// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// GPM. Key "gpm.ID", value "SUM RATE": what a metric sums up to since the start, in its
// unit times seconds, and what it is now. A metric is the mean between two samples.
#include "fake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if DRIVER >= 520056
#if DRIVER >= 595045
#define METRICS 333
#elif DRIVER >= 575051
#define METRICS 210
#else
#define METRICS 98
#endif

struct sample {
	uint32_t magic;
	bool filled, instance;
	Device device;
	double at;
	struct {
		bool there;
		double sum, rate;
	} metrics[METRICS];
};

#define SAMPLE 0x53414d50

struct support {
	uint32_t version, supported;
};
_Static_assert(sizeof(struct support) == 8, "layout");

EXPORT R nvmlGpmQueryDeviceSupport(Device d, struct support *out)
{
	CALL(d, "nvmlGpmQueryDeviceSupport");
	if (!d || !out)
		return INVALID;
	if (out->version != 1)
		return VERSION;
	out->supported = 0;
	R r = get_u32(&c, "gpm", &out->supported);
	return r == UNSUPPORTED ? OK : r;
}

EXPORT R nvmlGpmSampleAlloc(struct sample **out)
{
	CALL(NULL, "nvmlGpmSampleAlloc");
	if (!out)
		return INVALID;
	*out = calloc(1, sizeof **out);
	(*out)->magic = SAMPLE;
	return OK;
}

EXPORT R nvmlGpmSampleFree(struct sample *s)
{
	CALL(NULL, "nvmlGpmSampleFree");
	if (!s || s->magic != SAMPLE)
		return INVALID;
	s->magic = 0;
	free(s);
	return OK;
}

static R take(struct call *c, struct sample *s, bool instance)
{
	if (!s || s->magic != SAMPLE)
		return INVALID;
	const char *supported = get(c, "gpm");
	if (!instance && (!supported || !atoi(supported)))
		return UNSUPPORTED;
	s->filled = true;
	s->device = c->device;
	s->instance = instance;
	s->at = seconds();
	for (int id = 0; id < METRICS; id++) {
		char key[16];
		snprintf(key, sizeof key, "gpm.%d", id);
		const char *value = get(c, key);
		s->metrics[id].there = value && sscanf(value, "%lf %lf", &s->metrics[id].sum, &s->metrics[id].rate) == 2;
	}
	return OK;
}

EXPORT R nvmlGpmSampleGet(Device d, struct sample *s)
{
	CALL(d, "nvmlGpmSampleGet");
	return d ? take(&c, s, false) : INVALID;
}

#if DRIVER >= 525053
EXPORT R nvmlGpmMigSampleGet(Device d, unsigned gi, struct sample *s)
{
	CALL(d, "nvmlGpmMigSampleGet");
	struct section *found[32];
	if (!d || d->mig >= 0)
		return INVALID;
	int n = mig_count(c.section->board, found, 32);
	for (int i = 0; i < n; i++)
		if ((unsigned)found[i]->gi == gi) {
			c.section = found[i];
			R r = take(&c, s, true);
			if (r == OK)
				s->device = handle_of(d->slot, found[i]->mig);
			return r;
		}
	return NOT_FOUND;
}
#endif

struct metric {
	uint32_t id;
	R status;
	double value;
	const char *info[3];
};

struct metrics {
	uint32_t version, count;
	struct sample *first, *second;
	struct metric metrics[];
};
_Static_assert(sizeof(struct metric) == 40 && offsetof(struct metrics, metrics) == 24, "layout");

static R metric(struct call *c, struct metrics *m, struct metric *out)
{
	char name[64], key[24];
	snprintf(name, sizeof name, "%s(%u)", c->name, out->id);
	snprintf(key, sizeof key, "gpm.%u", out->id);
	R r = fault_return(c, name);
	if (r != OK)
		return r;
	if (out->id >= METRICS || !m->first->metrics[out->id].there || !m->second->metrics[out->id].there)
		return UNSUPPORTED;
	double passed = m->second->at - m->first->at;
	out->value = m->second->metrics[out->id].rate;
	if (passed > 0)
		out->value = (m->second->metrics[out->id].sum - m->first->metrics[out->id].sum) / passed;
	const char *wrong = fault(c, key, "metric");
	if (wrong)
		out->value = strtod(wrong, NULL);
	if (fault(c, key, "nan"))
		out->value = NAN;
	return OK;
}

EXPORT R nvmlGpmMetricsGet(struct metrics *m)
{
	CALL(NULL, "nvmlGpmMetricsGet");
	if (!m)
		return INVALID;
	if (m->version != 1)
		return VERSION;
	if (m->count == 0 || m->count > METRICS || !m->first || !m->second || m->first->magic != SAMPLE || m->second->magic != SAMPLE)
		return INVALID;
	if (!m->first->filled || !m->second->filled || m->first->instance != m->second->instance)
		return INVALID;
	c.device = m->second->device; // faults are those of its board
	R r = interfere(&c);
	for (unsigned i = 0; r == OK && i < m->count; i++)
		m->metrics[i].status = metric(&c, m, &m->metrics[i]);
	// It clears what is behind those that are asked for, as far as its own list goes.
	memset(m->metrics + m->count, 0, (METRICS - m->count) * sizeof *m->metrics);
	return r;
}
#endif
