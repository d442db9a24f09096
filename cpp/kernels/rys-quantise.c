// Activations to blocks of 8-bit numbers, with the bits of upstream's reference. Upstream's SIMD form for WASM cuts off
// where the reference rounds: up to twice the error, always towards zero.

#define GGML_COMMON_DECL_C
#include "ggml-common.h"

#include "ggml-impl.h"
#include "quants.h"

#include <assert.h>
#include <wasm_simd128.h>

// Writes 32 rounded numbers; returns the scale.
static inline float quantise_32(const float * x, int8_t * q, v128_t * sum) {
    v128_t v[8], amax = wasm_f32x4_splat(0.0f);
    for (int j = 0; j < 8; j++) {
        v[j] = wasm_v128_load(x + 4 * j);
        amax = wasm_f32x4_pmax(amax, wasm_f32x4_abs(v[j]));
    }
    amax = wasm_f32x4_pmax(amax, wasm_i32x4_shuffle(amax, amax, 2, 3, 0, 1));
    amax = wasm_f32x4_pmax(amax, wasm_i32x4_shuffle(amax, amax, 1, 0, 3, 2));
    const float d  = wasm_f32x4_extract_lane(amax, 0) / 127;
    const float id = d ? 1.0f / d : 0.0f;
    v128_t i[8];
    for (int j = 0; j < 8; j++) {
        // roundf: halves away from zero. The difference to the integer part is exact.
        const v128_t s    = wasm_f32x4_mul(v[j], wasm_f32x4_splat(id));
        const v128_t t    = wasm_f32x4_trunc(s);
        const v128_t far  = wasm_f32x4_ge(wasm_f32x4_abs(wasm_f32x4_sub(s, t)), wasm_f32x4_splat(0.5f));
        const v128_t sign = wasm_v128_and(s, wasm_i32x4_splat(INT32_MIN));
        const v128_t one  = wasm_v128_or(wasm_v128_and(far, wasm_f32x4_splat(1.0f)), sign);
        i[j] = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_add(t, one));
        *sum = wasm_i32x4_add(*sum, i[j]);
    }
    for (int j = 0; j < 8; j += 4) {
        wasm_v128_store(q + 4 * j, wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(i[j], i[j + 1]), wasm_i16x8_narrow_i32x4(i[j + 2], i[j + 3])));
    }
    return d;
}

void quantize_row_q8_0(const float * GGML_RESTRICT x, void * GGML_RESTRICT vy, int64_t k) {
    assert(k % QK8_0 == 0);
    block_q8_0 * GGML_RESTRICT y = vy;
    for (int64_t i = 0; i < k / QK8_0; i++) {
        v128_t sum = wasm_i32x4_splat(0);
        y[i].d = GGML_FP32_TO_FP16(quantise_32(x + i * QK8_0, y[i].qs, &sum));
    }
}

void quantize_row_q8_1(const float * GGML_RESTRICT x, void * GGML_RESTRICT vy, int64_t k) {
    assert(k % QK8_1 == 0);
    block_q8_1 * GGML_RESTRICT y = vy;
    for (int64_t i = 0; i < k / QK8_1; i++) {
        v128_t sum = wasm_i32x4_splat(0);
        const float d = quantise_32(x + i * QK8_1, y[i].qs, &sum);
        y[i].d = GGML_FP32_TO_FP16(d);
        y[i].s = GGML_FP32_TO_FP16((wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1) +
                                    wasm_i32x4_extract_lane(sum, 2) + wasm_i32x4_extract_lane(sum, 3)) * d);
    }
}
