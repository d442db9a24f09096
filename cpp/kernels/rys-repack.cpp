// Weights repacked in place as they arrive, and the operations that read them: products, products by expert, rows of the
// embedding. Not under ggml-cpu/repack.cpp: that takes whole tensors only, cannot give rows back (a tied embedding would
// stand in memory twice), sums in another order for one column than for four, and takes experts column by column.

#include "rys-repack.h"
#include "rys-kernels.h"

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml-cpu-impl.h"
#include "traits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

namespace rys {

static bool fits(const ggml_tensor * w) {
    const kernel * kern = kernel_for(w->type);
    if (!kern || w->view_src || !ggml_is_contiguous(w) || w->ne[3] != 1 || w->ne[0] % std::max<int64_t>(kern->block, 32) != 0) {
        return false;
    }
    // experts follow each other without a gap
    return w->ne[2] == 1 || w->ne[1] % GROUP == 0;
}

static int64_t groups(int64_t rows) { return (rows + GROUP - 1) / GROUP; }

static size_t group_bytes(const kernel & kern, int64_t k) { return k / kern.block * kern.block_bytes * GROUP; }

static uint8_t * align(void * p) { return (uint8_t *) (((uintptr_t) p + 15) & ~(uintptr_t) 15); }

static constexpr size_t SLACK = 64; // of the work buffer, for alignment

// One matrix times some columns, for all threads
struct product {
    const kernel *    kern;
    const uint8_t *   w;
    int64_t           k;
    int64_t           rows;
    const uint8_t *   act;
    int64_t           cols; // 1, or a multiple of QUAD with null where there is no column
    float * const *   y;

    void run(int64_t g0, int64_t g1) const {
        const size_t    n = group_bytes(*kern, k);
        if (cols > 1) {
            for (int64_t g = g0; g < g1; g++) {
                kern->gemm(w + g * n, k, act, cols / QUAD, y, g * GROUP, std::min(GROUP, rows - g * GROUP));
            }
            return;
        }
        const int64_t whole = std::min(g1, rows / GROUP);
        if (whole > g0) {
            kern->gemv(w + g0 * n, whole - g0, k, act, y[0] + g0 * GROUP);
        }
        if (whole < g1) {
            alignas(16) float last[GROUP];
            kern->gemv(w + whole * n, 1, k, act, last);
            memcpy(y[0] + whole * GROUP, last, (rows - whole * GROUP) * sizeof(float));
        }
    }
};

// Pieces of a product that threads take one after another. Of a prompt's none takes long: between two, a thread looks
// whether the prompt was cancelled.
static int64_t pieces(int64_t n_groups, int nth, int64_t k, int64_t cols) {
    const int64_t shared = nth == 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(n_groups / 2, nth * 4));
    if (cols == 1) {
        return shared;
    }
    constexpr int64_t most = 1 << 26; // products: some milliseconds
    return std::max(shared, std::min(n_groups, n_groups * GROUP * k * cols / most));
}

// Below so many products, threads that wait for each other cost more than each quantising the column for itself.
static constexpr int64_t ALONE = 1 << 20;

class traits : public ggml::cpu::tensor_traits {
    const kernel * kern;

    static int64_t padded(int64_t cols) { return cols == 1 ? 1 : (cols + QUAD - 1) / QUAD * QUAD; }

