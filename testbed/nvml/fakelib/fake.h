// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// A libnvidia-ml.so.1 that reads what it answers from files beside itself. The files are
// replaced whole, and looked at on every call:
//
//   state   what the boards are and do; written by testbed/gpusim/nvml. "key value" lines,
//           first those of the system, after "board N" those of a board, after
//           "mig INDEX GI CI" those of a compute instance. A key that is not there is what
//           the board does not support (return 3).
//   faults  "DEVICE CALL KIND [ARGUMENT]" lines; DEVICE (the board's N, N/INDEX of an
//           instance, - without one) and CALL (a symbol, a symbol with its argument, or a
//           key of the state) are patterns of fnmatch.
//   events  "FIRST N TYPE DATA BOARD GI CI" lines: N events, numbered from FIRST.
//   trace   where it exists, each call is appended to it.
//   violations  what a caller must not do is appended to it.
//
// DRIVER is the version whose symbols and layouts it has: major * 1000 + minor.
#ifndef FAKE_H
#define FAKE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifndef DRIVER
#error "-DDRIVER=550127"
#endif

#define EXPORT __attribute__((visibility("default")))

typedef int R;
enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID = 2,
	UNSUPPORTED = 3,
	NOT_FOUND = 6,
	SMALL = 7,
	NO_DRIVER = 9,
	TIMEOUT = 10,
	NO_FUNCTION = 13,
	LOST = 15,
	VERSION = 25,
	NO_GPU = 28,
};

// handle is what a caller has of a board, or of a compute instance of it. Those of
// instances are used again: one means what has its index now.
struct handle {
	uint32_t magic;
	int slot; // in the list that was made at init
	int mig;  // index of an instance; -1: the board
};
typedef struct handle *Device;

struct pair {
	char *key, *value;
};

// section is the state of a board, of a compute instance, or of the system.
struct section {
	int board, mig, gi, ci; // mig is -1 for a board
	struct pair *pairs;
	int n, room;
};

// call is one call: it holds the lock until it leaves.
struct call {
	Device device;
	const char *name;
	struct section *section; // of the device; the system's for a call without one
	bool locked, busy, gpm;
};

R enter(struct call *c, Device d, const char *name);
void leave(struct call *c);
// interfere does what faults want to happen before a call answers: enter calls it.
R interfere(struct call *c);

// CALL begins a function: it returns at once what a fault wants, and leaves at its end.
#define CALL(d, name) \
	struct call c __attribute__((cleanup(leave))) = {0}; \
	{ \
		R entered = enter(&c, d, name); \
		if (entered != OK) \
			return entered; \
	}

// get is the value of a key, or what a fault makes of it; NULL: there is none.
const char *get(struct call *c, const char *key);
R get_u32(struct call *c, const char *key, uint32_t *out);
R get_u64(struct call *c, const char *key, uint64_t *out);
R get_text(struct call *c, const char *key, char *out, unsigned length);
// fault is the argument of a fault of that kind for a part of a call; NULL: none.
const char *fault(struct call *c, const char *part, const char *kind);
// fault_return is the return that a fault gives to a part of a call, else OK.
R fault_return(struct call *c, const char *part);

void violation(const char *text, const char *call);
double seconds(void);    // of the state
uint64_t micros(void);   // the same as time of day
// pause_call lets the lock go for so long.
void pause_call(struct call *c, unsigned ms);

struct section *section_of(Device d);
struct section *section(int board, int mig);
int boards(struct section **out, int room);
const char *pair_of(struct section *s, const char *key);
int mig_count(int board, struct section **out, int room);
Device handle_of(int slot, int mig);
int slots(void);
int board_number(int slot);
int slot_by_pci(const char *pci);
const char *path(const char *name, char *out, size_t length);

// file is one of the files, as it was when it was last read.
struct file {
	const char *name;
	struct timespec modified;
	ino_t inode;
	off_t size;
	char *text;
};
// changed reads the file again if it is another one; false: it is as it was.
bool changed(struct file *f);
void load_sections(void);
char *next_line(char **text);
char *word(char **text);
void append(int fd, const char *text);

#endif
