// Kernels for repacked weights, 8 rows to a group: a 16-byte register holds 4 rows x 4 k of the weights, and meets the same
// 4 k of one column in every lane. UPSTREAM_SYNC.md says what decides their speed.

#include "rys-kernels.h"

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

// The value is "changed" here: neither clang nor wasm-opt may move its definition past this point or compute it twice. Left
// alone, clang sinks each product to its last use, and V8 spills the tile.
#define PIN(v) asm volatile("" : "+r"(v))
#define INLINE static inline __attribute__((always_inline))

namespace rys {

// --- small pieces ----------------------------------------------------------------------------------------------------

INLINE v128_t load(const void * p) { return wasm_v128_load(p); }
INLINE void   store(void * p, v128_t v) { wasm_v128_store(p, v); }

template <int L> INLINE v128_t lane(v128_t v) { return wasm_i32x4_shuffle(v, v, L, L, L, L); }

INLINE v128_t dot32(v128_t s, v128_t u, v128_t acc) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(s, u, acc); }
INLINE v128_t dot16(v128_t s, v128_t u, v128_t acc) { return wasm_i16x8_add(acc, wasm_i16x8_relaxed_dot_i8x16_i7x16(s, u)); }
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

// --- activations -----------------------------------------------------------------------------------------------------

