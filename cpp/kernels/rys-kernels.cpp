// Which kernels this processor gets.

#include "rys-family.h"
#include "rys-simd.h"

namespace rys {

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

const kernel * kernel_for(ggml_type type) {
    static const dot_kind kind = dot_probe();
    const kernel * k = kernel_q32(type, kind);
    k = k ? k : kernel_q256(type, kind);
    return k ? k : kernel_f16(type);
}

} // namespace rys
