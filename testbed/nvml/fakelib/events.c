// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Events. File "events": "FIRST N TYPE DATA BOARD GI CI", N events of which the first one
// has the number FIRST. A set has those that came after its boards were registered.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REGISTERED 96
#define SET 0x45564e54

struct set {
	uint32_t magic;
	int n;
	struct {
		Device device;
		int board;
		uint64_t types, after; // the number of the event that it had last
	} boards[REGISTERED];
};

struct event {
	Device device;
	uint64_t type, data;
	uint32_t gi, ci;
};
_Static_assert(sizeof(struct event) == 32 && offsetof(struct event, gi) == 24, "layout");

struct queued {
	uint64_t first, n, type, data;
	int board;
	uint32_t gi, ci;
};

static struct file event_file = {.name = "events"};
static struct queued *queue;
static int queue_length;

static void load_events(void)
{
	if (!changed(&event_file))
		return;
	queue_length = 0;
	char *text = event_file.text;
	for (char *line; (line = next_line(&text));) {
		struct queued q;
		if (sscanf(line, "%lu %lu %lu %lu %d %u %u", &q.first, &q.n, &q.type, &q.data, &q.board, &q.gi, &q.ci) != 7)
			continue;
		queue = realloc(queue, (queue_length + 1) * sizeof *queue);
		queue[queue_length++] = q;
	}
}

// newest is the number of the event that came last.
static uint64_t newest(void)
{
	load_events();
	return queue_length ? queue[queue_length - 1].first + queue[queue_length - 1].n - 1 : 0;
}

EXPORT R nvmlEventSetCreate(struct set **out)
{
	CALL(NULL, "nvmlEventSetCreate");
	if (!out)
		return INVALID;
	*out = calloc(1, sizeof **out);
	(*out)->magic = SET;
	return OK;
}

EXPORT R nvmlDeviceGetSupportedEventTypes(Device d, uint64_t *out)
{
	CALL(d, "nvmlDeviceGetSupportedEventTypes");
	if (!d || !out)
		return INVALID;
	*out = 0;
	return get_u64(&c, "events", out);
}

EXPORT R nvmlDeviceRegisterEvents(Device d, uint64_t types, struct set *s)
{
	CALL(d, "nvmlDeviceRegisterEvents");
	uint64_t supported = 0;
	if (!d || !s || s->magic != SET || s->n == REGISTERED)
		return INVALID;
	if (get_u64(&c, "events", &supported) != OK || (types & ~supported))
		return UNSUPPORTED;
	s->boards[s->n].device = d;
	s->boards[s->n].board = board_number(d->slot);
	s->boards[s->n].types = types;
	s->boards[s->n++].after = newest();
	return OK;
}

// next takes the oldest event that a set has not had.
static bool next(struct set *s, struct event *out)
{
	load_events();
	struct queued *oldest = NULL;
	int of = 0;
	uint64_t number = 0;
	for (int i = 0; i < s->n; i++)
		for (int j = 0; j < queue_length; j++) {
			struct queued *q = &queue[j];
			uint64_t next = s->boards[i].after + 1 > q->first ? s->boards[i].after + 1 : q->first;
			if (q->board != s->boards[i].board || !(q->type & s->boards[i].types) || next >= q->first + q->n)
				continue;
			if (!oldest || next < number) {
				oldest = q;
				of = i;
				number = next;
			}
			break;
		}
	if (!oldest)
		return false;
	s->boards[of].after = number;
	*out = (struct event){s->boards[of].device, oldest->type, oldest->data, oldest->gi, oldest->ci};
	return true;
}

static R wait_for(struct call *c, struct set *s, struct event *out, unsigned ms)
{
	if (!s || s->magic != SET || !out)
		return INVALID;
	// Faults are those of the board, of a set that has one.
	Device one = s->n ? s->boards[0].device : NULL;
	for (unsigned waited = 0;; waited += 5) {
		c->device = one;
		R r = interfere(c);
		if (r == OK && one && !section_of(one))
			r = LOST;
		if (r == OK && one && pair_of(section_of(one), "lost"))
			r = LOST;
		if (r != OK)
			return r;
		if (next(s, out))
			return OK;
		if (waited >= ms)
			return TIMEOUT;
		pause_call(c, 5);
	}
}

EXPORT R nvmlEventSetWait(struct set *s, struct event *out, unsigned ms)
{
	CALL(NULL, "nvmlEventSetWait");
	struct event e;
	R r = wait_for(&c, s, &e, ms);
	if (r == OK)
		memcpy(out, &e, offsetof(struct event, gi)); // it has no instances
	return r;
}

#if DRIVER >= 450051
EXPORT R nvmlEventSetWait_v2(struct set *s, struct event *out, unsigned ms)
{
	CALL(NULL, "nvmlEventSetWait_v2");
	return wait_for(&c, s, out, ms);
}
#endif

EXPORT R nvmlEventSetFree(struct set *s)
{
	CALL(NULL, "nvmlEventSetFree");
	if (!s || s->magic != SET)
		return INVALID;
	s->magic = 0;
	free(s);
	return OK;
}
