#pragma once

// Attention of single tokens over a cache of f16. Upstream rounds the query and each step of the weighted sum to 16 bits,
// which saves time where the processor has such instructions; WASM has none. With our kernels both stay at 32 bits.

#include "kernels/rys-half.h"
#include "kernels/rys-repack.h"

// Without repacked weights attention is upstream's, bit for bit.
static inline bool rys_wide_attention() { return rys_repack_in_use(); }

// Four numbers in as few instructions as can be: the exponent is mended by a product, which is exact. An infinity, which
// makes nothing but NaN of a cache, is read as 65536.
static inline v128_t rys_finite_half_load(const void * p) {
    const v128_t bits = wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13), wasm_u32x4_splat(0x8fffe000u));
    return wasm_f32x4_mul(bits, wasm_f32x4_splat(0x1.0p+112f));
}

static inline float rys_dot_half(int64_t n, const void * half, const float * x) {
    const ggml_fp16_t * h = (const ggml_fp16_t *) half;
    v128_t  sum[4] = {};
    int64_t i = 0;
    for (; i + 15 < n; i += 16) {
        for (int j = 0; j < 4; j++) {
            sum[j] = wasm_f32x4_add(sum[j], wasm_f32x4_mul(rys_finite_half_load(h + i + 4 * j), wasm_v128_load(x + i + 4 * j)));
        }
    }
    for (; i + 3 < n; i += 4) {
        sum[0] = wasm_f32x4_add(sum[0], wasm_f32x4_mul(rys_finite_half_load(h + i), wasm_v128_load(x + i)));
    }
    const v128_t all = wasm_f32x4_add(wasm_f32x4_add(sum[0], sum[1]), wasm_f32x4_add(sum[2], sum[3]));
    float s = wasm_f32x4_extract_lane(all, 0) + wasm_f32x4_extract_lane(all, 1) + wasm_f32x4_extract_lane(all, 2) + wasm_f32x4_extract_lane(all, 3);
    for (; i < n; i++) {
        s += GGML_CPU_FP16_TO_FP32(h[i]) * x[i];
    }
    return s;
}

// y += half * scale
static inline void rys_mad_half(int64_t n, float * y, const void * half, float scale) {
    const ggml_fp16_t * h = (const ggml_fp16_t *) half;
    const v128_t by = wasm_f32x4_splat(scale);
    int64_t i = 0;
    for (; i + 3 < n; i += 4) {
        wasm_v128_store(y + i, wasm_f32x4_add(wasm_v128_load(y + i), wasm_f32x4_mul(rys_finite_half_load(h + i), by)));
    }
    for (; i < n; i++) {
        y[i] += GGML_CPU_FP16_TO_FP32(h[i]) * scale;
    }
}
