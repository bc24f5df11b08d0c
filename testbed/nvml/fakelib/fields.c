// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Field values. Key "f.ID" or "f.ID.SCOPE", value "TYPE VALUE [TIME]".
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct field {
	uint32_t id, scope;
	int64_t time, latency;
	uint32_t type;
	R status;
	union {
		double number;
		uint32_t u32;
		uint64_t u64;
		int64_t i64;
		int32_t i32;
		uint16_t u16;
	} value;
};
_Static_assert(sizeof(struct field) == 40 && offsetof(struct field, value) == 32, "layout");

static R read_field(struct call *c, struct field *f)
{
	char name[64], key[32];
	// What these mean depends on the driver.
	if (f->id >= 251 || f->id == 199 || f->id == 200)
		violation("an id of a field that has moved", c->name);
	snprintf(name, sizeof name, "%s(%u)", c->name, f->id);
	R r = fault_return(c, name);
	if (r != OK)
		return r;
	snprintf(key, sizeof key, "f.%u.%u", f->id, f->scope);
	const char *text = get(c, key);
	if (!text && !f->scope) {
		snprintf(key, sizeof key, "f.%u", f->id);
		text = get(c, key);
	}
	unsigned type;
	char value[48];
	long long time = micros();
	if (!text || sscanf(text, "%u %47s %lld", &type, value, &time) < 2)
		return UNSUPPORTED;
	f->type = type;
	f->time = time;
	f->latency = 12;
	memset(&f->value, 0, sizeof f->value);
	switch (type) {
	case 0: f->value.number = strtod(value, NULL); break;
	case 1: f->value.u32 = strtoul(value, NULL, 10); break;
	case 2:
	case 3: f->value.u64 = strtoull(value, NULL, 10); break;
	case 4: f->value.i64 = strtoll(value, NULL, 10); break;
	case 5: f->value.i32 = strtol(value, NULL, 10); break;
	case 6: f->value.u16 = strtoul(value, NULL, 10); break;
	default: f->value.u64 = strtoull(value, NULL, 10);
	}
	// An integer that is marked as a double: its bits are the integer's.
	if (fault(c, key, "marked_double")) {
		f->value.u64 = strtoull(value, NULL, 10);
		f->type = 0;
	}
	return OK;
}

EXPORT R nvmlDeviceGetFieldValues(Device d, int n, struct field *fields)
{
	CALL(d, "nvmlDeviceGetFieldValues");
	if (!d || !fields || n < 0)
		return INVALID;
	for (int i = 0; i < n; i++)
		fields[i].status = read_field(&c, &fields[i]);
	// Values may come in another order: they are to be matched by their ids.
	if (fault(&c, c.name, "reversed"))
		for (int i = 0; i < n / 2; i++) {
			struct field f = fields[i];
			fields[i] = fields[n - 1 - i];
			fields[n - 1 - i] = f;
		}
	return OK;
}