    bool work_size(int n_threads, const ggml_tensor * op, size_t & size) override {
        const ggml_tensor * w = op->src[0];
        const ggml_tensor * x = op->src[1];
        switch (op->op) {
            case GGML_OP_MUL_MAT: {
                size = padded(ggml_nrows(x)) * (sizeof(float *) + kern->act_bytes(w->ne[0])) + SLACK;
                if (ggml_nrows(x) == 1) {
                    size = std::max(size, n_threads * (kern->act_bytes(w->ne[0]) + SLACK));
                }
                return true;
            }
            case GGML_OP_MUL_MAT_ID: {
                const int64_t n = ggml_nelements(op->src[2]) + w->ne[2] * (QUAD - 1);
                size = n * (sizeof(slot) + sizeof(float *) + kern->act_bytes(w->ne[0])) + (w->ne[2] + 1) * 2 * sizeof(int64_t) + SLACK;
                return true;
            }
            case GGML_OP_GET_ROWS:
                size = n_threads * (ggml_row_size(w->type, w->ne[0]) + SLACK);
                return true;
            default:
                return false;
        }
    }

    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        switch (op->op) {
            case GGML_OP_MUL_MAT:    mul_mat(params, op);    return true;
            case GGML_OP_MUL_MAT_ID: mul_mat_id(params, op); return true;
            case GGML_OP_GET_ROWS:   get_rows(params, op);   return true;
            default:                 return false;
        }
    }

    void mul_mat(ggml_compute_params * params, ggml_tensor * op) {
        const ggml_tensor * w = op->src[0];
        const ggml_tensor * x = op->src[1];
        const int     ith = params->ith, nth = params->nth;
        const int64_t k = w->ne[0], n = ggml_nrows(x), cols = padded(n);
        const size_t  bytes = kern->act_bytes(k);

        float **  y   = (float **) align(params->wdata);
        uint8_t * act = align(y + cols);
        auto row = [&](const ggml_tensor * t, int64_t i) {
            return (char *) t->data + i % t->ne[1] * t->nb[1] + i / t->ne[1] % t->ne[2] * t->nb[2] + i / t->ne[1] / t->ne[2] * t->nb[3];
        };
        const int64_t ng = groups(w->ne[1]);
        if (n == 1 && (nth == 1 || k * w->ne[1] < ALONE)) {
            uint8_t * own    = align((uint8_t *) params->wdata + ith * (bytes + SLACK));
            float *   result = (float *) op->data;
            kern->act((const float *) x->data, k, 0, k, own, 0, 1);
            product{ kern, (const uint8_t *) w->data, k, w->ne[1], own, 1, &result }.run(ng * ith / nth, ng * (ith + 1) / nth);
            return;
        }
        if (n == 1) {
            // one column is shared out by blocks
            const int64_t nb = k / 256 * 256 == k ? k / 256 : 1, size = k / nb;
            const int64_t b0 = nb * ith / nth, b1 = nb * (ith + 1) / nth;
            if (b0 < b1) {
                kern->act((const float *) x->data, k, b0 * size, b1 * size, act, 0, 1);
            }
            if (ith == 0) {
                y[0] = (float *) op->data;
            }
        } else {
            // many by fours: columns of one four stand in the same cache lines
            const int64_t quads = cols / QUAD;
            for (int64_t i = quads * ith / nth * QUAD; i < quads * (ith + 1) / nth * QUAD; i++) {
                y[i] = i < n ? (float *) row(op, i) : nullptr;
                // a missing column's sums are dropped; the last one's values keep garbage out of its lanes
                kern->act((const float *) row(x, std::min(i, n - 1)), k, 0, k, act + i / QUAD * QUAD * bytes, i % QUAD, QUAD);
            }
        }
        const product p = { kern, (const uint8_t *) w->data, k, w->ne[1], act, cols, y };
        const int64_t np = pieces(ng, nth, k, cols);
        if (ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, nth);
        }
        ggml_barrier(params->threadpool);
        for (int64_t i = ith; i < np; i = next_piece(params, i)) {
            p.run(ng * i / np, ng * (i + 1) / np);
            if (cols > 1 && ggml_threadpool_cancelled(params->threadpool)) {
                return;
            }
        }
    }

    static int64_t next_piece(ggml_compute_params * params, int64_t i) {
        return params->nth == 1 ? i + 1 : ggml_threadpool_chunk_add(params->threadpool, 1);
    }

    // One column of one expert: which row of src1, which of the result
    struct slot {
        int32_t id;
        int32_t token;
    };

    void mul_mat_id(ggml_compute_params * params, ggml_tensor * op) {
        const ggml_tensor * w   = op->src[0];
        const ggml_tensor * x   = op->src[1];
        const ggml_tensor * ids = op->src[2];
        const int     ith = params->ith, nth = params->nth;
        const int64_t k = w->ne[0], n_expert = w->ne[2];
        const size_t  bytes = kern->act_bytes(k);

        int64_t * begin = (int64_t *) align(params->wdata); // of each expert's columns; the last is the end
        int64_t * count = begin + n_expert + 1;
        float **  y     = (float **) align(count + n_expert + 1);
        const int64_t most = ggml_nelements(ids) + n_expert * (QUAD - 1);
        slot *    slots = (slot *) (y + most);
        uint8_t * act   = align(slots + most);

        if (ith == 0) {
            auto each = [&](auto && f) {
                for (int64_t t = 0; t < ids->ne[1]; t++) {
                    for (int64_t i = 0; i < ids->ne[0]; i++) {
                        const int32_t e = *(const int32_t *) ((const char *) ids->data + t * ids->nb[1] + i * ids->nb[0]);
                        GGML_ASSERT(e >= 0 && e < n_expert);
                        f(e, i, t);
                    }
                }
            };
            std::fill(count, count + n_expert, 0);
            each([&](int32_t e, int64_t, int64_t) { count[e]++; });
            begin[0] = 0;
            for (int64_t e = 0; e < n_expert; e++) {
                const int64_t cols = count[e] == 0 ? 0 : padded(count[e]);
                begin[e + 1] = begin[e] + cols;
                std::fill(y + begin[e], y + begin[e + 1], nullptr);
                count[e] = 0;
            }
            each([&](int32_t e, int64_t i, int64_t t) {
                const int64_t at = begin[e] + count[e]++;
                slots[at] = { (int32_t) i, (int32_t) t };
                y[at]     = (float *) ((char *) op->data + i * op->nb[1] + t * op->nb[2]);
            });
            ggml_threadpool_chunk_set(params->threadpool, nth);
        }
        ggml_barrier(params->threadpool);

        int64_t nth_col = 0;
        for (int64_t e = 0; e < n_expert; e++) {
            const int64_t cols = begin[e + 1] - begin[e];
            for (int64_t i = 0; i < cols; i++) {
                if (nth_col++ % nth != ith) {
                    continue;
                }
                const slot s = slots[begin[e] + std::min(i, count[e] - 1)];
                const auto * row = (const float *) ((const char *) x->data + s.id % x->ne[1] * x->nb[1] + s.token * x->nb[2]);
                const int64_t n = cols == 1 ? 1 : QUAD;
                kern->act(row, k, 0, k, act + (begin[e] + i / n * n) * bytes, i % n, n);
            }
        }
        ggml_barrier(params->threadpool);

        const int64_t ng = groups(w->ne[1]);
        int64_t next = ith, i = 0;
        for (int64_t e = 0; e < n_expert; e++) {
            if (count[e] == 0) {
                continue;
            }
            const int64_t cols = begin[e + 1] - begin[e], np = pieces(ng, nth, k, cols);
            const product p = { kern, (const uint8_t *) w->data + e * w->nb[2], k, w->ne[1], act + begin[e] * bytes, cols, y + begin[e] };
            for (; next < i + np; next = next_piece(params, next)) {
                p.run(ng * (next - i) / np, ng * (next - i + 1) / np);
                if (cols > 1 && ggml_threadpool_cancelled(params->threadpool)) {
                    return;
                }
            }
            i += np;
        }
    }

    void get_rows(ggml_compute_params * params, ggml_tensor * op) {
        const ggml_tensor * w   = op->src[0];
        const ggml_tensor * ids = op->src[1];
        const int64_t k = w->ne[0], n = ggml_nelements(ids);
        const size_t  size = ggml_row_size(w->type, k);
        uint8_t *     row  = align((uint8_t *) params->wdata + params->ith * (size + SLACK));
        const auto to_float = ggml_get_type_traits(w->type)->to_float;
        for (int64_t i = params->ith; i < n; i += params->nth) {
            const int64_t i0 = i % ids->ne[0], i1 = i / ids->ne[0] % ids->ne[1], i2 = i / ids->ne[0] / ids->ne[1];
            const int32_t r  = *(const int32_t *) ((const char *) ids->data + i0 * ids->nb[0] + i1 * ids->nb[1] + i2 * ids->nb[2]);
            GGML_ASSERT(r >= 0 && r < w->ne[1]);
            kern->unpack(row, (const uint8_t *) w->data + r / GROUP * group_bytes(*kern, k), r % GROUP, k);
            to_float(row, (float *) ((char *) op->data + i0 * op->nb[1] + i1 * op->nb[2] + i2 * op->nb[3]), k);
        }
    }

  public:
    explicit traits(const kernel * kern) : kern(kern) {}
    const kernel & kernels() const { return *kern; }

    static traits * of(ggml_type type) {
        static std::unique_ptr<traits> all[GGML_TYPE_COUNT];
        static const bool made = [] {
            for (int t = 0; t < GGML_TYPE_COUNT; t++) {
                if (const kernel * kern = kernel_for((ggml_type) t)) {
                    all[t] = std::make_unique<traits>(kern);
                }
            }
            return true;
        }();
        (void) made;
        return all[type].get();
    }
};

