// The tile of the matrix product, 8 rows x 4 columns, and the panel of unpacked weights that it reads.

#pragma once

#include "rys-kernels.h"
#include "rys-simd.h"

namespace rys {

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
    const float *   d;
    const int32_t * s;
    const int16_t * p;
};

// How bytes are multiplied: in one instruction, summed in 16 bits, or widened to 16 bits first.
enum dot_mode { DOT32, DOT16, WIDE };

// The tile: 8 rows x 4 columns, rows in lanes: c<column><half>
#define TILE_DECLARE v128_t c00, c01, c10, c11, c20, c21, c30, c31
#define TILE_START(e0, e1, e2, e3) \
    c00 = (e0); PIN(c00); c01 = c00; PIN(c01); c10 = (e1); PIN(c10); c11 = c10; PIN(c11); \
    c20 = (e2); PIN(c20); c21 = c20; PIN(c21); c30 = (e3); PIN(c30); c31 = c30; PIN(c31)
#define TILE_STEP(DOT, w, a) do { \
        v128_t w0_ = load(w), w1_ = load((w) + 16), a_ = load(a), s_; PIN(w0_); PIN(w1_); PIN(a_); \
        s_ = lane<0>(a_); PIN(s_); c00 = DOT(s_, w0_, c00); PIN(c00); c01 = DOT(s_, w1_, c01); PIN(c01); \
        s_ = lane<1>(a_); PIN(s_); c10 = DOT(s_, w0_, c10); PIN(c10); c11 = DOT(s_, w1_, c11); PIN(c11); \
        s_ = lane<2>(a_); PIN(s_); c20 = DOT(s_, w0_, c20); PIN(c20); c21 = DOT(s_, w1_, c21); PIN(c21); \
        s_ = lane<3>(a_); PIN(s_); c30 = DOT(s_, w0_, c30); PIN(c30); c31 = DOT(s_, w1_, c31); PIN(c31); \
    } while (0)
#define TILE_EACH(F) F(0, 0, c00); F(0, 1, c01); F(1, 0, c10); F(1, 1, c11); F(2, 0, c20); F(2, 1, c21); F(3, 0, c30); F(3, 1, c31)

// A place in memory that the compiler does not take apart into registers
INLINE v128_t * in_memory(v128_t * p) {
    asm volatile("" : "+r"(p) : : "memory");
    return p;
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

INLINE void add_scaled(v128_t & f, v128_t tot, v128_t dw, v128_t da) {
    f = wasm_f32x4_add(f, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tot), wasm_f32x4_mul(dw, da)));
}

INLINE void sub_scaled(v128_t & f, v128_t tot, v128_t dw, v128_t da) {
    f = wasm_f32x4_sub(f, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tot), wasm_f32x4_mul(dw, da)));
}

} // namespace rys
