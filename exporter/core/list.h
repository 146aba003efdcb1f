#pragma once

#include <stddef.h>

/* The link of a singly linked list that points to `item`; with NULL, the one at the end:
 *
 *     *LIST_LINK(&first, item, next) = item->next;    removes
 *     *LIST_LINK(&first, NULL, next) = item;          appends
 */
#define LIST_LINK(first, item, next)                                                               \
    ({                                                                                             \
        __typeof__(first) link_ = (first);                                                         \
        while (*link_ != NULL && *link_ != (item)) {                                               \
            link_ = &(*link_)->next;                                                               \
        }                                                                                          \
        link_;                                                                                     \
    })