// A column alone (n = 1) or interleaved with three others (n = 4): words of 4 k, then scales, then sums.
struct act32 { // a scale per 32 k
    static size_t bytes(int64_t k) { return k + k / 32 * 8; }
    template <typename T> static T * q(T * a, int64_t, int64_t) { return a; }
    static const float *   d(const uint8_t * a, int64_t k, int64_t n) { return (const float *) (a + k * n); }
    static const int32_t * s(const uint8_t * a, int64_t k, int64_t n) { return (const int32_t *) (a + (k + k / 32 * 4) * n); }
    static const uint8_t * q2(const uint8_t * a, int64_t k, int64_t n) { return a + bytes(k) * n; }
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

// SPLIT: what is positive and what is negative apart, both as 7-bit operands; the second follows the column's other parts
template <bool SPLIT> static void act_q32(const float * x, int64_t k, int64_t k0, int64_t k1, uint8_t * a, int64_t c, int64_t n) {
    uint8_t * q  = a + 4 * c;
    uint8_t * q2 = a + act32::bytes(k) * n + 4 * c;
    float *   d  = (float *) act32::d(a, k, n) + c;
    int32_t * s  = (int32_t *) act32::s(a, k, n) + c;
    for (int64_t i = k0; i < k1; i += 32) {
        const float  amax  = abs_max(x + i, 32);
        const v128_t scale = wasm_f32x4_splat(amax > 0 ? 127.0f / amax : 0.0f);
        int32_t      sum   = 0;
        for (int64_t j = i; j < i + 32; j += 16) {
            const v128_t v = quantise16(x + j, scale);
            if (SPLIT) {
                const v128_t zero = wasm_i8x16_const_splat(0);
                put16(q + j * n, wasm_i8x16_max(v, zero), n);
                put16(q2 + j * n, wasm_i8x16_max(wasm_i8x16_neg(v), zero), n);
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

// --- layouts ---------------------------------------------------------------------------------------------------------

// One description serves both directions.
template <bool PACK> struct mover {
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
        uint32_t v;
        memcpy(&v, from, 4);
        v ^= flip;
        memcpy(to, &v, 4);
    }
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

// --- types with a scale per 32 ----------------------------------------------------------------------------------------

// Weights as 7-bit operands: what is added to make them so (OFFSET) comes off through the sum of the activations. A dot
// product over FLUSH steps of 4 k stays below 2^15 in each 16-bit lane.
struct q4_0 {
    static constexpr int64_t BLOCK = 32, BYTES = sizeof(block_q4_0);
    static constexpr int     QS = 16, OFFSET = 8, FLUSH = 8;
    static constexpr bool    MIN = false;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(0, 2 * r, 2);
        for (int64_t j = 0; j < 4; j++) {
            m.word(2 + 4 * j, QS + 32 * j + 4 * r);
        }
    }
    INLINE void scales(const uint8_t * g, v128_t & d0, v128_t & d1) { halves_fast(load(g), d0, d1); }
    INLINE void mins(const uint8_t *, v128_t &, v128_t &) {}
    INLINE v128_t map(v128_t nibbles) { return nibbles; }
};

struct q4_1 : q4_0 {
    static constexpr int64_t BYTES = sizeof(block_q4_1);
    static constexpr int     QS = 32, OFFSET = 0;
    static constexpr bool    MIN = true;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(0, 2 * r, 2);
        m.move(2, 16 + 2 * r, 2);
        for (int64_t j = 0; j < 4; j++) {
            m.word(4 + 4 * j, QS + 32 * j + 4 * r);
        }
    }
    INLINE void mins(const uint8_t * g, v128_t & m0, v128_t & m1) { halves_fast(load(g + 16), m0, m1); }
};

struct mxfp4 : q4_0 {
    static constexpr int64_t BYTES = sizeof(block_mxfp4);
    static constexpr int     QS = 8, OFFSET = 12, FLUSH = 4;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(0, r, 1);
        for (int64_t j = 0; j < 4; j++) {
            m.word(1 + 4 * j, QS + 32 * j + 4 * r);
        }
    }
    INLINE void scales(const uint8_t * g, v128_t & d0, v128_t & d1) {
        const v128_t e = wasm_u16x8_load8x8(g);
        d0 = e8m0(wasm_u32x4_extend_low_u16x8(e));
        d1 = e8m0(wasm_u32x4_extend_high_u16x8(e));
    }
    INLINE v128_t map(v128_t nibbles) {
        return wasm_i8x16_swizzle(wasm_i8x16_const(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0), nibbles);
    }
};

// 8-bit values: U8 as unsigned operand (exact dot products only), else signed against split activations
template <bool U8> struct iq4_nl : q4_0 {
    static constexpr int OFFSET = U8 ? 128 : 0;
    INLINE v128_t map(v128_t nibbles) {
        const v128_t values = wasm_i8x16_const(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
        return wasm_i8x16_swizzle(U8 ? wasm_v128_xor(values, wasm_i8x16_const_splat(-128)) : values, nibbles);
    }
};

template <bool U8> struct q8_0 : q4_0 {
    static constexpr int64_t BYTES = sizeof(block_q8_0);
    static constexpr int     OFFSET = U8 ? 128 : 0;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(0, 2 * r, 2);
        for (int64_t j = 0; j < 8; j++) {
            m.word(2 + 4 * j, QS + 32 * j + 4 * r, U8 ? 0x80808080u : 0);
        }
    }
};

template <class T> constexpr bool is_bytes = T::BYTES == sizeof(block_q8_0);

enum dot_mode { DOT32, DOT16, SPLIT };

// steps j and j + 4 of one half of the rows
template <class T> INLINE void weights(const uint8_t * g, int j, int half, v128_t & lo, v128_t & hi) {
    if (is_bytes<T>) {
        lo = load(g + T::QS + 32 * j + 16 * half);
        hi = load(g + T::QS + 32 * (j + 4) + 16 * half);
    } else {
        const v128_t mask = wasm_i8x16_const_splat(0x0f);
        const v128_t w    = load(g + T::QS + 32 * j + 16 * half);
        lo = T::map(wasm_v128_and(w, mask));
        hi = T::map(wasm_v128_and(wasm_u16x8_shr(w, 4), mask));
    }
}

// One column times NS groups: several streams hide each other's latency.
template <class T, dot_mode MODE, int NS> static __attribute__((noinline))
void gemv32(const uint8_t * w, size_t stride, int64_t k, const uint8_t * act, float * y, int64_t y_stride) {
    const uint8_t * q  = act;
    const uint8_t * q2 = act32::q2(act, k, 1);
    const float *   d  = act32::d(act, k, 1);
    const int32_t * s  = act32::s(act, k, 1);
    v128_t f[NS][2];
    const uint8_t * g[NS];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = wasm_f32x4_const_splat(0);
        g[n] = w + n * stride;
    }
    for (int64_t b = 0; b < k / 32; b++) {
        const v128_t start = wasm_i32x4_splat(-T::OFFSET * s[b]);
        const v128_t a0 = load(q + 32 * b), a1 = load(q + 32 * b + 16);
        v128_t acc[NS][2], neg[NS][2];
        for (int n = 0; n < NS; n++) {
            acc[n][0] = acc[n][1] = MODE == DOT32 ? start : wasm_i32x4_const_splat(0);
            neg[n][0] = neg[n][1] = wasm_i32x4_const_splat(0);
        }
        if (MODE == SPLIT) {
            const v128_t n0 = load(q2 + 32 * b), n1 = load(q2 + 32 * b + 16);
            auto step = [&](int j, v128_t p_lo, v128_t p_hi, v128_t n_lo, v128_t n_hi) __attribute__((always_inline)) {
                for (int n = 0; n < NS; n++) {
                    for (int h = 0; h < 2; h++) {
                        v128_t lo, hi;
                        weights<T>(g[n], j, h, lo, hi);
                        acc[n][h] = dot32(lo, p_lo, acc[n][h]); PIN(acc[n][h]);
                        neg[n][h] = dot32(lo, n_lo, neg[n][h]); PIN(neg[n][h]);
                        acc[n][h] = dot32(hi, p_hi, acc[n][h]); PIN(acc[n][h]);
                        neg[n][h] = dot32(hi, n_hi, neg[n][h]); PIN(neg[n][h]);
                    }
                }
            };
            step(0, lane<0>(a0), lane<0>(a1), lane<0>(n0), lane<0>(n1));
            step(1, lane<1>(a0), lane<1>(a1), lane<1>(n0), lane<1>(n1));
            step(2, lane<2>(a0), lane<2>(a1), lane<2>(n0), lane<2>(n1));
            step(3, lane<3>(a0), lane<3>(a1), lane<3>(n0), lane<3>(n1));
        } else {
            auto step = [&](int j, v128_t s_lo, v128_t s_hi) __attribute__((always_inline)) {
                PIN(s_lo);
                PIN(s_hi);
                for (int n = 0; n < NS; n++) {
                    for (int h = 0; h < 2; h++) {
                        v128_t lo, hi;
                        weights<T>(g[n], j, h, lo, hi);
                        if (MODE == DOT32) {
                            acc[n][h] = dot32(s_lo, lo, acc[n][h]); PIN(acc[n][h]);
                            acc[n][h] = dot32(s_hi, hi, acc[n][h]); PIN(acc[n][h]);
                        } else {
                            acc[n][h] = dot16(s_lo, lo, acc[n][h]); PIN(acc[n][h]);
                            acc[n][h] = dot16(s_hi, hi, acc[n][h]); PIN(acc[n][h]);
                        }
                    }
                }
            };
            step(0, lane<0>(a0), lane<0>(a1));
            step(1, lane<1>(a0), lane<1>(a1));
            if (MODE == DOT16 && T::FLUSH == 4) {
                for (int n = 0; n < NS; n++) {
                    for (int h = 0; h < 2; h++) {
                        neg[n][h] = widen(acc[n][h]);
                        acc[n][h] = wasm_i32x4_const_splat(0);
                    }
                }
            }
            step(2, lane<2>(a0), lane<2>(a1));
            step(3, lane<3>(a0), lane<3>(a1));
        }
        const v128_t da = wasm_f32x4_splat(d[b]);
        for (int n = 0; n < NS; n++) {
            v128_t dw[2];
            T::scales(g[n], dw[0], dw[1]);
            for (int h = 0; h < 2; h++) {
                v128_t i = acc[n][h];
                if (MODE == DOT16) {
                    i = wasm_i32x4_add(start, T::FLUSH == 4 ? wasm_i32x4_add(neg[n][h], widen(i)) : widen(i));
                } else if (MODE == SPLIT) {
                    i = wasm_i32x4_sub(i, neg[n][h]);
                }
                f[n][h] = wasm_f32x4_add(f[n][h], wasm_f32x4_mul(wasm_f32x4_convert_i32x4(i), wasm_f32x4_mul(dw[h], da)));
            }
            if (T::MIN) {
                const v128_t sa = wasm_f32x4_splat(d[b] * (float) s[b]);
                v128_t m[2];
                T::mins(g[n], m[0], m[1]);
                f[n][0] = wasm_f32x4_add(f[n][0], wasm_f32x4_mul(m[0], sa));
                f[n][1] = wasm_f32x4_add(f[n][1], wasm_f32x4_mul(m[1], sa));
            }
            g[n] += T::BYTES * GROUP;
        }
    }
    for (int n = 0; n < NS; n++) {
        store(y + y_stride * n, f[n][0]);
        store(y + y_stride * n + 4, f[n][1]);
    }
}

// 8 rows of at most PANEL k, unpacked once for all columns
constexpr int64_t PANEL = 2048;

struct panel {
    alignas(16) uint8_t w[PANEL * GROUP];
    alignas(16) float   d[PANEL / 32 * GROUP];
    alignas(16) float   m[PANEL / 32 * GROUP];
    alignas(16) int32_t sc[PANEL / 16 * GROUP];
    alignas(16) int16_t pairs[PANEL / 32 * GROUP];
};

// What one tile reads of a quad of columns
struct quad {
    const uint8_t * q;
    const uint8_t * q2;
    const float *   d;
    const int32_t * s;
    const int16_t * p;
};

// The tile: 8 rows x 4 columns, rows in lanes: c<column><half>
#define TILE_DECLARE v128_t c00, c01, c10, c11, c20, c21, c30, c31
#define TILE_START(e0, e1, e2, e3) \
    c00 = (e0); PIN(c00); c01 = c00; PIN(c01); c10 = (e1); PIN(c10); c11 = c10; PIN(c11); \
    c20 = (e2); PIN(c20); c21 = c20; PIN(c21); c30 = (e3); PIN(c30); c31 = c30; PIN(c31)
#define TILE_STEP_(DOT, w, a, FIRST) do { \
        v128_t w0_ = load(w), w1_ = load((w) + 16), a_ = load(a), s_; PIN(w0_); PIN(w1_); PIN(a_); \
        s_ = lane<0>(a_); PIN(s_); c00 = FIRST(DOT, s_, w0_, c00); PIN(c00); c01 = FIRST(DOT, s_, w1_, c01); PIN(c01); \
        s_ = lane<1>(a_); PIN(s_); c10 = FIRST(DOT, s_, w0_, c10); PIN(c10); c11 = FIRST(DOT, s_, w1_, c11); PIN(c11); \
        s_ = lane<2>(a_); PIN(s_); c20 = FIRST(DOT, s_, w0_, c20); PIN(c20); c21 = FIRST(DOT, s_, w1_, c21); PIN(c21); \
        s_ = lane<3>(a_); PIN(s_); c30 = FIRST(DOT, s_, w0_, c30); PIN(c30); c31 = FIRST(DOT, s_, w1_, c31); PIN(c31); \
    } while (0)
