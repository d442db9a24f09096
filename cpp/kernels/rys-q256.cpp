// Types with integer scales within 256 k: q4_K, q5_K, q6_K.

#include "rys-act.h"
#include "rys-family.h"
#include "rys-layout.h"
#include "rys-tile.h"

#include <type_traits>

namespace rys {

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

// One group's block: its sums, times its scales within; of the minima as well
template <bool FIVE, dot_mode MODE> INLINE
void gemv_block(q45_K<FIVE>, const uint8_t * g, const uint8_t * q, const int32_t *, const int16_t * p, v128_t tot[2], v128_t min[2]) {
    using T = q45_K<FIVE>;
    const v128_t bs = load(p);
    v128_t sc[4], mn[4];
    scales_k(g + T::SCALES, sc, mn);
    auto add = [&](v128_t m, v128_t pair) __attribute__((always_inline)) {
        min[0] = wasm_i32x4_add(min[0], wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(m), pair));
        min[1] = wasm_i32x4_add(min[1], wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(m), pair));
    };
    add(mn[0], lane<0>(bs));
    add(mn[1], lane<1>(bs));
    add(mn[2], lane<2>(bs));
    add(mn[3], lane<3>(bs));
    PIN(min[0]); PIN(min[1]);
    gemv_k_chunk<T, MODE, 0>(g, q, sc[0], tot);
    PIN(tot[0]); PIN(tot[1]);
    gemv_k_chunk<T, MODE, 1>(g, q, sc[1], tot);
    PIN(tot[0]); PIN(tot[1]);
    gemv_k_chunk<T, MODE, 2>(g, q, sc[2], tot);
    PIN(tot[0]); PIN(tot[1]);
    gemv_k_chunk<T, MODE, 3>(g, q, sc[3], tot);
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

// Six bits each of three steps fill three bytes but for their upper two bits, which hold the fourth.
struct q6_K {
    static constexpr int64_t BLOCK = 256, BYTES = sizeof(block_q6_K);
    static constexpr int     SCALES = 16; // [4 parts][2 halves of rows][4 sub-blocks][4 rows]
    static constexpr int     QS = 144;    // [2 halves of k][8 steps][2 halves of rows][3]
    static constexpr int     SUB = 16, OFFSET = 32, FLUSH = 2;
    static constexpr bool    MIN = false;
    // part: of 128 k, every other sub-block
    static constexpr int64_t part(int64_t sub) { return sub / 8 * 2 + sub % 2; }
    template <class M> static void move(const M & m, int64_t r) {
        m.move(208, 2 * r, 2);
        for (int64_t i = 0; i < 16; i++) {
            m.move(192 + i, SCALES + 32 * part(i) + 16 * (r / 4) + 4 * (i % 8 / 2) + r % 4, 1);
        }
        constexpr uint32_t four = 0x0f0f0f0f, two = 0x03030303;
        for (int64_t n = 0; n < 2; n++) {
            for (int64_t j = 0; j < 8; j++) {
                uint8_t * g = m.group + QS + ((n * 8 + j) * 2 + r / 4) * 48 + r % 4 * 4;
                uint8_t * w = m.row + 64 * n + 4 * j;
                uint8_t * h = m.row + 128 + 32 * n + 4 * j;
                if (M::PACK) {
                    const uint32_t a = M::get(w), b = M::get(w + 32), c = M::get(h);
                    const uint32_t last = ((b >> 4) & four) | ((c >> 6) & two) << 4;
                    M::put(g,      (a & four)        | (c & two) << 4        | (last & two) << 6);
                    M::put(g + 16, (b & four)        | ((c >> 2) & two) << 4 | ((last >> 2) & two) << 6);
                    M::put(g + 32, ((a >> 4) & four) | ((c >> 4) & two) << 4 | ((last >> 4) & two) << 6);
                } else {
                    const uint32_t a = M::get(g), b = M::get(g + 16), c = M::get(g + 32);
                    const uint32_t last = ((a >> 6) & two) | ((b >> 6) & two) << 2 | ((c >> 6) & two) << 4;
                    M::put(w,      (a & four) | (c & four) << 4);
                    M::put(w + 32, (b & four) | (last & four) << 4);
                    M::put(h,      ((a >> 4) & two) | ((b >> 4) & two) << 2 | ((c >> 4) & two) << 4 | ((last >> 4) & two) << 6);
                }
            }
        }
    }
    // steps j, j + 8, j + 16, j + 24 of a half of k, at the three registers of one half of the rows
    INLINE void weights(const uint8_t * at, v128_t six, v128_t v[4]) {
        const v128_t a = load(at), b = load(at + 16), c = load(at + 32);
        v[0] = wasm_v128_and(a, six);
        v[1] = wasm_v128_and(b, six);
        v[2] = wasm_v128_and(c, six);
        v[3] = wasm_v128_or(wasm_v128_or(wasm_u16x8_shr(wasm_v128_andnot(a, six), 6), wasm_u16x8_shr(wasm_v128_andnot(b, six), 4)),
                            wasm_u16x8_shr(wasm_v128_andnot(c, six), 2));
    }
    // of a part's four sub-blocks, for one half of the rows
    INLINE void scales(const uint8_t * g, int part, int half, v128_t v[2]) {
        const v128_t x = load(g + SCALES + 32 * part + 16 * half);
        v[0] = wasm_i16x8_extend_low_i8x16(x);
        v[1] = wasm_i16x8_extend_high_i8x16(x);
    }
};

