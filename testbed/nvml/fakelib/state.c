// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


static struct file state_file = {.name = "state"};
static struct section *sections;
static int section_count, section_room;

const char *path(const char *name, char *out, size_t length)
{
	static char folder[4096];
	if (!folder[0]) {
		Dl_info self;
		if (!dladdr((void *)path, &self) || !self.dli_fname)
			abort();
		snprintf(folder, sizeof folder, "%s", self.dli_fname);
		char *end = strrchr(folder, '/');
		if (end)
			*end = 0;
		else
			strcpy(folder, ".");
	}
	snprintf(out, length, "%s/%s", folder, name);
	return out;
}

void append(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));
	(void)n;
}

void violation(const char *text, const char *call)
{
	char name[4200], line[512];
	int fd = open(path("violations", name, sizeof name), O_WRONLY | O_APPEND | O_CREAT, 0666);
	if (fd < 0)
		return;
	snprintf(line, sizeof line, "%s: %s\n", call, text);
	append(fd, line);
	close(fd);
}

// changed reads the file again if it is another one; false: it is as it was.
bool changed(struct file *f)
{
	char name[4200];
	struct stat now;
	if (stat(path(f->name, name, sizeof name), &now) != 0) {
		bool was = f->text != NULL;
		free(f->text);
		f->text = NULL;
		f->inode = 0;
		return was;
	}
	if (f->text && now.st_ino == f->inode && now.st_size == f->size && now.st_mtim.tv_sec == f->modified.tv_sec && now.st_mtim.tv_nsec == f->modified.tv_nsec)
		return false;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &now) != 0)
		abort();
	char *text = malloc(now.st_size + 1);
	ssize_t n = read(fd, text, now.st_size);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	free(f->text);
	f->text = text;
	f->inode = now.st_ino;
	f->size = now.st_size;
	f->modified = now.st_mtim;
	return true;
}

// next_line cuts the next line off.
char *next_line(char **text)
{
	char *line = *text;
	if (!line || !*line)
		return NULL;
	char *end = strchr(line, '\n');
	if (end) {
		*end = 0;
		*text = end + 1;
	} else {
		*text = NULL;
	}
	return line;
}

char *word(char **text)
{
	char *w = *text;
	if (!w)
		return NULL;
	char *end = strchr(w, ' ');
	if (end) {
		*end = 0;
		*text = end + 1;
	} else {
		*text = NULL;
	}
	return w;
}

static struct section *begin(int board, int mig, int gi, int ci)
{
	if (section_count == section_room) {
		section_room = section_room ? 2 * section_room : 16;
		sections = realloc(sections, section_room * sizeof *sections);
		memset(sections + section_count, 0, (section_room - section_count) * sizeof *sections);
	}
	struct section *s = &sections[section_count++];
	s->board = board, s->mig = mig, s->gi = gi, s->ci = ci, s->n = 0;
	return s;
}

static void load_state(void)
{
	section_count = 0;
	struct section *s = begin(-1, -1, -1, -1);
	char *text = state_file.text;
	for (char *line; (line = next_line(&text));) {
		int board = s->board, mig, gi, ci;
		if (sscanf(line, "board %d", &board) == 1) {
			s = begin(board, -1, -1, -1);
			continue;
		}
		if (sscanf(line, "mig %d %d %d", &mig, &gi, &ci) == 3) {
			s = begin(board, mig, gi, ci);
			continue;
		}
		char *value = line, *key = word(&value);
		if (!*key)
			continue;
		if (s->n == s->room) {
			s->room = s->room ? 2 * s->room : 64;
			s->pairs = realloc(s->pairs, s->room * sizeof *s->pairs);
		}
		s->pairs[s->n++] = (struct pair){key, value ? value : ""};
	}
}

void load_sections(void)
{
	if (changed(&state_file))
		load_state();
}

struct section *section(int board, int mig)
{
	for (int i = 0; i < section_count; i++)
		if (sections[i].board == board && sections[i].mig == mig)
			return &sections[i];
	return NULL;
}

int boards(struct section **out, int room)
{
	int n = 0;
	for (int i = 0; i < section_count; i++)
		if (sections[i].board >= 0 && sections[i].mig < 0 && n < room)
			out[n++] = &sections[i];
	return n;
}

const char *pair_of(struct section *s, const char *key)
{
	for (int i = s ? s->n - 1 : -1; i >= 0; i--) // the last one counts
		if (!strcmp(s->pairs[i].key, key))
			return s->pairs[i].value;
	return NULL;
}

int mig_count(int board, struct section **out, int room)
{
	int n = 0;
	for (int i = 0; i < section_count; i++)
		if (sections[i].board == board && sections[i].mig >= 0 && n < room)
			out[n++] = &sections[i];
	return n;
}

const char *get(struct call *c, const char *key)
{
	if (fault(c, key, "absent"))
		return NULL;
	const char *value = fault(c, key, "value");
	return value ? value : pair_of(c->section, key);
}

R get_u64(struct call *c, const char *key, uint64_t *out)
{
	const char *value = get(c, key);
	if (!out)
		return INVALID;
	if (!value)
		return UNSUPPORTED;
	*out = value[0] == '-' ? (uint64_t)strtoll(value, NULL, 10) : strtoull(value, NULL, 10);
	return OK;
}

R get_u32(struct call *c, const char *key, uint32_t *out)
{
	uint64_t v;
	if (!out)
		return INVALID;
	R r = get_u64(c, key, &v);
	if (r == OK)
		*out = (uint32_t)v;
	return r;
}

R get_text(struct call *c, const char *key, char *out, unsigned length)
{
	const char *value = get(c, key);
	if (!out)
		return INVALID;
	if (!value)
		return UNSUPPORTED;
	if (fault(c, key, "unterminated")) {
		memset(out, 'x', length);
		return OK;
	}
	if (strlen(value) >= length)
		return SMALL;
	strcpy(out, value);
	return OK;
}

double seconds(void)
{
	const char *value = pair_of(section(-1, -1), "time");
	return value ? strtod(value, NULL) : 0;
}

uint64_t micros(void)
{
	const char *value = pair_of(section(-1, -1), "now");
	return value ? strtoull(value, NULL, 10) : 0;
}