#define ACT_SIGNED(DOT, s, w, c) DOT(s, w, c)
#define ACT_SPLIT(DOT, s, w, c)  DOT(w, s, c)
#define TILE_STEP(DOT, w, a)  TILE_STEP_(DOT, w, a, ACT_SIGNED)
#define TILE_SPLIT(w, a)      TILE_STEP_(dot32, w, a, ACT_SPLIT)
#define TILE_EACH(F) F(0, 0, c00); F(0, 1, c01); F(1, 0, c10); F(1, 1, c11); F(2, 0, c20); F(2, 1, c21); F(3, 0, c30); F(3, 1, c31)

// A place in memory that the compiler does not take apart into registers
INLINE v128_t * in_memory(v128_t * p) {
    asm volatile("" : "+r"(p) : : "memory");
    return p;
}

// f[8]: sums of the tile, column by column
template <class T, dot_mode MODE> static __attribute__((noinline))
void tile32(const uint8_t * w, int64_t w_stride, const float * dw, const float * mw, int64_t nb, const quad & a, v128_t * f) {
    const uint8_t * q  = a.q;
    const uint8_t * q2 = a.q2;
    v128_t sums[8];
    v128_t * part = in_memory(sums);
    for (int64_t b = 0; b < nb; b++) {
        TILE_DECLARE;
        v128_t start = wasm_i32x4_const_splat(0);
        if (T::OFFSET) {
            start = wasm_i32x4_mul(load(a.s + 4 * b), wasm_i32x4_const_splat(-T::OFFSET));
        }
        if (MODE == DOT32) {
            if (T::OFFSET) {
                TILE_START(lane<0>(start), lane<1>(start), lane<2>(start), lane<3>(start));
            } else {
                TILE_START(start, start, start, start);
            }
            for (int t = 0; t < 8; t += 4) {
                TILE_STEP(dot32, w + 32 * t, q + 16 * t);
                TILE_STEP(dot32, w + 32 * t + 32, q + 16 * t + 16);
                TILE_STEP(dot32, w + 32 * t + 64, q + 16 * t + 32);
                TILE_STEP(dot32, w + 32 * t + 96, q + 16 * t + 48);
            }
        } else if (MODE == DOT16) {
            const v128_t zero = wasm_i32x4_const_splat(0);
            TILE_START(zero, zero, zero, zero);
            for (int t = 0; t < 8; t += 4) {
                TILE_STEP(dot16, w + 32 * t, q + 16 * t);
                TILE_STEP(dot16, w + 32 * t + 32, q + 16 * t + 16);
                TILE_STEP(dot16, w + 32 * t + 64, q + 16 * t + 32);
                TILE_STEP(dot16, w + 32 * t + 96, q + 16 * t + 48);
                if (T::FLUSH == 4 && t == 0) {
#define KEEP(C, H, c) part[2 * C + H] = widen(c); c = zero; PIN(c)
                    TILE_EACH(KEEP);
#undef KEEP
                }
            }
#define WIDEN(C, H, c) c = wasm_i32x4_add(widen(c), lane<C>(start)); if (T::FLUSH == 4) { c = wasm_i32x4_add(c, part[2 * C + H]); }
            TILE_EACH(WIDEN);
#undef WIDEN
        } else {
            const v128_t zero = wasm_i32x4_const_splat(0);
            TILE_START(zero, zero, zero, zero);
            for (int t = 0; t < 8; t += 2) {
                TILE_SPLIT(w + 32 * t, q2 + 16 * t);
                TILE_SPLIT(w + 32 * t + 32, q2 + 16 * t + 16);
            }
#define NEGATE(C, H, c) c = wasm_i32x4_neg(c); PIN(c)
            TILE_EACH(NEGATE);
#undef NEGATE
            for (int t = 0; t < 8; t += 2) {
                TILE_SPLIT(w + 32 * t, q + 16 * t);
                TILE_SPLIT(w + 32 * t + 32, q + 16 * t + 16);
            }
        }
        const v128_t d = load(a.d + 4 * b), d0 = load(dw + 8 * b), d1 = load(dw + 8 * b + 4);
#define SCALE(C, H, c) f[2 * C + H] = wasm_f32x4_add(f[2 * C + H], wasm_f32x4_mul(wasm_f32x4_convert_i32x4(c), wasm_f32x4_mul(H ? d1 : d0, lane<C>(d))))
        TILE_EACH(SCALE);
#undef SCALE
        if (T::MIN) {
            const v128_t sa = wasm_f32x4_mul(d, wasm_f32x4_convert_i32x4(load(a.s + 4 * b)));
            const v128_t m0 = load(mw + 8 * b), m1 = load(mw + 8 * b + 4);
#define LEAST(C, H, c) f[2 * C + H] = wasm_f32x4_add(f[2 * C + H], wasm_f32x4_mul(H ? m1 : m0, lane<C>(sa)))
            TILE_EACH(LEAST);
#undef LEAST
        }
        w  += w_stride;
        q  += 128;
        q2 += 128;
    }
}

template <class T> static void panel32(const uint8_t * g, int64_t nb, panel & p) {
    for (int64_t b = 0; b < nb; b++, g += T::BYTES * GROUP) {
        v128_t x0, x1;
        T::scales(g, x0, x1);
        store(p.d + 8 * b, x0);
        store(p.d + 8 * b + 4, x1);
        if (T::MIN) {
            T::mins(g, x0, x1);
            store(p.m + 8 * b, x0);
            store(p.m + 8 * b + 4, x1);
        }
        if (!is_bytes<T>) {
            uint8_t * w = p.w + 256 * b;
            for (int j = 0; j < 4; j++) {
                for (int h = 0; h < 2; h++) {
                    weights<T>(g, j, h, x0, x1);
                    store(w + 32 * j + 16 * h, x0);
                    store(w + 32 * (j + 4) + 16 * h, x1);
                }
            }
        }
    }
}

// Columns' sums continue where the last panel left them.
INLINE void tile_load(v128_t * f, float * const * y, int64_t row, int64_t rows, bool first) {
    for (int c = 0; c < 4; c++) {
        alignas(16) float t[8] = {};
        if (!first && y[c]) {
            memcpy(t, y[c] + row, rows * sizeof(float));
        }
        f[2 * c]     = load(t);
        f[2 * c + 1] = load(t + 4);
    }
}

INLINE void tile_store(const v128_t * f, float * const * y, int64_t row, int64_t rows) {
    for (int c = 0; c < 4; c++) {
        if (!y[c]) {
            continue;
        }
        if (rows == GROUP) {
            store(y[c] + row, f[2 * c]);
            store(y[c] + row + 4, f[2 * c + 1]);
        } else {
            memcpy(y[c] + row, &f[2 * c], rows * sizeof(float));
        }
    }
}

static int64_t panel_size(int64_t k, int64_t most) {
    const int64_t n = (k + most - 1) / most;
    return (k + n - 1) / n + 255 & ~(int64_t) 255;
}