// --- the buffer type --------------------------------------------------------------------------------------------------

static enum ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor * tensor) {
    tensor->extra = fits(tensor) ? traits::of(tensor->type) : nullptr;
    return GGML_STATUS_SUCCESS;
}

// Pieces arrive in order, perhaps straight from the file in their place. A group of rows is repacked in its place as soon as
// its last byte is there.
static void set_tensor(ggml_backend_buffer_t, ggml_tensor * tensor, const void * data, size_t offset, size_t size) {
    if (data != (uint8_t *) tensor->data + offset) {
        memcpy((uint8_t *) tensor->data + offset, data, size);
    }
    const auto * t = (const traits *) tensor->extra;
    if (!t) {
        return;
    }
    const kernel & kern = t->kernels();
    const int64_t  k = tensor->ne[0], rows = ggml_nrows(tensor);
    const size_t   row = ggml_row_size(tensor->type, k), group = row * GROUP;
    const auto raw = std::make_unique<uint8_t[]>(group);
    const int64_t last = offset + size == ggml_nbytes(tensor) ? groups(rows) : (offset + size) / group;
    for (int64_t g = offset / group; g < last; g++) {
        uint8_t *     at = (uint8_t *) tensor->data + g * group;
        const int64_t n  = std::min(GROUP, rows - g * GROUP);
        memcpy(raw.get(), at, n * row);
        memset(raw.get() + n * row, 0, (GROUP - n) * row);
        for (int64_t r = 0; r < GROUP; r++) {
            kern.pack(raw.get() + r * row, at, r, k);
        }
    }
}

