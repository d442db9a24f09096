#pragma once

// Numbers of 16 bits to 32 and back, four at a time, with the bits of ggml's own conversions (WASM has no instruction for
// either). ggml looks one up after the other in a table of 256 KiB.

#include <wasm_simd128.h>

static inline v128_t rys_half_load(const void * p) {
    const v128_t h      = wasm_u32x4_load16x4(p);
    const v128_t a      = wasm_v128_and(h, wasm_i32x4_splat(0x7fff));
    const v128_t normal = wasm_f32x4_mul(wasm_i32x4_add(wasm_i32x4_shl(a, 13), wasm_i32x4_splat(0x70000000)), wasm_f32x4_splat(0x1.0p-112f));
    const v128_t small  = wasm_f32x4_sub(wasm_v128_or(a, wasm_i32x4_splat(0x3f000000)), wasm_f32x4_splat(0.5f));
    const v128_t value  = wasm_v128_bitselect(small, normal, wasm_i32x4_lt(a, wasm_i32x4_splat(0x400)));
    return wasm_v128_or(value, wasm_i32x4_shl(wasm_v128_xor(h, a), 16));
}

static inline void rys_half_store(void * p, v128_t f) {
    const v128_t twice = wasm_i32x4_shl(f, 1);
    const v128_t bias  = wasm_u32x4_max(wasm_v128_and(twice, wasm_u32x4_splat(0xff000000u)), wasm_i32x4_splat(0x71000000));
    const v128_t base  = wasm_f32x4_mul(wasm_f32x4_mul(wasm_f32x4_abs(f), wasm_f32x4_splat(0x1.0p+112f)), wasm_f32x4_splat(0x1.0p-110f));
    const v128_t bits  = wasm_f32x4_add(wasm_i32x4_add(wasm_u32x4_shr(bias, 1), wasm_i32x4_splat(0x07800000)), base);
    const v128_t value = wasm_i32x4_add(wasm_v128_and(wasm_u32x4_shr(bits, 13), wasm_i32x4_splat(0x7c00)), wasm_v128_and(bits, wasm_i32x4_splat(0x0fff)));
    const v128_t nan   = wasm_u32x4_gt(twice, wasm_u32x4_splat(0xff000000u));
    const v128_t sign  = wasm_v128_and(wasm_u32x4_shr(f, 16), wasm_i32x4_splat(0x8000));
    const v128_t half  = wasm_v128_or(wasm_v128_bitselect(wasm_i32x4_splat(0x7e00), value, nan), sign);
    wasm_v128_store64_lane(p, wasm_u16x8_narrow_i32x4(half, half), 0);
}