template <class T, dot_mode MODE>
static void gemm32(const uint8_t * w, int64_t k, const uint8_t * act, int64_t n, float * const * y, int64_t row, int64_t rows) {
    panel         p;
    const size_t  act_quad = QUAD * (MODE == SPLIT ? act32::bytes(k) + k : act32::bytes(k));
    const int64_t step     = panel_size(k, PANEL);
    for (int64_t k0 = 0; k0 < k; k0 += step) {
        const int64_t   nb = std::min(step, k - k0) / 32;
        const uint8_t * g  = w + k0 / 32 * T::BYTES * GROUP;
        panel32<T>(g, nb, p);
        const uint8_t * pw     = is_bytes<T> ? g + T::QS : p.w;
        const int64_t   stride = is_bytes<T> ? T::BYTES * GROUP : 256;
        for (int64_t i = 0; i < n; i++) {
            const uint8_t * a = act + i * act_quad;
            const quad      x = { a + k0 * 4, act32::q2(a, k, 4) + k0 * 4, act32::d(a, k, 4) + k0 / 32 * 4, act32::s(a, k, 4) + k0 / 32 * 4, nullptr };
            v128_t sums[8];
            v128_t * f = in_memory(sums);
            tile_load(f, y + 4 * i, row, rows, k0 == 0);
            tile32<T, MODE>(pw, stride, p.d, p.m, nb, x, f);
            tile_store(f, y + 4 * i, row, rows);
        }
    }
}

// --- types with integer scales within 256 -----------------------------------------------------------------------------

// Scales and minima of q4_K and q5_K: bytes of two neighbours in k stand side by side, row by row
INLINE void scales_k(const uint8_t * g, v128_t sc[4], v128_t mn[4]) {
    const v128_t six = wasm_i8x16_const_splat(63), two = wasm_i8x16_const_splat(0x30), four = wasm_i8x16_const_splat(15);
    const v128_t v0 = load(g), v1 = load(g + 16), v2 = load(g + 32), v3 = load(g + 48), v4 = load(g + 64), v5 = load(g + 80);
    sc[0] = wasm_v128_and(v0, six);
    sc[1] = wasm_v128_and(v1, six);
    mn[0] = wasm_v128_and(v2, six);
    mn[1] = wasm_v128_and(v3, six);
    sc[2] = wasm_v128_or(wasm_v128_and(v4, four), wasm_v128_and(wasm_u16x8_shr(v0, 2), two));
    sc[3] = wasm_v128_or(wasm_v128_and(v5, four), wasm_v128_and(wasm_u16x8_shr(v1, 2), two));
    mn[2] = wasm_v128_or(wasm_v128_and(wasm_u16x8_shr(v4, 4), four), wasm_v128_and(wasm_u16x8_shr(v2, 2), two));
    mn[3] = wasm_v128_or(wasm_v128_and(wasm_u16x8_shr(v5, 4), four), wasm_v128_and(wasm_u16x8_shr(v3, 2), two));
}

template <bool FIVE> struct q45_K {
    static constexpr int64_t BLOCK = 256, BYTES = FIVE ? sizeof(block_q5_K) : sizeof(block_q4_K);
    static constexpr int     SCALES = 32, QH = 128, QS = FIVE ? 384 : 128;
    static constexpr int     SUB = 32, OFFSET = 0, FLUSH = FIVE ? 4 : 8;
    static constexpr bool    MIN = true;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(0, 2 * r, 2);
        m.move(2, 16 + 2 * r, 2);
        for (int64_t i = 0; i < 12; i++) {
            m.move(4 + i, SCALES + i / 2 * 16 + 2 * r + i % 2, 1);
        }
        if (FIVE) {
            for (int64_t j = 0; j < 8; j++) {
                m.word(16 + 4 * j, QH + 32 * j + 4 * r);
            }
        }
        for (int64_t j = 0; j < 32; j++) {
            m.word((FIVE ? 48 : 16) + 4 * j, QS + 32 * j + 4 * r);
        }
    }
    // step j of the sub-blocks 2c and 2c + 1
    template <int C> INLINE void weights(const uint8_t * g, int j, int half, v128_t & lo, v128_t & hi) {
        const v128_t mask = wasm_i8x16_const_splat(0x0f);
        const v128_t w    = load(g + QS + 256 * C + 32 * j + 16 * half);
        lo = wasm_v128_and(w, mask);
        hi = wasm_v128_and(wasm_u16x8_shr(w, 4), mask);
        if (FIVE) {
            const v128_t bit = wasm_i8x16_const_splat(0x10);
            const v128_t h   = load(g + QH + 32 * j + 16 * half);
            lo = wasm_v128_or(lo, wasm_v128_and(C < 2 ? wasm_i16x8_shl(h, 4 - 2 * C) : C == 2 ? h : wasm_u16x8_shr(h, 2), bit));
            hi = wasm_v128_or(hi, wasm_v128_and(C < 2 ? wasm_i16x8_shl(h, 3 - 2 * C) : wasm_u16x8_shr(h, 2 * C - 3), bit));
        }
    }
};

template <class T, dot_mode MODE, int C> INLINE
void gemv_k_chunk(const uint8_t * g, const uint8_t * q, v128_t sc, v128_t tot[2]) {
    v128_t l0 = wasm_i32x4_const_splat(0), l1 = l0, h0 = l0, h1 = l0;
    v128_t p0 = l0, p1 = l0, p2 = l0, p3 = l0;
    for (int j4 = 0; j4 < 8; j4 += 4) {
        const v128_t a = load(q + 64 * C + 4 * j4), b = load(q + 64 * C + 32 + 4 * j4);
        auto step = [&](int j, v128_t s_lo, v128_t s_hi) __attribute__((always_inline)) {
            v128_t lo, hi;
            PIN(s_lo);
            PIN(s_hi);
            T::template weights<C>(g, j, 0, lo, hi);
            if (MODE == DOT32) {
                l0 = dot32(s_lo, lo, l0); PIN(l0);
                h0 = dot32(s_hi, hi, h0); PIN(h0);
            } else {
                l0 = dot16(s_lo, lo, l0); PIN(l0);
                h0 = dot16(s_hi, hi, h0); PIN(h0);
            }
            T::template weights<C>(g, j, 1, lo, hi);
            if (MODE == DOT32) {
                l1 = dot32(s_lo, lo, l1); PIN(l1);
                h1 = dot32(s_hi, hi, h1); PIN(h1);
            } else {
                l1 = dot16(s_lo, lo, l1); PIN(l1);
                h1 = dot16(s_hi, hi, h1); PIN(h1);
            }
        };
        step(j4, lane<0>(a), lane<0>(b));
        step(j4 + 1, lane<1>(a), lane<1>(b));
        step(j4 + 2, lane<2>(a), lane<2>(b));
        step(j4 + 3, lane<3>(a), lane<3>(b));
        if (MODE == DOT16 && (T::FLUSH == 4 || j4 == 4)) {
            p0 = wasm_i32x4_add(p0, widen(l0));
            p1 = wasm_i32x4_add(p1, widen(l1));
            p2 = wasm_i32x4_add(p2, widen(h0));
            p3 = wasm_i32x4_add(p3, widen(h1));
            l0 = l1 = h0 = h1 = wasm_i32x4_const_splat(0);
        }
    }
    if (MODE == DOT16) {
        l0 = p0, l1 = p1, h0 = p2, h1 = p3;
    }
    const v128_t s_lo = wasm_v128_and(sc, wasm_i16x8_const_splat(0xff)), s_hi = wasm_u16x8_shr(sc, 8);
    tot[0] = wasm_i32x4_add(tot[0], wasm_i32x4_add(wasm_i32x4_mul(l0, wasm_u32x4_extend_low_u16x8(s_lo)), wasm_i32x4_mul(h0, wasm_u32x4_extend_low_u16x8(s_hi))));
    tot[1] = wasm_i32x4_add(tot[1], wasm_i32x4_add(wasm_i32x4_mul(l1, wasm_u32x4_extend_high_u16x8(s_lo)), wasm_i32x4_mul(h1, wasm_u32x4_extend_high_u16x8(s_hi))));
}