static void get_tensor(ggml_backend_buffer_t, const ggml_tensor * tensor, void * data, size_t offset, size_t size) {
    const auto * t = (const traits *) tensor->extra;
    if (!t) {
        memcpy(data, (const uint8_t *) tensor->data + offset, size);
        return;
    }
    const int64_t k = tensor->ne[0];
    const size_t  row = ggml_row_size(tensor->type, k);
    const auto raw = std::make_unique<uint8_t[]>(row);
    for (size_t at = offset; at < offset + size;) {
        const int64_t r = at / row;
        t->kernels().unpack(raw.get(), (const uint8_t *) tensor->data + r / GROUP * row * GROUP, r % GROUP, k);
        const size_t n = std::min<size_t>(offset + size, (r + 1) * row) - at;
        memcpy((uint8_t *) data + (at - offset), raw.get() + (at - r * row), n);
        at += n;
    }
}

static const char * get_name(ggml_backend_buffer_type_t) { return "CPU_RYS"; }

static std::atomic<int> buffers;
static void (*free_memory)(ggml_backend_buffer_t);

static void free_buffer(ggml_backend_buffer_t buffer) {
    buffers--;
    free_memory(buffer);
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    if (!buffer) {
        return nullptr;
    }
    buffers++;
    free_memory               = buffer->iface.free_buffer;
    buffer->buft              = buft;
    buffer->iface.free_buffer = free_buffer;
    buffer->iface.init_tensor = init_tensor;
    buffer->iface.set_tensor  = set_tensor;
    buffer->iface.get_tensor  = get_tensor;
    buffer->iface.cpy_tensor  = nullptr;
    return buffer;
}

