// Products of repacked weights with f32 activations for WASM: what rys-repack.cpp asks of rys-kernels.cpp.

#pragma once

#include "ggml.h"

#include <cstddef>
#include <cstdint>

namespace rys {

// Rows that stand interleaved in one group, and columns that a tile of the matrix product takes at once.
constexpr int64_t GROUP = 8;
constexpr int64_t QUAD  = 4;

// What the runtime makes of i32x4.relaxed_dot_i8x16_i7x16_add, found out once.
enum class dot_kind {
    exact,    // unsigned times signed bytes without saturation (x86 with VNNI)
    native,   // one instruction, second operand signed (arm64)
    emulated, // several instructions: the 16-bit form is the cheaper one
};

dot_kind     dot_probe();
const char * kernels_name(); // as `doctor` names it

// Every sum of floats goes over k from low to high, one addition per block of the weight type: the result of an output
// element does not depend on the other columns, on the path (vector or tile) or on the threads.
struct kernel {
    int64_t block;       // elements of k per block
    size_t  block_bytes; // of one row

    // Moves one row of a group in or out; `row` is in the file's layout.
    void (*pack)(const uint8_t * row, uint8_t * group, int64_t r, int64_t k);
    void (*unpack)(uint8_t * row, const uint8_t * group, int64_t r, int64_t k);

    // Activations: bytes per column, and k0 <= k < k1 of column c of n (1 or QUAD) quantised into `act`.
    size_t (*act_bytes)(int64_t k);
    void (*act)(const float * x, int64_t k, int64_t k0, int64_t k1, uint8_t * act, int64_t c, int64_t n);

    // y[0..8) for each of `n` groups times one column. `w` is the first group's, y has 8 * n floats.
    void (*gemv)(const uint8_t * w, int64_t n, int64_t k, const uint8_t * act, float * y);
    // One group times `n` quads of columns; act of a quad is 4 * act_bytes(k) long. A null y is not written.
    void (*gemm)(const uint8_t * w, int64_t k, const uint8_t * act, int64_t n, float * const * y, int64_t row, int64_t rows);
};

// The kernel of a weight type, or null.
const kernel * kernel_for(ggml_type type);

} // namespace rys