INLINE void add_scaled(v128_t & f, v128_t tot, v128_t dw, v128_t da) {
    f = wasm_f32x4_add(f, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tot), wasm_f32x4_mul(dw, da)));
}

INLINE void sub_scaled(v128_t & f, v128_t tot, v128_t dw, v128_t da) {
    f = wasm_f32x4_sub(f, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tot), wasm_f32x4_mul(dw, da)));
}

template <bool FIVE, dot_mode MODE, int NS> static __attribute__((noinline))
void gemv_q45_K(const uint8_t * w, size_t stride, int64_t k, const uint8_t * act, float * y, int64_t y_stride) {
    using T = q45_K<FIVE>;
    const uint8_t * q = act;
    const float *   d = act256::d(act, k, 1);
    const int16_t * p = act256::p(act, k, 1);
    v128_t f[NS][2];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = wasm_f32x4_const_splat(0);
    }
    for (int64_t b = 0; b < k / 256; b++) {
        const v128_t da = wasm_f32x4_splat(d[b]);
        const v128_t bs = load(p + 8 * b);
        for (int n = 0; n < NS; n++) {
            const uint8_t * g = w + n * stride;
            v128_t sc[4], mn[4], tot[2];
            scales_k(g + T::SCALES, sc, mn);
            tot[0] = tot[1] = wasm_i32x4_const_splat(0);
            v128_t min0 = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(mn[0]), lane<0>(bs));
            v128_t min1 = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(mn[0]), lane<0>(bs));
            min0 = wasm_i32x4_add(min0, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(mn[1]), lane<1>(bs)));
            min1 = wasm_i32x4_add(min1, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(mn[1]), lane<1>(bs)));
            min0 = wasm_i32x4_add(min0, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(mn[2]), lane<2>(bs)));
            min1 = wasm_i32x4_add(min1, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(mn[2]), lane<2>(bs)));
            min0 = wasm_i32x4_add(min0, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(mn[3]), lane<3>(bs)));
            min1 = wasm_i32x4_add(min1, wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(mn[3]), lane<3>(bs)));
            PIN(min0);
            PIN(min1);
            gemv_k_chunk<T, MODE, 0>(g, q, sc[0], tot);
            PIN(tot[0]); PIN(tot[1]);
            gemv_k_chunk<T, MODE, 1>(g, q, sc[1], tot);
            PIN(tot[0]); PIN(tot[1]);
            gemv_k_chunk<T, MODE, 2>(g, q, sc[2], tot);
            PIN(tot[0]); PIN(tot[1]);
            gemv_k_chunk<T, MODE, 3>(g, q, sc[3], tot);
            v128_t d0, d1, m0, m1;
            halves_fast(load(g), d0, d1);
            halves_fast(load(g + 16), m0, m1);
            add_scaled(f[n][0], tot[0], d0, da);
            add_scaled(f[n][1], tot[1], d1, da);
            sub_scaled(f[n][0], min0, m0, da);
            sub_scaled(f[n][1], min1, m1, da);
        }
        w += T::BYTES * GROUP;
        q += 256;
    }
    for (int n = 0; n < NS; n++) {
        store(y + y_stride * n, f[n][0]);
        store(y + y_stride * n + 4, f[n][1]);
    }
}

template <bool FIVE> static void panel_q45_K(const uint8_t * g, int64_t nb, panel & p) {
    using T = q45_K<FIVE>;
    for (int64_t b = 0; b < nb; b++, g += T::BYTES * GROUP) {
        v128_t x0, x1, sc[4], mn[4];
        halves(load(g), x0, x1);
        store(p.d + 8 * b, x0);
        store(p.d + 8 * b + 4, x1);
        halves(load(g + 16), x0, x1);
        store(p.m + 8 * b, x0);
        store(p.m + 8 * b + 4, x1);
        scales_k(g + T::SCALES, sc, mn);
        for (int i = 0; i < 4; i++) {
            store(p.pairs + 64 * b + 16 * i, wasm_u16x8_extend_low_u8x16(mn[i]));
            store(p.pairs + 64 * b + 16 * i + 8, wasm_u16x8_extend_high_u8x16(mn[i]));
            const v128_t lo = wasm_v128_and(sc[i], wasm_i16x8_const_splat(0xff)), hi = wasm_u16x8_shr(sc[i], 8);
            int32_t *    s  = p.sc + 64 * b + 16 * i;
            store(s, wasm_u32x4_extend_low_u16x8(lo));
            store(s + 4, wasm_u32x4_extend_high_u16x8(lo));
            store(s + 8, wasm_u32x4_extend_low_u16x8(hi));
            store(s + 12, wasm_u32x4_extend_high_u16x8(hi));
        }
        auto chunk = [&](auto c) __attribute__((always_inline)) {
            constexpr int C = decltype(c)::value;
            uint8_t *     w = p.w + 2048 * b + 512 * C;
            for (int j = 0; j < 8; j++) {
                for (int h = 0; h < 2; h++) {
                    T::template weights<C>(g, j, h, x0, x1);
                    store(w + 32 * j + 16 * h, x0);
                    store(w + 32 * (j + 8) + 16 * h, x1);
                }
            }
        };
        chunk(std::integral_constant<int, 0>());
        chunk(std::integral_constant<int, 1>());
        chunk(std::integral_constant<int, 2>());
        chunk(std::integral_constant<int, 3>());
    }
}

struct q6_K {
    static constexpr int64_t BLOCK = 256, BYTES = sizeof(block_q6_K);
    static constexpr int     SCALES = 16, QS = 144; // [2 halves of k][8 steps][2 halves of rows][ql, ql + 32, qh]
    static constexpr int     SUB = 16, OFFSET = 32, FLUSH = 2;
    static constexpr bool    MIN = false;
    template <class M> static void move(const M & m, int64_t r) {
        m.move(208, 2 * r, 2);
        for (int64_t i = 0; i < 16; i++) {
            m.move(192 + i, SCALES + 8 * i + r, 1);
        }
        for (int64_t n = 0; n < 2; n++) {
            for (int64_t j = 0; j < 8; j++) {
                const int64_t at = QS + ((n * 8 + j) * 2 + r / 4) * 48 + r % 4 * 4;
                m.word(64 * n + 4 * j, at);
                m.word(64 * n + 32 + 4 * j, at + 16);
                m.word(128 + 32 * n + 4 * j, at + 32);
            }
        }
    }
    // steps j, j + 8, j + 16, j + 24 of half n of k
    INLINE void weights(const uint8_t * g, int n, int j, int half, v128_t v[4]) {
        const v128_t four = wasm_i8x16_const_splat(0x0f), two = wasm_i8x16_const_splat(0x30);
        const uint8_t * at = g + QS + ((n * 8 + j) * 2 + half) * 48;
        const v128_t a = load(at), b = load(at + 16), h = load(at + 32);
        v[0] = wasm_v128_or(wasm_v128_and(a, four), wasm_v128_and(wasm_i16x8_shl(h, 4), two));
        v[1] = wasm_v128_or(wasm_v128_and(b, four), wasm_v128_and(wasm_i16x8_shl(h, 2), two));
        v[2] = wasm_v128_or(wasm_v128_and(wasm_u16x8_shr(a, 4), four), wasm_v128_and(h, two));
        v[3] = wasm_v128_or(wasm_v128_and(wasm_u16x8_shr(b, 4), four), wasm_v128_and(wasm_u16x8_shr(h, 2), two));
    }
};

