// Every shader that upstream's WebGPU backend can emit, without a GPU: asks upstream's shader library for its pipelines under
// sets of capabilities and hands over each distinct variant once (rys_js_event).
//
//     rys-shaders SET...
//
// Kind 0 is a variant, its fields separated by NUL: set, function of the library, threads of a workgroup and bytes of its memory
// in that set, whether the set has subgroups, label, entry point, constants ("name=value,..."), source. Kind 1 ends the run: the
// library's functions that nothing here asks for.

#include "ggml-webgpu-shader-lib.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <set>
#include <string>
#include <vector>

extern "C" void rys_js_event(int32_t req, int32_t kind, int32_t aux, const char * data, size_t n_data);

namespace {

struct capabilities {
    const char * name;
    uint32_t     n_threads;    // of a workgroup
    uint32_t     n_bytes;      // of a workgroup's memory
    uint32_t     subgroup_min; // 0: no subgroups
    uint32_t     subgroup_max;
    bool         dot;          // packed 4x8 dot products
    const char * vendor;
    uint32_t     m, n, k;      // of subgroup matrices, or 0
};

constexpr capabilities all_sets[] = {
    { "sg8",     1024, 32768, 8,  8,   false, "",       0,  0,  0  }, // lavapipe
    { "nosg",    256,  16384, 0,  0,   false, "",       0,  0,  0  }, // WebGPU's smallest
    { "nvidia",  1024, 32768, 32, 32,  true,  "nvidia", 0,  0,  0  },
    { "amd",     1024, 32768, 32, 64,  true,  "amd",    0,  0,  0  },
    { "intel",   1024, 32768, 8,  32,  true,  "intel",  0,  0,  0  },
    { "wide",    1024, 32768, 4,  128, false, "",       0,  0,  0  }, // sizes unknown
    { "dotnosg", 256,  16384, 0,  0,   true,  "nvidia", 0,  0,  0  },
    { "sgm8",    1024, 32768, 32, 32,  false, "apple",  8,  8,  8  },
    { "sgm16",   1024, 32768, 32, 32,  true,  "nvidia", 16, 16, 16 },
    { "sgm8x16", 1024, 32768, 16, 32,  true,  "intel",  8,  16, 16 },
};

constexpr ggml_type F32 = GGML_TYPE_F32, F16 = GGML_TYPE_F16, I32 = GGML_TYPE_I32;

const capabilities *   caps = nullptr;
std::string            function; // being asked
std::set<std::string>  asked;
std::set<size_t>       seen;     // hashes of variants
std::list<ggml_tensor> tensors;

ggml_tensor * tensor(ggml_type type, int64_t ne0, int64_t ne1 = 8, int64_t ne2 = 4) {
    auto & t = tensors.emplace_back();
    t.type   = type;
    t.data   = (void *) (tensors.size() << 16); // equal only where a test says so
    t.buffer = (ggml_backend_buffer *) 1;
    t.ne[0] = ne0, t.ne[1] = ne1, t.ne[2] = ne2, t.ne[3] = 1;
    t.nb[0] = ggml_type_size(type), t.nb[1] = ggml_row_size(type, ne0), t.nb[2] = t.nb[1] * ne1, t.nb[3] = t.nb[2] * ne2;
    return &t;
}

ggml_tensor * result(ggml_type type, int64_t ne0, ggml_op op, int32_t param0 = 0, const ggml_tensor * in_place = nullptr) {
    auto * t         = tensor(type, ne0);
    t->op            = op;
    t->op_params[0]  = param0;
    if (in_place) {
        t->data = in_place->data;
    }
    return t;
}

ggml_webgpu_shader_lib_context on(ggml_tensor * src0, ggml_tensor * src1, ggml_tensor * dst) {
    ggml_webgpu_shader_lib_context c = {};
    c.src0 = src0, c.src1 = src1, c.dst = dst;
    c.max_wg_size              = caps->n_threads;
    c.wg_mem_limit_bytes       = caps->n_bytes;
    c.supports_subgroups       = caps->subgroup_min > 0;
    c.supports_subgroup_matrix = caps->m > 0;
    c.sg_mat_m = caps->m, c.sg_mat_n = caps->n, c.sg_mat_k = caps->k;
    c.min_subgroup_size        = caps->subgroup_min;
    c.max_subgroup_size        = caps->subgroup_max;
    c.supports_dot_product     = caps->dot;
    c.vendor                   = caps->vendor;
    return c;
}

bool is_float(ggml_type type) { return type == F32 || type == F16; }

#define ASK(name, ...) (function = #name, asked.insert(function), lib.get_##name##_pipeline(__VA_ARGS__))

void ask_simple(ggml_webgpu_shader_lib & lib) {
    ASK(sum_rows, on(tensor(F32, 64), nullptr, tensor(F32, 1)));
    ASK(cumsum, on(tensor(F32, 64), nullptr, tensor(F32, 64)));
    ASK(mul_mat_id_gather, on(tensor(F32, 64), tensor(F32, 64), tensor(F32, 64)));
    for (int n : { 64, 63 }) {
        ASK(argmax, on(tensor(F32, n), nullptr, tensor(I32, 1)));
    }
    for (int order : { 0, 1 }) {
        ASK(argsort, on(tensor(F32, 64), nullptr, result(I32, 64, GGML_OP_ARGSORT, order)));
        ASK(argsort_merge, on(tensor(F32, 64), nullptr, result(I32, 64, GGML_OP_ARGSORT, order)));
    }
    for (int circular : { 0, 1 }) {
        auto * dst        = tensor(F32, 64);
        dst->op_params[8] = circular;
        ASK(pad, on(tensor(F32, 60), nullptr, dst));
    }
    for (bool in_place : { false, true }) {
        auto * a   = tensor(F32, 64);
        auto   dst = [&](ggml_op op) { return result(F32, 64, op, 0, in_place ? a : nullptr); };
        for (auto op : { GGML_OP_RMS_NORM, GGML_OP_NORM, GGML_OP_L2_NORM }) {
            ASK(row_norm, on(a, nullptr, dst(op)));
        }
        ASK(scale, on(a, nullptr, dst(GGML_OP_SCALE)));
        ASK(add_id, on(a, tensor(F32, 64), dst(GGML_OP_ADD_ID)));
        for (auto type : { F32, I32 }) {
            auto * b = tensor(type, 64);
            ASK(set, on(b, tensor(type, 8), result(type, 64, GGML_OP_SET, 0, in_place ? b : nullptr)));
        }
        for (auto mask : { GGML_TYPE_COUNT, F32, F16 }) {
            for (bool sinks : { false, true }) {
                auto c = on(a, mask == GGML_TYPE_COUNT ? nullptr : tensor(mask, 64), dst(GGML_OP_SOFT_MAX));
                c.src2 = sinks ? tensor(F32, 8) : nullptr;
                ASK(soft_max, c);
            }
        }
    }
    for (auto type : { F32, I32 }) {
        for (bool overlap : { false, true }) {
            ASK(concat, on(tensor(type, 64), tensor(type, 64), tensor(type, 128)), overlap);
        }
    }
    for (auto type : { F32, F16, I32, GGML_TYPE_I16 }) {
        ASK(repeat, on(tensor(type, 64), nullptr, tensor(type, 64)));
    }
    for (auto type : { F32, F16, I32 }) {
        for (auto to : { F32, F16, I32 }) {
            ASK(cpy, on(tensor(type, 64), nullptr, tensor(to, 64)));
        }
    }
    for (auto type : { F32, F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 }) {
        for (auto index : { I32, GGML_TYPE_I64 }) {
            for (int n : { 32, 64, 31 }) {
                if (n >= 32 || is_float(type)) {
                    ASK(set_rows, on(tensor(F32, n), tensor(index, 8), tensor(type, n)));
                }
            }
        }
    }
}

void ask_recurrent(ggml_webgpu_shader_lib & lib) {
    for (int n : { 10, 11, 16, 30, 31, 32, 42, 64, 71, 100, 128, 256 }) {
        for (int k : { 3, 8, 10, 16, 32, 64, 100 }) {
            ASK(solve_tri, on(tensor(F32, n, n), tensor(F32, k, n), tensor(F32, k, n)));
        }
    }
    for (int n : { 3, 4, 9 }) {
        ASK(ssm_conv, on(tensor(F32, 64), tensor(F32, n), tensor(F32, 64)));
    }
    for (int n : { 16, 32, 64, 128, 256 }) {
        for (int bits : { 0, 1, 3, 5, 7 }) { // the others need the first
            ASK(ssm_scan, on(tensor(F32, n), tensor(F32, 64), tensor(F32, 64)), bits & 1, bits & 2, bits & 4);
        }
        for (bool gates : { false, true }) {
            for (bool fused : { false, true }) {
                auto c = on(tensor(F32, n), tensor(F32, n), tensor(F32, 64));
                c.src2 = tensor(F32, n), c.src3 = tensor(F32, gates ? n : 1), c.dst_fuse = fused ? tensor(F32, n) : nullptr;
                ASK(gated_delta_net, c);
            }
        }
    }
}

void ask_elementwise(ggml_webgpu_shader_lib & lib, ggml_type type) {
    for (bool in_place : { false, true }) {
        auto * a   = tensor(type, 64);
        auto   dst = [&](ggml_op op, int param = 0) { return result(type, 64, op, param, in_place ? a : nullptr); };
        for (int op = 0; op < GGML_UNARY_OP_COUNT; op++) {
            ASK(unary, on(a, nullptr, dst(GGML_OP_UNARY, op)));
        }
        for (auto op : { GGML_OP_CLAMP, GGML_OP_LOG, GGML_OP_SQR, GGML_OP_SQRT, GGML_OP_SIN, GGML_OP_COS }) {
            ASK(unary, on(a, nullptr, dst(op)));
        }
        if (type == F32) {
            ASK(unary, on(a, nullptr, dst(GGML_OP_FILL)));
            ASK(unary, on(a, nullptr, dst(GGML_OP_DIAG)));
            for (int kind = 0; kind < 4; kind++) {
                ASK(unary, on(a, nullptr, dst(GGML_OP_TRI, kind)));
            }
        }
        for (bool factors : { false, true }) {
            auto c = on(a, tensor(I32, 8), dst(GGML_OP_ROPE));
            c.src2 = factors ? tensor(F32, 32) : nullptr;
            ASK(rope, c);
        }
    }
    enum { plain, into_a, into_b, overlap, n_places };
    for (int place = 0; place < n_places; place++) {
        auto *       a    = tensor(type, 64);
        auto *       b    = tensor(type, 64);
        const auto * into = place == into_a ? a : place == into_b ? b : nullptr;
        for (auto op : { GGML_OP_ADD, GGML_OP_SUB, GGML_OP_MUL, GGML_OP_DIV }) {
            ASK(binary, on(a, b, result(type, 64, op, 0, into)), place == overlap);
        }
        if (type == F32) {
            ASK(rms_norm_mul, on(a, b, result(type, 64, GGML_OP_MUL, 0, into)), place == overlap);
        }
    }
    for (int op = 0; op < GGML_GLU_OP_COUNT; op++) {
        if (op == GGML_GLU_OP_SWIGLU_OAI && type == F16) {
            continue;
        }
        ASK(glu, on(tensor(type, 64), nullptr, result(type, 64, GGML_OP_GLU, op)), false);
        for (bool overlaps : { false, true }) {
            ASK(glu, on(tensor(type, 64), tensor(type, 64), result(type, 64, GGML_OP_GLU, op)), overlaps);
        }
    }
}

void ask_images(ggml_webgpu_shader_lib & lib) {
    for (auto a : { F32, F16 }) {
        for (auto d : { F32, F16 }) {
            for (auto b : { F32, F16 }) {
                ASK(conv2d, on(tensor(a, 3), tensor(b, 16), tensor(d, 16)));
                ASK(im2col, on(tensor(a, 3), tensor(b, 16), tensor(d, 16)));
                for (bool whcn : { false, true }) {
                    ASK(conv2d_dw, on(tensor(a, 3), tensor(b, 16), tensor(d, 16)), whcn);
                }
            }
            for (int mode : { GGML_SCALE_MODE_NEAREST, GGML_SCALE_MODE_BILINEAR, GGML_SCALE_MODE_BICUBIC }) {
                for (int flag : { 0, (int) GGML_SCALE_FLAG_ANTIALIAS }) {
                    ASK(upscale, on(tensor(a, 32), nullptr, result(d, 64, GGML_OP_UPSCALE, mode | flag)));
                }
            }
        }
    }
}

// `type` is that of the weights.
void ask_mul_mat(ggml_webgpu_shader_lib & lib, ggml_type type) {
    for (int n : { 256, 255 }) { // with 255, rows are not aligned
        if (n == 255 && !is_float(type)) {
            continue;
        }
        for (bool aligned : { false, true }) {
            ASK(get_rows, on(tensor(type, n), tensor(I32, 8), tensor(F32, n)), aligned);
        }
        for (auto to : { F32, F16 }) {
            if (to == F16 && type != F16) {
                continue;
            }
            auto * w = tensor(type, n, 64);
            for (bool overlap : { false, true }) {
                if (overlap && to != type) {
                    continue;
                }
                for (int cols = 1; cols <= 4; cols++) {
                    auto * x      = tensor(to, n, cols);
                    auto   c      = on(w, x, tensor(F32, 64, cols));
                    const bool q8 = ggml_webgpu_can_use_mmvq(w, x, caps->dot, caps->vendor);
                    if (q8 && !overlap) {
                        ASK(quantize_q8, c);
                    }
                    if (!q8 || !overlap) {
                        ASK(mul_mat_vec, c, overlap);
                    }
                }
                ASK(mul_mat_fast, on(w, tensor(to, n, 32), tensor(F32, 64, 32)), overlap);
            }
            for (int experts : { 2, 4, 8, 128 }) {
                auto * each = tensor(type, n, 64, experts);
                ASK(mul_mat_id, on(each, tensor(to, n, 8, 16), tensor(F32, 64, 2, 16)));
                ASK(mul_mat_id_vec, on(each, tensor(to, n, 8, 1), tensor(F32, 64, 2, 1)));
            }
        }
    }
}

void ask_flash_attn(ggml_webgpu_shader_lib & lib, int64_t hsk, int64_t hsv, ggml_type type_k, ggml_type type_v) {
    const auto fits  = [](ggml_type type, int64_t n) { return n % (is_float(type) ? 4 : 32) == 0; };
    const bool every = hsk == 64 || hsk == 128; // other sizes: not each combination
    if ((!every && type_k != type_v) || !fits(type_k, hsk) || !fits(type_v, hsv)) {
        return;
    }
    for (int bits = 0; bits < 32; bits++) {
        const bool mask = bits & 1, sinks = bits & 2, softcap = bits & 4, overlap = bits & 8, direct = bits & 16;
        if ((overlap && type_k != type_v) || (!every && (softcap || (sinks && !mask)))) {
            continue;
        }
        auto * q   = tensor(F32, hsk, 32);
        auto * k   = tensor(type_k, hsk, direct ? 512 : 100);
        auto * v   = tensor(type_v, hsv, direct ? 512 : 100);
        auto * dst = result(F32, hsv, GGML_OP_FLASH_ATTN_EXT);
        const float cap = softcap ? 10.0f : 0.0f;
        memcpy(&dst->op_params[2], &cap, sizeof(cap));
        auto c = on(q, k, dst);
        c.src2 = v, c.src3 = mask ? tensor(F16, 512, 32) : nullptr, c.src4 = sinks ? tensor(F32, 4) : nullptr;
        // as the backend's supports_op asks
        const bool matrix = ggml_webgpu_flash_attn_can_use_subgroup_matrix_path(caps->m > 0, caps->k, caps->n, q, v);
        const bool kv_direct = matrix && (ggml_webgpu_flash_attn_k_direct(q, k, caps->k) || ggml_webgpu_flash_attn_v_direct(q, v, caps->k));
        if (ggml_webgpu_flash_attn_max_kv_tile(caps->n_bytes, matrix ? caps->m : 4, matrix ? caps->n : 1, hsk, hsv, mask, kv_direct) == 0) {
            continue;
        }
        ASK(flash_attn, c, overlap);
        auto vec = ASK(flash_attn_vec, c, overlap);
        if (mask) {
            ASK(flash_attn_blk, c, static_cast<ggml_webgpu_flash_attn_vec_decisions *>(vec.context.get())->kv_tile);
        }
        for (uint32_t n_groups = 1; n_groups <= caps->subgroup_min; n_groups *= 2) {
            auto r        = c;
            r.max_wg_size = std::max(caps->subgroup_max, std::min(n_groups * caps->subgroup_max, caps->n_threads));
            ASK(flash_attn_vec_reduce, r);
        }
    }
}

void ask_all() {
    ggml_webgpu_shader_lib lib{ wgpu::Device{} };
    ask_simple(lib);
    ask_recurrent(lib);
    for (auto type : { F32, F16 }) {
        ask_elementwise(lib, type);
    }
    ask_images(lib);
    ASK(get_rows, on(tensor(I32, 64), tensor(I32, 8), tensor(I32, 64)), false);
    for (auto type : { F32, F16, GGML_TYPE_Q1_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
                       GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XXS,
                       GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S, GGML_TYPE_IQ1_S, GGML_TYPE_IQ1_M,
                       GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4, GGML_TYPE_NVFP4 }) {
        ask_mul_mat(lib, type);
    }
    if (caps->subgroup_min == 0) { // the backend claims flash attention only with subgroups
        return;
    }
    constexpr int head_sizes[][2] = { { 40, 40 },   { 64, 64 },   { 72, 72 },   { 80, 80 },   { 96, 64 },   { 96, 96 },  { 128, 128 },
                                      { 192, 128 }, { 192, 192 }, { 256, 256 }, { 320, 256 }, { 512, 512 }, { 576, 512 } };
    for (const auto & [hsk, hsv] : head_sizes) {
        for (auto type_k : { F32, F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0 }) {
            for (auto type_v : { F32, F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0 }) {
                ask_flash_attn(lib, hsk, hsv, type_k, type_v);
            }
        }
    }
}

void hand_over(int32_t kind, const std::string & text) { rys_js_event(0, kind, 0, text.data(), text.size()); }

} // namespace