static size_t get_alignment(ggml_backend_buffer_type_t) { return 32; }

// the last group is whole
static size_t get_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * tensor) {
    if (!fits(tensor)) {
        return ggml_nbytes(tensor);
    }
    return ggml_row_size(tensor->type, tensor->ne[0]) * groups(ggml_nrows(tensor)) * GROUP;
}

class extra_buffer_type : ggml::cpu::extra_buffer_type {
    bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) override {
        const ggml_tensor * w = op->src[0];
        if (!w->buffer || w->buffer->buft != rys_repack_buffer_type() || !fits(w)) {
            return false;
        }
        const ggml_tensor * x = op->src[1];
        if (x->buffer && !ggml_backend_buft_is_host(x->buffer->buft)) {
            return false;
        }
        switch (op->op) {
            case GGML_OP_MUL_MAT:
                return w->ne[2] == 1 && x->type == GGML_TYPE_F32 && ggml_get_op_params_i32(op, 1) == 0 && x->nb[0] == sizeof(float);
            case GGML_OP_MUL_MAT_ID:
                return x->type == GGML_TYPE_F32 && x->ne[3] == 1 && x->nb[0] == sizeof(float);
            case GGML_OP_GET_ROWS:
                // only where the output head reads the same tensor: rows alone are faster from the file's layout
                return w->ne[2] == 1 && strcmp(w->name, "token_embd.weight") == 0;
            default:
                return false;
        }
    }

    ggml::cpu::tensor_traits * get_tensor_traits(const ggml_tensor * op) override {
        const ggml_backend_buffer_type_t own = rys_repack_buffer_type();
        for (int i = 0; i < GGML_MAX_SRC && op->src[i]; i++) {
            const ggml_tensor * t = op->src[i]->view_src ? op->src[i]->view_src : op->src[i];
            if (!t->buffer || t->buffer->buft != own || !t->extra) {
                continue;
            }
            if (i != 0 || t != op->src[0] || (op->op != GGML_OP_MUL_MAT && op->op != GGML_OP_MUL_MAT_ID && op->op != GGML_OP_GET_ROWS)) {
                GGML_ABORT("%s reads the repacked weight %s, which only products can: load with --no-repack", ggml_op_name(op->op), t->name);
            }
            return (ggml::cpu::tensor_traits *) t->extra;
        }
        return nullptr;
    }
};

} // namespace rys

ggml_backend_buffer_type_t rys_repack_buffer_type(void) {
    static ggml_backend_buffer_type type = {
        /* .iface   = */ {
            /* .get_name       = */ rys::get_name,
            /* .alloc_buffer   = */ rys::alloc_buffer,
            /* .get_alignment  = */ rys::get_alignment,
            /* .get_max_size   = */ nullptr,
            /* .get_alloc_size = */ rys::get_alloc_size,
            /* .is_host        = */ nullptr,
        },
        /* .device  = */ ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
        /* .context = */ new rys::extra_buffer_type(),
    };
    return &type;
}

extern "C" bool rys_repack_in_use(void) { return rys::buffers.load(std::memory_order_relaxed) > 0; }

extern "C" const char * rys_kernels_name(void) { return rys::kernels_name(); }