INLINE void scales_q6(const uint8_t * s, v128_t & s0, v128_t & s1) {
    const v128_t v = wasm_i16x8_load8x8(s);
    s0 = wasm_i32x4_extend_low_i16x8(v);
    s1 = wasm_i32x4_extend_high_i16x8(v);
}

// 16 k each of the sub-blocks P and P + 2 of a part of 128: four sums, so that they stay in registers
template <dot_mode MODE, int P> INLINE
void gemv_q6_pair(const uint8_t * g, int part, const uint8_t * q, const int32_t * s, v128_t tot[2]) {
    using T = q6_K;
    const int kh = part / 2, j0 = part % 2 * 4, sub = 8 * kh + part % 2 + 2 * P;
    const uint8_t * at = g + T::QS + (kh * 8 + j0) * 96;
    const v128_t a = load(q + 128 * kh + 32 * P + 4 * j0), b = load(q + 128 * kh + 32 * P + 64 + 4 * j0);
    const v128_t start_lo = wasm_i32x4_splat(-T::OFFSET * s[sub]), start_hi = wasm_i32x4_splat(-T::OFFSET * s[sub + 4]);
    const v128_t zero = wasm_i32x4_const_splat(0);
    v128_t l0 = MODE == DOT32 ? start_lo : zero, l1 = l0, h0 = MODE == DOT32 ? start_hi : zero, h1 = h0;
    v128_t p0 = start_lo, p1 = start_lo, p2 = start_hi, p3 = start_hi;
    auto unpack = [&](int j, int half, v128_t & lo, v128_t & hi) __attribute__((always_inline)) {
        const v128_t four = wasm_i8x16_const_splat(0x0f), two = wasm_i8x16_const_splat(0x30);
        const v128_t x = load(at + 96 * j + 48 * half + 16 * P), y = load(at + 96 * j + 48 * half + 32);
        lo = wasm_v128_or(wasm_v128_and(x, four), wasm_v128_and(wasm_i16x8_shl(y, P ? 2 : 4), two));
        hi = wasm_v128_or(wasm_v128_and(wasm_u16x8_shr(x, 4), four), wasm_v128_and(P ? wasm_u16x8_shr(y, 2) : y, two));
    };
    auto step = [&](int j, v128_t s_lo, v128_t s_hi) __attribute__((always_inline)) {
        v128_t lo, hi;
        PIN(s_lo);
        PIN(s_hi);
        unpack(j, 0, lo, hi);
        l0 = MODE == DOT32 ? dot32(s_lo, lo, l0) : dot16(s_lo, lo, l0); PIN(l0);
        h0 = MODE == DOT32 ? dot32(s_hi, hi, h0) : dot16(s_hi, hi, h0); PIN(h0);
        unpack(j, 1, lo, hi);
        l1 = MODE == DOT32 ? dot32(s_lo, lo, l1) : dot16(s_lo, lo, l1); PIN(l1);
        h1 = MODE == DOT32 ? dot32(s_hi, hi, h1) : dot16(s_hi, hi, h1); PIN(h1);
    };
    auto flush = [&]() __attribute__((always_inline)) {
        if (MODE == DOT16) {
            p0 = wasm_i32x4_add(p0, widen(l0));
            p1 = wasm_i32x4_add(p1, widen(l1));
            p2 = wasm_i32x4_add(p2, widen(h0));
            p3 = wasm_i32x4_add(p3, widen(h1));
            l0 = l1 = h0 = h1 = zero;
        }
    };
    step(0, lane<0>(a), lane<0>(b));
    step(1, lane<1>(a), lane<1>(b));
    flush();
    step(2, lane<2>(a), lane<2>(b));
    step(3, lane<3>(a), lane<3>(b));
    flush();
    if (MODE == DOT16) {
        l0 = p0, l1 = p1, h0 = p2, h1 = p3;
    }
    v128_t s0, s1;
    scales_q6(g + T::SCALES + 8 * sub, s0, s1);
    tot[0] = wasm_i32x4_add(tot[0], wasm_i32x4_mul(l0, s0));
    tot[1] = wasm_i32x4_add(tot[1], wasm_i32x4_mul(l1, s1));
    scales_q6(g + T::SCALES + 8 * (sub + 4), s0, s1);
    tot[0] = wasm_i32x4_add(tot[0], wasm_i32x4_mul(h0, s0));
    tot[1] = wasm_i32x4_add(tot[1], wasm_i32x4_mul(h1, s1));
}

template <dot_mode MODE, int NS> static __attribute__((noinline))
void gemv_q6_K(const uint8_t * w, size_t stride, int64_t k, const uint8_t * act, float * y, int64_t y_stride) {
    using T = q6_K;
    const uint8_t * q = act;
    const float *   d = act256::d(act, k, 1);
    const int32_t * s = act256::s(act, k, 1);
    v128_t f[NS][2];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = wasm_f32x4_const_splat(0);
    }
    for (int64_t b = 0; b < k / 256; b++) {
        const v128_t da = wasm_f32x4_splat(d[b]);
        for (int n = 0; n < NS; n++) {
            const uint8_t * g = w + n * stride;
            v128_t tot[2];
            tot[0] = tot[1] = wasm_i32x4_const_splat(0);
            for (int part = 0; part < 4; part++) { // half of k, 16 k of each 32
                gemv_q6_pair<MODE, 0>(g, part, q, s + 16 * b, tot);
                PIN(tot[0]); PIN(tot[1]);
                gemv_q6_pair<MODE, 1>(g, part, q, s + 16 * b, tot);
                PIN(tot[0]); PIN(tot[1]);
            }
            v128_t d0, d1;
            halves_fast(load(g), d0, d1);
            add_scaled(f[n][0], tot[0], d0, da);
            add_scaled(f[n][1], tot[1], d1, da);
        }
        w += T::BYTES * GROUP;
        q += 256;
    }
    for (int n = 0; n < NS; n++) {
        store(y + y_stride * n, f[n][0]);
        store(y + y_stride * n + 4, f[n][1]);
    }
}

