// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "fake.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x4e564d4c
#define SLOTS 96
#define MIGS 32

struct fault_line {
	char *device, *call, *kind, *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file fault_file = {.name = "faults"};
static struct fault_line *fault_lines;
static int fault_count;
static struct {
	char pci[32];
	int board;
	struct handle handles[MIGS + 1];
	int busy;
} slot_table[SLOTS];
static int slot_count, inits, gpm_busy, trace_file = -1;

// unescape turns \xNN into its byte.
static void unescape(char *s)
{
	char *out = s;
	for (; *s; s++) {
		unsigned byte;
		if (s[0] == '\\' && s[1] == 'x' && sscanf(s + 2, "%2x", &byte) == 1) {
			*out++ = (char)byte;
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = 0;
}

static void load_faults(void)
{
	fault_count = 0;
	char *text = fault_file.text;
	for (char *line; (line = next_line(&text));) {
		struct fault_line f = {word(&line), word(&line), word(&line), line};
		if (!f.kind)
			continue;
		if (f.argument)
			unescape(f.argument);
		else
			f.argument = "";
		fault_lines = realloc(fault_lines, (fault_count + 1) * sizeof *fault_lines);
		fault_lines[fault_count++] = f;
	}
}

static void load(void)
{
	load_sections();
	if (changed(&fault_file))
		load_faults();
}

struct section *section_of(Device d)
{
	if (!d)
		return section(-1, -1);
	return section(slot_table[d->slot].board, d->mig);
}

Device handle_of(int slot, int mig)
{
	if (slot < 0 || slot >= slot_count || mig >= MIGS)
		return NULL;
	struct handle *h = &slot_table[slot].handles[mig + 1];
	*h = (struct handle){MAGIC, slot, mig};
	return h;
}

int slots(void) { return slot_count; }
int board_number(int slot) { return slot_table[slot].board; }

// same_pci compares addresses however long their domain is.
static bool same_pci(const char *a, const char *b)
{
	unsigned x[4] = {0}, y[4] = {0};
	return sscanf(a, "%x:%x:%x.%x", x, x + 1, x + 2, x + 3) >= 3 && sscanf(b, "%x:%x:%x.%x", y, y + 1, y + 2, y + 3) >= 3 && !memcmp(x, y, sizeof x);
}

int slot_by_pci(const char *pci)
{
	for (int i = 0; i < slot_count; i++)
		if (same_pci(slot_table[i].pci, pci))
			return i;
	return -1;
}

static bool matches(struct fault_line *f, const char *device, const char *part, const char *kind)
{
	return (!kind || !strcmp(f->kind, kind)) && !fnmatch(f->device, device, 0) && !fnmatch(f->call, part, 0);
}

static void device_name(Device d, char *out, size_t length)
{
	if (!d)
		snprintf(out, length, "-");
	else if (d->mig < 0)
		snprintf(out, length, "%d", slot_table[d->slot].board);
	else
		snprintf(out, length, "%d/%d", slot_table[d->slot].board, d->mig);
}

const char *fault(struct call *c, const char *part, const char *kind)
{
	char device[24];
	device_name(c->device, device, sizeof device);
	for (int i = 0; i < fault_count; i++)
		if (matches(&fault_lines[i], device, part, kind))
			return fault_lines[i].argument;
	return NULL;
}

R fault_return(struct call *c, const char *part)
{
	const char *code = fault(c, part, "return");
	return code ? atoi(code) : OK;
}

static void trace(const char *what, struct call *c)
{
	char device[24], line[256];
	device_name(c->device, device, sizeof device);
	snprintf(line, sizeof line, "%d %d %s %s %s\n", getpid(), gettid(), what, device, c->name);
	append(trace_file, line);
}

// interfere does what faults want to happen before a call answers. The lock is let go
// meanwhile.
R interfere(struct call *c)
{
	if (fault(c, c->name, "segv"))
		raise(SIGSEGV);
	if (fault(c, c->name, "abort"))
		abort();
	const char *ms = fault(c, c->name, "slow");
	if (ms) {
		int n = atoi(ms);
		pthread_mutex_unlock(&lock);
		usleep(n * 1000);
		pthread_mutex_lock(&lock);
		load();
	}
	while (fault(c, c->name, "hang")) {
		pthread_mutex_unlock(&lock);
		usleep(5000);
		pthread_mutex_lock(&lock);
		load();
	}
	return fault_return(c, c->name);
}

// init makes the list of boards, as the real one does once.
static R init(void)
{
	struct section *found[SLOTS];
	if (!section(-1, -1)->n)
		return NO_DRIVER;
	slot_count = boards(found, SLOTS);
	for (int i = 0; i < slot_count; i++) {
		const char *pci = pair_of(found[i], "pci");
		snprintf(slot_table[i].pci, sizeof slot_table[i].pci, "%s", pci ? pci : "");
		slot_table[i].board = found[i]->board;
	}
	char name[4200];
	if (trace_file < 0)
		trace_file = open(path("trace", name, sizeof name), O_WRONLY | O_APPEND | O_CLOEXEC);
	return OK;
}

R enter(struct call *c, Device d, const char *name)
{
	pthread_mutex_lock(&lock);
	c->locked = true;
	c->name = name;
	load();
	bool is_init = !strcmp(name, "nvmlInit_v2");
	if (!inits && !is_init)
		return UNINITIALIZED;
	if (d && (d->magic != MAGIC || d->slot >= slot_count)) {
		violation("a handle that the library did not give", name);
		return INVALID;
	}
	c->device = d;
	if (trace_file >= 0)
		trace("begin", c);
	// Another thread of the board waits for its events.
	c->busy = d && strcmp(name, "nvmlDeviceRegisterEvents") && strcmp(name, "nvmlDeviceGetSupportedEventTypes");
	if (c->busy && slot_table[d->slot].busy++)
		violation("a second call for a board whose call has not returned", name);
	if ((c->gpm = !strncmp(name, "nvmlGpm", 7) && !strstr(name, "Alloc") && !strstr(name, "Free")) && gpm_busy++)
		violation("two GPM calls at once", name);
	R r = interfere(c);
	if (r != OK)
		return r;
	if (is_init && !inits && (r = init()) != OK)
		return r;
	inits += is_init;
	if (!strcmp(name, "nvmlShutdown"))
		inits--;
	c->section = section_of(d);
	if (d && !c->section)
		return d->mig >= 0 ? NOT_FOUND : LOST;
	if (d && pair_of(section(slot_table[d->slot].board, -1), "lost"))
		return LOST;
	return OK;
}

void leave(struct call *c)
{
	if (!c->locked)
		return;
	if (c->busy)
		slot_table[c->device->slot].busy--;
	if (c->gpm)
		gpm_busy--;
	if (trace_file >= 0)
		trace("end", c);
	pthread_mutex_unlock(&lock);
}

void pause_call(struct call *c, unsigned ms)
{
	(void)c;
	pthread_mutex_unlock(&lock);
	usleep(ms * 1000);
	pthread_mutex_lock(&lock);
	load();
}