// The recorder of webgpu_cpp.h, as far as the shader library reaches it.
uint32_t rys_gpu_pipeline_create(const std::string & source, const std::string & label, const std::string & entry,
                                 const std::vector<rys_gpu_constant> & constants) {
    std::string text = label + '\0' + entry + '\0';
    for (const auto & c : constants) {
        text += c.key + "=" + std::to_string(c.value) + ",";
    }
    text += '\0' + source;
    // a source is one variant, whatever its label
    if (seen.insert(std::hash<std::string>{}(text.substr(label.size()))).second) {
        const std::string z(1, '\0');
        hand_over(0, caps->name + z + function + z + std::to_string(caps->n_threads) + z + std::to_string(caps->n_bytes) + z +
                         (caps->subgroup_min > 0 ? "1" : "0") + z + text);
    }
    return 1;
}

void rys_gpu_pipeline_drop(uint32_t) {}

int main(int argc, char ** argv) {
    for (int i = 1; i < argc; i++) {
        caps = std::find_if(std::begin(all_sets), std::end(all_sets), [&](const auto & c) { return !strcmp(c.name, argv[i]); });
        if (caps == std::end(all_sets)) {
            fprintf(stderr, "rys-shaders: no set of capabilities is named \"%s\"\n", argv[i]);
            return 2;
        }
        tensors.clear();
        // the one pipeline that the backend makes without the library, as for a buffer of 128 MiB
        function = "memset";
        const uint32_t n_all = caps->n_threads * 65535;
        rys_gpu_pipeline_create(wgsl_memset, "memset", "main",
                                { { "wg_size", (double) caps->n_threads }, { "bytes_per_thread", (double) ((134217728 + n_all - 1) / n_all) } });
        ask_all();
    }
    std::string missed;
    const std::string functions = RYS_SHADER_FUNCTIONS; // of this upstream: "a,b,c"
    for (size_t at = 0; at < functions.size();) {
        const size_t end = std::min(functions.find(',', at), functions.size());
        const auto   one = functions.substr(at, end - at);
        missed += asked.count(one) ? "" : one + " ";
        at = end + 1;
    }
    hand_over(1, missed);
}