static void panel_q6_K(const uint8_t * g, int64_t nb, panel & p) {
    using T = q6_K;
    for (int64_t b = 0; b < nb; b++, g += T::BYTES * GROUP) {
        v128_t x0, x1;
        halves(load(g), x0, x1);
        store(p.d + 8 * b, x0);
        store(p.d + 8 * b + 4, x1);
        for (int i = 0; i < 16; i++) {
            scales_q6(g + T::SCALES + 8 * i, x0, x1);
            store(p.sc + 128 * b + 8 * i, x0);
            store(p.sc + 128 * b + 8 * i + 4, x1);
        }
        for (int n = 0; n < 2; n++) {
            uint8_t * w = p.w + 2048 * b + 1024 * n;
            for (int j = 0; j < 8; j++) {
                for (int h = 0; h < 2; h++) {
                    v128_t v[4];
                    T::weights(g, n, j, h, v);
                    for (int i = 0; i < 4; i++) {
                        store(w + 32 * (j + 8 * i) + 16 * h, v[i]);
                    }
                }
            }
        }
    }
}

template <class T, dot_mode MODE> static __attribute__((noinline))
void tile256(const panel & x, int64_t nb, const quad & a, v128_t * f) {
    const uint8_t * w  = x.w;
    const uint8_t * q  = a.q;
    const int32_t * sc = x.sc;
    const int32_t * s  = a.s;
    constexpr int   STEPS = T::SUB / 4;
    v128_t sums[8], totals[8];
    v128_t * part = in_memory(sums);
    v128_t * tot  = in_memory(totals);
    for (int64_t b = 0; b < nb; b++) {
        for (int i = 0; i < 256 / T::SUB; i++) {
            TILE_DECLARE;
            const v128_t zero = wasm_i32x4_const_splat(0);
            v128_t start = zero;
            if (T::OFFSET) {
                start = wasm_i32x4_mul(load(s), wasm_i32x4_const_splat(-T::OFFSET));
            }
            if (MODE == DOT32) {
                if (T::OFFSET) {
                    TILE_START(lane<0>(start), lane<1>(start), lane<2>(start), lane<3>(start));
                } else {
                    TILE_START(zero, zero, zero, zero);
                }
                for (int t = 0; t < STEPS; t += 4) {
                    TILE_STEP(dot32, w + 32 * t, q + 16 * t);
                    TILE_STEP(dot32, w + 32 * t + 32, q + 16 * t + 16);
                    TILE_STEP(dot32, w + 32 * t + 64, q + 16 * t + 32);
                    TILE_STEP(dot32, w + 32 * t + 96, q + 16 * t + 48);
                }
            } else {
                TILE_START(zero, zero, zero, zero);
                for (int t = 0; t < STEPS; t += 2) {
                    TILE_STEP(dot16, w + 32 * t, q + 16 * t);
                    TILE_STEP(dot16, w + 32 * t + 32, q + 16 * t + 16);
                    if ((t + 2) % T::FLUSH == 0 && t + 2 < STEPS) {
#define KEEP(C, H, c) part[2 * C + H] = t + 2 == T::FLUSH ? widen(c) : wasm_i32x4_add(part[2 * C + H], widen(c)); c = zero; PIN(c)
                        TILE_EACH(KEEP);
#undef KEEP
                    }
                }
#define WIDEN(C, H, c) c = widen(c); if (T::OFFSET) { c = wasm_i32x4_add(c, lane<C>(start)); } if (T::FLUSH < STEPS) { c = wasm_i32x4_add(c, part[2 * C + H]); }
                TILE_EACH(WIDEN);
#undef WIDEN
            }
            const v128_t s0 = load(sc), s1 = load(sc + 4);
            if (i == 0) {
#define SCALE(C, H, c) tot[2 * C + H] = wasm_i32x4_mul(c, H ? s1 : s0)
                TILE_EACH(SCALE);
#undef SCALE
            } else {
#define SCALE(C, H, c) tot[2 * C + H] = wasm_i32x4_add(tot[2 * C + H], wasm_i32x4_mul(c, H ? s1 : s0))
                TILE_EACH(SCALE);
#undef SCALE
            }
            w  += 32 * STEPS;
            q  += 16 * STEPS;
            sc += 8;
            s  += 4 * T::SUB / 16;
        }
        const v128_t d = load(a.d + 4 * b), d0 = load(x.d + 8 * b), d1 = load(x.d + 8 * b + 4);
#define SCALE(C, H, c) add_scaled(f[2 * C + H], tot[2 * C + H], H ? d1 : d0, lane<C>(d))
        TILE_EACH(SCALE);
#undef SCALE
        if (T::MIN) {
            TILE_DECLARE;
            const v128_t zero = wasm_i32x4_const_splat(0);
            TILE_START(zero, zero, zero, zero);
            for (int i = 0; i < 4; i++) {
                const v128_t p0 = load(x.pairs + 64 * b + 16 * i), p1 = load(x.pairs + 64 * b + 16 * i + 8), bs = load(a.p + 32 * b + 8 * i);
#define DOT(C, H, c) c = wasm_i32x4_add(c, wasm_i32x4_dot_i16x8(H ? p1 : p0, lane<C>(bs))); PIN(c)
                TILE_EACH(DOT);
#undef DOT
            }
            const v128_t m0 = load(x.m + 8 * b), m1 = load(x.m + 8 * b + 4);
#define LEAST(C, H, c) sub_scaled(f[2 * C + H], c, H ? m1 : m0, lane<C>(d))
            TILE_EACH(LEAST);
#undef LEAST
        }
    }
}

template <class T, dot_mode MODE, void (*UNPACK)(const uint8_t *, int64_t, panel &)>
static void gemm256(const uint8_t * w, int64_t k, const uint8_t * act, int64_t n, float * const * y, int64_t row, int64_t rows) {
    panel         p;
    const size_t  act_quad = QUAD * act256::bytes(k);
    const int64_t step     = panel_size(k, PANEL);
    for (int64_t k0 = 0; k0 < k; k0 += step) {
        const int64_t nb = std::min(step, k - k0) / 256;
        UNPACK(w + k0 / 256 * T::BYTES * GROUP, nb, p);
        for (int64_t i = 0; i < n; i++) {
            const uint8_t * a = act + i * act_quad;
            const quad      x = { a + k0 * 4, nullptr, act256::d(a, k, 4) + k0 / 256 * 4, act256::s(a, k, 4) + k0 / 16 * 4, act256::p(a, k, 4) + k0 / 32 * 4 };
            v128_t sums[8];
            v128_t * f = in_memory(sums);
            tile_load(f, y + 4 * i, row, rows, k0 == 0);
            tile256<T, MODE>(p, nb, x, f);
            tile_store(f, y + 4 * i, row, rows);
        }
    }
}

// --- f16 --------------------------------------------------------------------------------------------------------------

struct f16 {
    static constexpr int64_t BLOCK = 4, BYTES = 8; // [4 k][8 rows]
    template <class M> static void move(const M & m, int64_t r) {
        for (int64_t i = 0; i < 4; i++) {
            m.move(2 * i, 16 * i + 2 * r, 2);
        }
    }
};

static size_t act_bytes_f32(int64_t k) { return k * sizeof(float); }

static void act_f32(const float * x, int64_t, int64_t k0, int64_t k1, uint8_t * a, int64_t c, int64_t n) {
    float * to = (float *) a + c;
    for (int64_t i = k0; i < k1; i++) {
        to[i * n] = x[i];
    }
}