// Four sub-blocks of 16 k for half of the rows. The sums take no offset here: it comes off for all sub-blocks at once.
template <dot_mode MODE> INLINE
void gemv_q6_part(const uint8_t * g, int part, int half, const v128_t a[4], v128_t six, v128_t & tot) {
    using T = q6_K;
    const uint8_t * at = g + T::QS + (part / 2 * 8 + part % 2 * 4) * 96 + 48 * half;
    const v128_t zero = wasm_i32x4_const_splat(0);
    v128_t c0 = zero, c1 = zero, c2 = zero, c3 = zero, sc[2];
    T::scales(g, part, half, sc);
    auto step = [&](int j, v128_t s0, v128_t s1, v128_t s2, v128_t s3) __attribute__((always_inline)) {
        v128_t v[4];
        T::weights(at + 96 * j, six, v);
        if (MODE == DOT32) {
            c0 = dot32(s0, v[0], c0); PIN(c0);
            c1 = dot32(s1, v[1], c1); PIN(c1);
            c2 = dot32(s2, v[2], c2); PIN(c2);
            c3 = dot32(s3, v[3], c3); PIN(c3);
        } else if (j % 2 == 0) {
            c0 = wasm_i16x8_relaxed_dot_i8x16_i7x16(s0, v[0]); PIN(c0);
            c1 = wasm_i16x8_relaxed_dot_i8x16_i7x16(s1, v[1]); PIN(c1);
            c2 = wasm_i16x8_relaxed_dot_i8x16_i7x16(s2, v[2]); PIN(c2);
            c3 = wasm_i16x8_relaxed_dot_i8x16_i7x16(s3, v[3]); PIN(c3);
        } else {
            c0 = dot16(s0, v[0], c0); PIN(c0);
            c1 = dot16(s1, v[1], c1); PIN(c1);
            c2 = dot16(s2, v[2], c2); PIN(c2);
            c3 = dot16(s3, v[3], c3); PIN(c3);
        }
    };
    // two 16-bit sums of a row side by side meet its scale twice
    auto flush = [&]() __attribute__((always_inline)) {
        if (MODE == DOT16) {
            tot = dot_wide(wasm_i16x8_shuffle(sc[0], sc[0], 0, 0, 1, 1, 2, 2, 3, 3), c0, tot); PIN(tot);
            tot = dot_wide(wasm_i16x8_shuffle(sc[0], sc[0], 4, 4, 5, 5, 6, 6, 7, 7), c1, tot); PIN(tot);
            tot = dot_wide(wasm_i16x8_shuffle(sc[1], sc[1], 0, 0, 1, 1, 2, 2, 3, 3), c2, tot); PIN(tot);
            tot = dot_wide(wasm_i16x8_shuffle(sc[1], sc[1], 4, 4, 5, 5, 6, 6, 7, 7), c3, tot); PIN(tot);
        }
    };
    step(0, lane<0>(a[0]), lane<0>(a[1]), lane<0>(a[2]), lane<0>(a[3]));
    step(1, lane<1>(a[0]), lane<1>(a[1]), lane<1>(a[2]), lane<1>(a[3]));
    flush();
    step(2, lane<2>(a[0]), lane<2>(a[1]), lane<2>(a[2]), lane<2>(a[3]));
    step(3, lane<3>(a[0]), lane<3>(a[1]), lane<3>(a[2]), lane<3>(a[3]));
    flush();
    if (MODE == DOT32) {
        tot = wasm_i32x4_add(tot, wasm_i32x4_mul(c0, wasm_i32x4_extend_low_i16x8(sc[0])));
        tot = wasm_i32x4_add(tot, wasm_i32x4_mul(c1, wasm_i32x4_extend_high_i16x8(sc[0])));
        tot = wasm_i32x4_add(tot, wasm_i32x4_mul(c2, wasm_i32x4_extend_low_i16x8(sc[1])));
        tot = wasm_i32x4_add(tot, wasm_i32x4_mul(c3, wasm_i32x4_extend_high_i16x8(sc[1])));
    }
}

