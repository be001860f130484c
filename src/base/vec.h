/* vec.h - a growable array of any type: `VEC(struct node) nodes = {0};`.
 *
 * The fields are public: v.at[i], v.len. The capacity doubles and elements move, so keep indices, not pointers.
 */
#pragma once

#include <string.h>

#include "base/mem.h"

#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        size_t len, cap;                                                                                               \
    }

#define vec_reserve(v, n)                                                                                              \
    do {                                                                                                               \
        size_t want_ = (n);                                                                                            \
        if (want_ > (v)->cap) {                                                                                        \
            size_t cap_ = (v)->cap ? (v)->cap * 2 : 8;                                                                 \
            (v)->cap = cap_ > want_ ? cap_ : want_;                                                                    \
            (v)->at = mem_resize((v)->at, (v)->cap, sizeof *(v)->at);                                                  \
        }                                                                                                              \
    } while (0)

#define vec_push(v, x)                                                                                                 \
    do {                                                                                                               \
        vec_reserve(v, (v)->len + 1);                                                                                  \
        (v)->at[(v)->len++] = (x);                                                                                     \
    } while (0)

/* Grows or shrinks the vector to n elements; new elements are zeroed. */
#define vec_resize(v, n)                                                                                               \
    do {                                                                                                               \
        size_t to_ = (n);                                                                                              \
        vec_reserve(v, to_);                                                                                           \
        if (to_ > (v)->len)                                                                                            \
            memset((v)->at + (v)->len, 0, (to_ - (v)->len) * sizeof *(v)->at);                                         \
        (v)->len = to_;                                                                                                \
    } while (0)

/* Makes v an independent copy of `from`. The old contents of v are not freed. */
#define vec_copy(v, from)                                                                                              \
    do {                                                                                                               \
        (v)->len = (v)->cap = (from)->len;                                                                             \
        (v)->at = (from)->len ? mem_array((from)->len, sizeof *(from)->at) : NULL;                                     \
        if ((from)->len)                                                                                               \
            memcpy((v)->at, (from)->at, (from)->len * sizeof *(from)->at);                                             \
    } while (0)

/* Returns the index of the first element whose member is not below `value`. The elements are pointers, sorted by that
 * member. */
#define vec_lower_bound(v, member, value)                                                                              \
    __extension__({                                                                                                    \
        size_t low_ = 0, high_ = (v)->len;                                                                             \
        while (low_ < high_) {                                                                                         \
            size_t middle_ = low_ + (high_ - low_) / 2;                                                                \
            if ((v)->at[middle_]->member < (value))                                                                    \
                low_ = middle_ + 1;                                                                                    \
            else                                                                                                       \
                high_ = middle_;                                                                                       \
        }                                                                                                              \
        low_;                                                                                                          \
    })

#define vec_done(v)                                                                                                    \
    do {                                                                                                               \
        mem_free((v)->at);                                                                                             \
        memset((v), 0, sizeof *(v));                                                                                   \
    } while (0)
