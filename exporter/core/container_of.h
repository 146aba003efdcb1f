#pragma once

#include <stddef.h>

/* The struct that holds `member`, which `pointer` points to. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
