// f16, multiplied as f32: the floats of a dot product are added one k after the other.

#include "rys-family.h"
#include "rys-layout.h"
#include "rys-tile.h"

namespace rys {

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

const kernel * kernel_f16(ggml_type type) {
    static const kernel k = { f16::BLOCK, (size_t) f16::BYTES, pack_rows<f16>, unpack_rows<f16>, act_bytes_f32, act_f32, gemv<f16, gemv_f16<4>, gemv_f16<1>, 4>, gemm_f16 };
    return type == GGML_TYPE_F16 ? &k : nullptr;
}

} // namespace rys