// What the offset adds to each row: its scales times the sums of the activations
INLINE v128_t gemv_q6_offset(const uint8_t * g, int part, int half, const int32_t * s) {
    v128_t sc[2];
    q6_K::scales(g, part, half, sc);
    const int32_t * at = s + part / 2 * 8 + part % 2;
    const v128_t s01 = wasm_i32x4_splat((at[0] & 0xffff) | (int32_t) ((uint32_t) at[2] << 16));
    const v128_t s23 = wasm_i32x4_splat((at[4] & 0xffff) | (int32_t) ((uint32_t) at[6] << 16));
    return wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_i16x8_shuffle(sc[0], sc[0], 0, 4, 1, 5, 2, 6, 3, 7), s01),
                          wasm_i32x4_dot_i16x8(wasm_i16x8_shuffle(sc[1], sc[1], 0, 4, 1, 5, 2, 6, 3, 7), s23));
}

template <bool, dot_mode MODE> INLINE
void gemv_block(q6_K, const uint8_t * g, const uint8_t * q, const int32_t * s, const int16_t *, v128_t tot[2], v128_t *) {
    v128_t six = wasm_i8x16_const_splat(0x3f), off0 = wasm_i32x4_const_splat(0), off1 = off0;
    PIN(six);
    for (int part = 0; part < 4; part++) {
        const uint8_t * at = q + part / 2 * 128 + part % 2 * 16;
        const v128_t a[4] = { load(at), load(at + 32), load(at + 64), load(at + 96) };
        gemv_q6_part<MODE>(g, part, 0, a, six, tot[0]);
        PIN(tot[0]);
        gemv_q6_part<MODE>(g, part, 1, a, six, tot[1]);
        PIN(tot[1]);
        off0 = wasm_i32x4_add(off0, gemv_q6_offset(g, part, 0, s));
        off1 = wasm_i32x4_add(off1, gemv_q6_offset(g, part, 1, s));
    }
    tot[0] = wasm_i32x4_sub(tot[0], wasm_i32x4_shl(off0, 5));
    tot[1] = wasm_i32x4_sub(tot[1], wasm_i32x4_shl(off1, 5));
}

