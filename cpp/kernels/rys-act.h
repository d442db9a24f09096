// Columns of activations, quantised for the products: alone, or four of them interleaved.

#pragma once

#include "rys-simd.h"

namespace rys {

// A column alone (n = 1) or interleaved with three others (n = 4): words of 4 k, then scales, then sums.
template <bool WIDE> struct act32 { // a scale per 32 k; WIDE: 16-bit words of (k, k + 2), (k + 1, k + 3)
    static constexpr int64_t Q = WIDE ? 2 : 1;
    static size_t bytes(int64_t k) { return Q * k + k / 32 * 8; }
    static const float *   d(const uint8_t * a, int64_t k, int64_t n) { return (const float *) (a + Q * k * n); }
    static const int32_t * s(const uint8_t * a, int64_t k, int64_t n) { return (const int32_t *) (a + (Q * k + k / 32 * 4) * n); }
};

struct act256 { // a scale per 256 k, sums per 16 k (i32) and pairs of sums per 32 k (i16)
    static size_t bytes(int64_t k) { return k + k / 256 * (4 + 64 + 16); }
    static const float *   d(const uint8_t * a, int64_t k, int64_t n) { return (const float *) (a + k * n); }
    static const int32_t * s(const uint8_t * a, int64_t k, int64_t n) { return (const int32_t *) (a + (k + k / 256 * 4) * n); }
    static const int16_t * p(const uint8_t * a, int64_t k, int64_t n) { return (const int16_t *) (a + (k + k / 256 * 68) * n); }
};

INLINE float max4(v128_t v) {
    v = wasm_f32x4_pmax(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    v = wasm_f32x4_pmax(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2));
    return wasm_f32x4_extract_lane(v, 0);
}

INLINE int32_t sum16(v128_t bytes) {
    v128_t v = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(bytes));
    v = wasm_i32x4_add(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    v = wasm_i32x4_add(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2));
    return wasm_i32x4_extract_lane(v, 0);
}

INLINE v128_t quantise16(const float * x, v128_t scale) {
    v128_t i[4];
    for (int j = 0; j < 4; j++) {
        i[j] = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(wasm_f32x4_mul(load(x + 4 * j), scale)));
    }
    return wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(i[0], i[1]), wasm_i16x8_narrow_i32x4(i[2], i[3]));
}

INLINE void put16(uint8_t * q, v128_t v, int64_t n) {
    if (n == 1) {
        store(q, v);
        return;
    }
    wasm_v128_store32_lane(q, v, 0);
    wasm_v128_store32_lane(q + 16, v, 1);
    wasm_v128_store32_lane(q + 32, v, 2);
    wasm_v128_store32_lane(q + 48, v, 3);
}

INLINE float abs_max(const float * x, int64_t k) {
    v128_t m0 = wasm_f32x4_const_splat(0), m1 = m0;
    for (int64_t i = 0; i < k; i += 8) {
        m0 = wasm_f32x4_pmax(m0, wasm_f32x4_abs(load(x + i)));
        m1 = wasm_f32x4_pmax(m1, wasm_f32x4_abs(load(x + i + 4)));
    }
    return max4(wasm_f32x4_pmax(m0, m1));
}

template <bool WIDE> static void act_q32(const float * x, int64_t k, int64_t k0, int64_t k1, uint8_t * a, int64_t c, int64_t n) {
    using A = act32<WIDE>;
    uint8_t * q = a + 4 * c;
    float *   d = (float *) A::d(a, k, n) + c;
    int32_t * s = (int32_t *) A::s(a, k, n) + c;
    for (int64_t i = k0; i < k1; i += 32) {
        const float  amax  = abs_max(x + i, 32);
        const v128_t scale = wasm_f32x4_splat(amax > 0 ? 127.0f / amax : 0.0f);
        int32_t      sum   = 0;
        for (int64_t j = i; j < i + 32; j += 16) {
            const v128_t v = quantise16(x + j, scale);
            if (WIDE) {
                const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl(v, 8), 8), odd = wasm_i16x8_shr(v, 8);
                put16(q + 2 * j * n, wasm_i32x4_shuffle(even, odd, 0, 4, 1, 5), n);
                put16(q + (2 * j + 16) * n, wasm_i32x4_shuffle(even, odd, 2, 6, 3, 7), n);
            } else {
                put16(q + j * n, v, n);
            }
            sum += sum16(v);
        }
        d[i / 32 * n] = amax / 127.0f;
        s[i / 32 * n] = sum;
    }
}

static void act_q256(const float * x, int64_t k, int64_t k0, int64_t k1, uint8_t * a, int64_t c, int64_t n) {
    uint8_t * q = a + 4 * c;
    float *   d = (float *) act256::d(a, k, n) + c;
    int32_t * s = (int32_t *) act256::s(a, k, n) + c;
    int16_t * p = (int16_t *) act256::p(a, k, n) + 2 * c;
    for (int64_t i = k0; i < k1; i += 256) {
        const float  amax  = abs_max(x + i, 256);
        const v128_t scale = wasm_f32x4_splat(amax > 0 ? 127.0f / amax : 0.0f);
        for (int64_t j = 0; j < 8; j++) {
            const v128_t v0 = quantise16(x + i + 32 * j, scale);
            const v128_t v1 = quantise16(x + i + 32 * j + 16, scale);
            put16(q + (i + 32 * j) * n, v0, n);
            put16(q + (i + 32 * j + 16) * n, v1, n);
            const int32_t s0 = sum16(v0), s1 = sum16(v1);
            s[(i / 16 + 2 * j) * n]     = s0;
            s[(i / 16 + 2 * j + 1) * n] = s1;
            p[i / 32 * n + j / 2 * 2 * n + j % 2] = (int16_t) (s0 + s1); // of the pair's [col][2]
        }
        d[i / 256 * n] = amax / 127.0f;
    }
}

} // namespace rys
