// Rows in and out of a group of eight.

#pragma once

#include "rys-kernels.h"

#include <cstring>

namespace rys {

// One description serves both directions.
template <bool P> struct mover {
    static constexpr bool PACK = P;
    uint8_t * row;
    uint8_t * group;
    void move(int64_t at_row, int64_t at_group, size_t n) const {
        if (PACK) {
            memcpy(group + at_group, row + at_row, n);
        } else {
            memcpy(row + at_row, group + at_group, n);
        }
    }
    void word(int64_t at_row, int64_t at_group, uint32_t flip = 0) const {
        const uint8_t * from = PACK ? row + at_row : group + at_group;
        uint8_t *       to   = PACK ? group + at_group : row + at_row;
        put(to, get(from) ^ flip);
    }
    static uint32_t get(const uint8_t * p) {
        uint32_t v;
        memcpy(&v, p, 4);
        return v;
    }
    static void put(uint8_t * p, uint32_t v) { memcpy(p, &v, 4); }
};

template <class T> static void pack_rows(const uint8_t * row, uint8_t * group, int64_t r, int64_t k) {
    for (int64_t b = 0; b < k / T::BLOCK; b++) {
        T::move(mover<true>{ (uint8_t *) row + b * T::BYTES, group + b * T::BYTES * GROUP }, r);
    }
}

template <class T> static void unpack_rows(uint8_t * row, const uint8_t * group, int64_t r, int64_t k) {
    for (int64_t b = 0; b < k / T::BLOCK; b++) {
        T::move(mover<false>{ row + b * T::BYTES, (uint8_t *) group + b * T::BYTES * GROUP }, r);
    }
}

} // namespace rys
