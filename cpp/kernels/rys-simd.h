// What all kernels are written in: relaxed SIMD in short names, and halves of floats. UPSTREAM_SYNC.md says what decides
// their speed.

#pragma once

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>


// The value is "changed" here: neither clang nor wasm-opt may move its definition past this point or compute it twice. Left
// alone, clang sinks each product to its last use, and V8 spills the tile.
#define PIN(v) asm volatile("" : "+r"(v))
#define INLINE static inline __attribute__((always_inline))

namespace rys {

INLINE v128_t load(const void * p) { return wasm_v128_load(p); }
INLINE void   store(void * p, v128_t v) { wasm_v128_store(p, v); }

template <int L> INLINE v128_t lane(v128_t v) { return wasm_i32x4_shuffle(v, v, L, L, L, L); }

INLINE v128_t dot32(v128_t s, v128_t u, v128_t acc) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(s, u, acc); }
INLINE v128_t dot16(v128_t s, v128_t u, v128_t acc) { return wasm_i16x8_add(acc, wasm_i16x8_relaxed_dot_i8x16_i7x16(s, u)); }
INLINE v128_t dot_wide(v128_t s, v128_t w, v128_t acc) { return wasm_i32x4_add(acc, wasm_i32x4_dot_i16x8(s, w)); }
INLINE v128_t widen(v128_t acc16) { return wasm_i32x4_extadd_pairwise_i16x8(acc16); }

// f16 in the low halves of lanes (sign-extended) to f32. Exact for all finite values.
INLINE v128_t half32(v128_t x) {
    const v128_t mag  = wasm_v128_and(x, wasm_i32x4_const_splat(0x7fff));
    const v128_t sign = wasm_v128_and(x, wasm_i32x4_const_splat((int) 0x80000000));
    const v128_t tiny = wasm_i32x4_lt(mag, wasm_i32x4_const_splat(0x400)); // no implicit one: 2^-14 * (1.m - 1)
    const v128_t bits = wasm_i32x4_add(wasm_i32x4_add(wasm_i32x4_shl(mag, 13), wasm_i32x4_const_splat(112 << 23)),
                                       wasm_v128_and(tiny, wasm_i32x4_const_splat(1 << 23)));
    return wasm_v128_or(sign, wasm_f32x4_sub(bits, wasm_v128_and(tiny, wasm_f32x4_const_splat(0x1p-14f))));
}

INLINE void halves(v128_t h, v128_t & lo, v128_t & hi) {
    lo = half32(wasm_i32x4_extend_low_i16x8(h));
    hi = half32(wasm_i32x4_extend_high_i16x8(h));
}

// Zeros, and values below 2^-14: those as f32 operands would cost a trap in the processor.
INLINE v128_t is_small(v128_t h) {
    return wasm_i16x8_lt(wasm_v128_and(h, wasm_i16x8_const_splat(0x7fff)), wasm_i16x8_const_splat(0x400));
}

// The same for all others, shorter.
INLINE void halves_normal(v128_t h, v128_t & lo, v128_t & hi) {
    const v128_t mask  = wasm_i32x4_const_splat((int) 0x8fffe000);
    const v128_t scale = wasm_f32x4_const_splat(0x1p112f);
    lo = wasm_f32x4_mul(wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_extend_low_i16x8(h), 13), mask), scale);
    hi = wasm_f32x4_mul(wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_extend_high_i16x8(h), 13), mask), scale);
}

INLINE void halves_fast(v128_t h, v128_t & lo, v128_t & hi) {
    if (__builtin_expect(wasm_v128_any_true(is_small(h)), 0)) {
        halves(h, lo, hi);
    } else {
        halves_normal(h, lo, hi);
    }
}

// e8m0 exponents (lanes of u32) to half their value, as GGML_E8M0_TO_FP32_HALF
INLINE v128_t e8m0(v128_t e) {
    const v128_t tiny = wasm_i32x4_lt(e, wasm_i32x4_const_splat(2));
    const v128_t low  = wasm_i32x4_add(wasm_i32x4_const_splat(0x00200000), wasm_v128_and(wasm_i32x4_eq(e, wasm_i32x4_const_splat(1)), wasm_i32x4_const_splat(0x00200000)));
    return wasm_v128_bitselect(low, wasm_i32x4_shl(wasm_i32x4_sub(e, wasm_i32x4_const_splat(1)), 23), tiny);
}

} // namespace rys
