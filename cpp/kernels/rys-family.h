// The families of types, each in a file of its own.

#pragma once

#include "rys-kernels.h"

namespace rys {

// The kernel of a type, or null if the type is of another family.
const kernel * kernel_q32(ggml_type type, dot_kind kind);  // rys-q32.cpp
const kernel * kernel_q256(ggml_type type, dot_kind kind); // rys-q256.cpp
const kernel * kernel_f16(ggml_type type);                 // rys-f16.cpp

using gemv_fn = void (*)(const uint8_t *, size_t, int64_t, const uint8_t *, float *, int64_t);

template <class T, gemv_fn MANY, gemv_fn ONE, int STREAMS = 2> static void gemv(const uint8_t * w, int64_t n, int64_t k, const uint8_t * act, float * y) {
    const size_t  group = k / T::BLOCK * T::BYTES * GROUP;
    const int64_t part  = n / STREAMS;
    for (int64_t i = 0; i < part; i++) { // far apart: streams for the processor to read ahead
        MANY(w + i * group, part * group, k, act, y + GROUP * i, GROUP * part);
    }
    for (int64_t i = part * STREAMS; i < n; i++) {
        ONE(w + i * group, 0, k, act, y + GROUP * i, 0);
    }
}

} // namespace rys
