// Types with a scale per 32 k: q4_0, q4_1, mxfp4, iq4_nl, q8_0.

#include "rys-act.h"
#include "rys-family.h"
#include "rys-layout.h"
#include "rys-tile.h"

namespace rys {

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
        return wasm_i8x16_relaxed_swizzle(wasm_i8x16_const(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0), nibbles);
    }
};

// 8-bit values: U8 as unsigned operand (exact dot products only), else signed
template <bool U8> struct iq4_nl : q4_0 {
    static constexpr int OFFSET = U8 ? 128 : 0;
    INLINE v128_t map(v128_t nibbles) {
        const v128_t values = wasm_i8x16_const(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
        return wasm_i8x16_relaxed_swizzle(U8 ? wasm_v128_xor(values, wasm_i8x16_const_splat(-128)) : values, nibbles);
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
    using A = act32<MODE == WIDE>;
    const uint8_t * q = act;
    const float *   d = A::d(act, k, 1);
    const int32_t * s = A::s(act, k, 1);
    const v128_t zero = wasm_i32x4_const_splat(0);
    v128_t f[NS][2];
    const uint8_t * g[NS];
    for (int n = 0; n < NS; n++) {
        f[n][0] = f[n][1] = zero;
        g[n] = w + n * stride;
    }
    for (int64_t b = 0; b < k / 32; b++, q += 32 * A::Q) {
        const v128_t start = wasm_i32x4_splat(-T::OFFSET * s[b]);
        // acc: the sums. more: those of the even k, times 256 (WIDE); what the 16-bit sums were halfway (DOT16)
        v128_t acc[NS][2], more[NS][2];
        for (int n = 0; n < NS; n++) {
            acc[n][0] = acc[n][1] = MODE == DOT32 ? start : zero;
            more[n][0] = more[n][1] = zero;
        }
        if (MODE == WIDE) {
            auto half = [&](v128_t v, v128_t even, v128_t odd, v128_t & e, v128_t & o) __attribute__((always_inline)) {
                e = dot_wide(even, wasm_i16x8_shl(v, 8), e); PIN(e);
                o = dot_wide(odd, wasm_i16x8_shr(v, 8), o); PIN(o);
            };
            auto step = [&](int j, v128_t lo_e, v128_t lo_o, v128_t hi_e, v128_t hi_o) __attribute__((always_inline)) {
                PIN(lo_e); PIN(lo_o); PIN(hi_e); PIN(hi_o);
                for (int n = 0; n < NS; n++) {
                    for (int h = 0; h < 2; h++) {
                        v128_t lo, hi;
                        weights<T>(g[n], j, h, lo, hi);
                        half(lo, lo_e, lo_o, more[n][h], acc[n][h]);
                        half(hi, hi_e, hi_o, more[n][h], acc[n][h]);
                    }
                }
            };
            const v128_t a0 = load(q), a2 = load(q + 32);
            step(0, lane<0>(a0), lane<1>(a0), lane<0>(a2), lane<1>(a2));
            step(1, lane<2>(a0), lane<3>(a0), lane<2>(a2), lane<3>(a2));
            const v128_t a1 = load(q + 16), a3 = load(q + 48);
            step(2, lane<0>(a1), lane<1>(a1), lane<0>(a3), lane<1>(a3));
            step(3, lane<2>(a1), lane<3>(a1), lane<2>(a3), lane<3>(a3));
        } else {
            const v128_t a0 = load(q), a1 = load(q + 16);
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
                        more[n][h] = widen(acc[n][h]);
                        acc[n][h] = zero;
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
                    i = wasm_i32x4_add(start, T::FLUSH == 4 ? wasm_i32x4_add(more[n][h], widen(i)) : widen(i));
                } else if (MODE == WIDE) {
                    i = wasm_i32x4_add(i, wasm_i32x4_shr(more[n][h], 8));
                }
                add_scaled(f[n][h], i, dw[h], da);
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

// f[8]: sums of the tile, column by column
template <class T, dot_mode MODE> static __attribute__((noinline))
void tile32(const uint8_t * w, int64_t w_stride, const float * dw, const float * mw, int64_t nb, const quad & a, v128_t * f) {
    const uint8_t * q = a.q;
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
            for (int t = 0; t < 16; t += 4) {
                TILE_STEP(dot_wide, w + 32 * t, q + 16 * t);
                TILE_STEP(dot_wide, w + 32 * t + 32, q + 16 * t + 16);
                TILE_STEP(dot_wide, w + 32 * t + 64, q + 16 * t + 32);
                TILE_STEP(dot_wide, w + 32 * t + 96, q + 16 * t + 48);
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
        w += w_stride;
        q += MODE == WIDE ? 256 : 128;
    }
}

template <class T, dot_mode MODE> static void panel32(const uint8_t * g, int64_t nb, panel & p) {
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
        if (MODE == WIDE) {
            uint8_t * w = p.w + 512 * b;
            auto put = [&](int j, int h, v128_t v) __attribute__((always_inline)) {
                store(w + 64 * j + 16 * h, wasm_i16x8_shr(wasm_i16x8_shl(v, 8), 8));
                store(w + 64 * j + 32 + 16 * h, wasm_i16x8_shr(v, 8));
            };
            for (int j = 0; j < 4; j++) {
                for (int h = 0; h < 2; h++) {
                    weights<T>(g, j, h, x0, x1);
                    put(j, h, x0);
                    put(j + 4, h, x1);
                }
            }
        } else if (!is_bytes<T>) {
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

template <class T, dot_mode MODE>
static void gemm32(const uint8_t * w, int64_t k, const uint8_t * act, int64_t n, float * const * y, int64_t row, int64_t rows) {
    using A = act32<MODE == WIDE>;
    constexpr bool in_place = is_bytes<T> && MODE != WIDE; // nothing to unpack
    panel          p;
    const size_t   act_quad = QUAD * A::bytes(k);
    const int64_t  step     = panel_size(k, PANEL / A::Q);
    for (int64_t k0 = 0; k0 < k; k0 += step) {
        const int64_t   nb = std::min(step, k - k0) / 32;
        const uint8_t * g  = w + k0 / 32 * T::BYTES * GROUP;
        panel32<T, MODE>(g, nb, p);
        const uint8_t * pw     = in_place ? g + T::QS : p.w;
        const int64_t   stride = in_place ? T::BYTES * GROUP : 256 * A::Q;
        for (int64_t i = 0; i < n; i++) {
            const uint8_t * a = act + i * act_quad;
            const quad      x = { a + k0 * 4 * A::Q, A::d(a, k, 4) + k0 / 32 * 4, A::s(a, k, 4) + k0 / 32 * 4, nullptr };
            v128_t sums[8];
            v128_t * f = in_memory(sums);
            tile_load(f, y + 4 * i, row, rows, k0 == 0);
            tile32<T, MODE>(pw, stride, p.d, p.m, nb, x, f);
            tile_store(f, y + 4 * i, row, rows);
        }
    }
}

template <class T, dot_mode MODE> static const kernel * make() {
    static const kernel k = {
        T::BLOCK, (size_t) T::BYTES, pack_rows<T>, unpack_rows<T>, act32<MODE == WIDE>::bytes, act_q32<MODE == WIDE>,
        gemv<T, gemv32<T, MODE, 2>, gemv32<T, MODE, 1>>,
        gemm32<T, MODE>,
    };
    return &k;
}

// Nibbles as 7-bit operands, and bytes, which are no such: unsigned where the dot product is exact
template <dot_mode NIBBLES, dot_mode BYTES, bool U8> static const kernel * of_type(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_0:   return make<q4_0, NIBBLES>();
        case GGML_TYPE_Q4_1:   return make<q4_1, NIBBLES>();
        case GGML_TYPE_MXFP4:  return make<mxfp4, NIBBLES>();
        case GGML_TYPE_IQ4_NL: return make<iq4_nl<U8>, BYTES>();
        case GGML_TYPE_Q8_0:   return make<q8_0<U8>, BYTES>();
        default:               return nullptr;
    }
}

const kernel * kernel_q32(ggml_type type, dot_kind kind) {
    switch (kind) {
        case dot_kind::exact:  return of_type<DOT32, DOT32, true>(type);
        case dot_kind::native: return of_type<DOT32, DOT32, false>(type);
        default:               return of_type<DOT16, WIDE, false>(type);
    }
}

} // namespace rys
