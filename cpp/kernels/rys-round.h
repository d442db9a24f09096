// Compiled ahead of upstream's arch/wasm/quants.c. Its quantize_row_q8_0 and quantize_row_q8_1 cut the fraction off where
// every other processor's round: activations, and q8_0 KV caches, were pulled towards zero with four times the error.
// Where upstream rounds first (q8_K), rounding again changes nothing.
#pragma once
#include <wasm_simd128.h>
#define wasm_i32x4_trunc_sat_f32x4(v) wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(v))