template <class T, bool FIVE, dot_mode MODE, int NS> static __attribute__((noinline))
void gemv256(const uint8_t * w, size_t stride, int64_t k, const uint8_t * act, float * y, int64_t y_stride) {
    const uint8_t * q = act;
    const float *   d = act256::d(act, k, 1);
    const int32_t * s = act256::s(act, k, 1);
    const int16_t * p = act256::p(act, k, 1);
    const v128_t zero = wasm_i32x4_const_splat(0);
    v128_t f[NS][2];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = zero;
    }
    for (int64_t b = 0; b < k / 256; b++) {
        const v128_t da = wasm_f32x4_splat(d[b]);
        for (int n = 0; n < NS; n++) {
            const uint8_t * g = w + n * stride;
            v128_t tot[2] = { zero, zero }, min[2] = { zero, zero };
            gemv_block<FIVE, MODE>(T(), g, q, s + 16 * b, p + 8 * b, tot, min);
            v128_t d0, d1;
            halves_fast(load(g), d0, d1);
            add_scaled(f[n][0], tot[0], d0, da);
            add_scaled(f[n][1], tot[1], d1, da);
            if (T::MIN) {
                halves_fast(load(g + 16), d0, d1);
                sub_scaled(f[n][0], min[0], d0, da);
                sub_scaled(f[n][1], min[1], d1, da);
            }
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
    const v128_t six = wasm_i8x16_const_splat(0x3f);
    for (int64_t b = 0; b < nb; b++, g += T::BYTES * GROUP) {
        v128_t x0, x1;
        halves(load(g), x0, x1);
        store(p.d + 8 * b, x0);
        store(p.d + 8 * b + 4, x1);
        for (int part = 0; part < 4; part++) {
            for (int h = 0; h < 2; h++) {
                v128_t sc[2];
                T::scales(g, part, h, sc);
                int32_t * to = p.sc + 128 * b + 8 * (part / 2 * 8 + part % 2) + 4 * h;
                for (int i = 0; i < 2; i++) {
                    store(to + 32 * i, wasm_i32x4_extend_low_i16x8(sc[i]));
                    store(to + 32 * i + 16, wasm_i32x4_extend_high_i16x8(sc[i]));
                }
            }
        }
        for (int n = 0; n < 2; n++) {
            uint8_t * w = p.w + 2048 * b + 1024 * n;
            for (int j = 0; j < 8; j++) {
                for (int h = 0; h < 2; h++) {
                    v128_t v[4];
                    T::weights(g + T::QS + ((n * 8 + j) * 2 + h) * 48, six, v);
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
            const quad      x = { a + k0 * 4, act256::d(a, k, 4) + k0 / 256 * 4, act256::s(a, k, 4) + k0 / 16 * 4, act256::p(a, k, 4) + k0 / 32 * 4 };
            v128_t sums[8];
            v128_t * f = in_memory(sums);
            tile_load(f, y + 4 * i, row, rows, k0 == 0);
            tile256<T, MODE>(p, nb, x, f);
            tile_store(f, y + 4 * i, row, rows);
        }
    }
}

template <class T, bool FIVE, dot_mode MODE, void (*UNPACK)(const uint8_t *, int64_t, panel &)> static const kernel * make() {
    static const kernel k = {
        T::BLOCK, (size_t) T::BYTES, pack_rows<T>, unpack_rows<T>, act256::bytes, act_q256,
        gemv<T, gemv256<T, FIVE, MODE, 2>, gemv256<T, FIVE, MODE, 1>>,
        gemm256<T, MODE, UNPACK>,
    };
    return &k;
}

template <dot_mode MODE> static const kernel * of_type(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_K: return make<q45_K<false>, false, MODE, panel_q45_K<false>>();
        case GGML_TYPE_Q5_K: return make<q45_K<true>, true, MODE, panel_q45_K<true>>();
        case GGML_TYPE_Q6_K: return make<q6_K, false, MODE, panel_q6_K>();
        default:             return nullptr;
    }
}

const kernel * kernel_q256(ggml_type type, dot_kind kind) {
    return kind == dot_kind::emulated ? of_type<DOT16>(type) : of_type<DOT32>(type);
}

} // namespace rys