template <int NS> static __attribute__((noinline))
void gemv_f16(const uint8_t * w, size_t stride, int64_t k, const uint8_t * act, float * y, int64_t y_stride) {
    v128_t f[NS][2];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = wasm_f32x4_const_splat(0);
    }
    for (int64_t i = 0; i < k; i += 4) {
        const v128_t a = load(act + 4 * i);
        auto step = [&](int j, v128_t x) __attribute__((always_inline)) {
            PIN(x);
            v128_t h[NS], small = wasm_i32x4_const_splat(0);
            for (int n = 0; n < NS; n++) {
                h[n]  = load(w + n * stride + 16 * (i + j));
                small = wasm_v128_or(small, is_small(h[n]));
            }
            const bool slow = __builtin_expect(wasm_v128_any_true(small), 0);
            for (int n = 0; n < NS; n++) {
                v128_t w0, w1;
                if (slow) {
                    halves(h[n], w0, w1);
                } else {
                    halves_normal(h[n], w0, w1);
                }
                f[n][0] = wasm_f32x4_add(f[n][0], wasm_f32x4_mul(w0, x)); PIN(f[n][0]);
                f[n][1] = wasm_f32x4_add(f[n][1], wasm_f32x4_mul(w1, x)); PIN(f[n][1]);
            }
        };
        step(0, lane<0>(a));
        step(1, lane<1>(a));
        step(2, lane<2>(a));
        step(3, lane<3>(a));
    }
    for (int n = 0; n < NS; n++) {
        store(y + y_stride * n, f[n][0]);
        store(y + y_stride * n + 4, f[n][1]);
    }
}

static __attribute__((noinline)) void tile_f16(const uint8_t * w, int64_t k, const uint8_t * a, v128_t * f) {
    TILE_DECLARE;
    c00 = f[0], c01 = f[1], c10 = f[2], c11 = f[3], c20 = f[4], c21 = f[5], c30 = f[6], c31 = f[7];
#define MADD(s, w, c) wasm_f32x4_add(c, wasm_f32x4_mul(s, w))
    for (int64_t i = 0; i < k; i += 4, w += 128, a += 64) {
        TILE_STEP(MADD, w, a);
        TILE_STEP(MADD, w + 32, a + 16);
        TILE_STEP(MADD, w + 64, a + 32);
        TILE_STEP(MADD, w + 96, a + 48);
    }
#undef MADD
    f[0] = c00, f[1] = c01, f[2] = c10, f[3] = c11, f[4] = c20, f[5] = c21, f[6] = c30, f[7] = c31;
}

static void gemm_f16(const uint8_t * w, int64_t k, const uint8_t * act, int64_t n, float * const * y, int64_t row, int64_t rows) {
    constexpr int64_t MOST = 512;
    alignas(16) float p[MOST * GROUP];
    const int64_t step = panel_size(k, MOST);
    for (int64_t k0 = 0; k0 < k; k0 += step) {
        const int64_t nk = std::min(step, k - k0);
        for (int64_t i = 0; i < nk; i++) {
            v128_t x0, x1;
            halves_fast(load(w + 16 * (k0 + i)), x0, x1);
            store(p + 8 * i, x0);
            store(p + 8 * i + 4, x1);
        }
        for (int64_t i = 0; i < n; i++) {
            v128_t sums[8];
            v128_t * f = in_memory(sums);
            tile_load(f, y + 4 * i, row, rows, k0 == 0);
            tile_f16((const uint8_t *) p, nk, act + (i * k + k0) * 4 * sizeof(float), f);
            tile_store(f, y + 4 * i, row, rows);
        }
    }
}

// --- which ------------------------------------------------------------------------------------------------------------

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

template <class T, dot_mode MODE> static kernel kernel32() {
    return {
        T::BLOCK, (size_t) T::BYTES, pack_rows<T>, unpack_rows<T>,
        [](int64_t k) -> size_t { return act32::bytes(k) + (MODE == SPLIT ? k : 0); },
        act_q32<MODE == SPLIT>,
        gemv<T, gemv32<T, MODE, 2>, gemv32<T, MODE, 1>>,
        gemm32<T, MODE>,
    };
}

template <class T, dot_mode MODE, gemv_fn TWO, gemv_fn ONE, void (*UNPACK)(const uint8_t *, int64_t, panel &)> static kernel kernel256() {
    return { T::BLOCK, (size_t) T::BYTES, pack_rows<T>, unpack_rows<T>, act256::bytes, act_q256, gemv<T, TWO, ONE>, gemm256<T, MODE, UNPACK> };
}

dot_kind dot_probe() {
    // Not constants: the compiler must not know better than the processor
    volatile int8_t s = -128, u = -1;
    const v128_t    v = dot32(wasm_i8x16_splat(s), wasm_i8x16_splat(u), wasm_i32x4_const_splat(0));
    switch (wasm_i32x4_extract_lane(v, 0)) {
        case -128 * 255 * 4: return dot_kind::exact;
        case 128 * 4:        return dot_kind::native;
        default:             return dot_kind::emulated;
    }
}

const char * kernels_name() {
    switch (dot_probe()) {
        case dot_kind::exact:  return "exact";
        case dot_kind::native: return "signed";
        default:               return "emulated";
    }
}

template <dot_mode MODE, bool U8> static const kernel * kernel_of(ggml_type type) {
    constexpr dot_mode BYTES = U8 ? DOT32 : SPLIT;
    static const kernel k4_0   = kernel32<q4_0, MODE>();
    static const kernel k4_1   = kernel32<q4_1, MODE>();
    static const kernel kmxfp4 = kernel32<mxfp4, MODE>();
    static const kernel kiq4   = kernel32<iq4_nl<U8>, BYTES>();
    static const kernel k8_0   = kernel32<q8_0<U8>, BYTES>();
    static const kernel k4_K   = kernel256<q45_K<false>, MODE, gemv_q45_K<false, MODE, 2>, gemv_q45_K<false, MODE, 1>, panel_q45_K<false>>();
    static const kernel k5_K   = kernel256<q45_K<true>, MODE, gemv_q45_K<true, MODE, 2>, gemv_q45_K<true, MODE, 1>, panel_q45_K<true>>();
    static const kernel k6_K   = kernel256<q6_K, MODE, gemv_q6_K<MODE, 2>, gemv_q6_K<MODE, 1>, panel_q6_K>();
    static const kernel kf16   = { f16::BLOCK, (size_t) f16::BYTES, pack_rows<f16>, unpack_rows<f16>, act_bytes_f32, act_f32, gemv<f16, gemv_f16<4>, gemv_f16<1>, 4>, gemm_f16 };
    switch (type) {
        case GGML_TYPE_Q4_0:   return &k4_0;
        case GGML_TYPE_Q4_1:   return &k4_1;
        case GGML_TYPE_Q8_0:   return &k8_0;
        case GGML_TYPE_IQ4_NL: return &kiq4;
        case GGML_TYPE_MXFP4:  return &kmxfp4;
        case GGML_TYPE_Q4_K:   return &k4_K;
        case GGML_TYPE_Q5_K:   return &k5_K;
        case GGML_TYPE_Q6_K:   return &k6_K;
        case GGML_TYPE_F16:    return &kf16;
        default:               return nullptr;
    }
}

const kernel * kernel_for(ggml_type type) {
    static const dot_kind kind = dot_probe();
    switch (kind) {
        case dot_kind::exact:  return kernel_of<DOT32, true>(type);
        case dot_kind::native: return kernel_of<DOT32, false>(type);
        default:               return kernel_of<DOT16, false>(type);
    }
}

} // namespace rys
