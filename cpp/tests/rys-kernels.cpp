// Products of repacked weights against exact sums and against upstream's path, and both timed in turns.
//
//   rys-kernels test [seed]                  every type, many shapes; prints what differs
//   rys-kernels perf [type] [k rows cols]    ratios of time, repacked against plain
//   rys-kernels attention n_kv n_tokens      milliseconds of attention by the cache's type
//   rys-kernels name

#include "kernels/rys-repack.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-quants.h"
#include "ggml.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

static std::mt19937 rng;

static const ggml_type types[] = {
    GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4,
    GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_F16,
};

static std::vector<float> normal(int64_t n, float scale) {
    std::normal_distribution<float> dist(0, scale);
    std::vector<float> v(n);
    for (float & x : v) {
        x = dist(rng);
    }
    return v;
}

static std::vector<uint8_t> quantised(ggml_type type, const std::vector<float> & x, int64_t k) {
    std::vector<uint8_t> q(ggml_row_size(type, k) * (x.size() / k));
    ggml_quantize_chunk(type, x.data(), q.data(), 0, x.size() / k, k, nullptr);
    return q;
}

static std::vector<float> dequantised(ggml_type type, const std::vector<uint8_t> & q, int64_t k, int64_t rows) {
    std::vector<float> x(k * rows);
    for (int64_t r = 0; r < rows; r++) {
        ggml_get_type_traits(type)->to_float(q.data() + r * ggml_row_size(type, k), x.data() + r * k, k);
    }
    return x;
}

struct context {
    ggml_context *        ctx;
    ggml_backend_buffer_t weights = nullptr;
    ggml_tensor *         w;

    context(ggml_type type, int64_t k, int64_t rows, int64_t experts, bool repacked, const std::vector<uint8_t> & data, size_t piece, const char * name = "w") {
        ctx = ggml_init({ ggml_tensor_overhead() * 4, nullptr, true });
        w   = ggml_new_tensor_3d(ctx, type, k, rows, experts);
        ggml_set_name(w, name);
        weights = ggml_backend_alloc_ctx_tensors_from_buft(ctx, repacked ? rys_repack_buffer_type() : ggml_backend_cpu_buffer_type());
        for (size_t at = 0; at < data.size(); at += piece) {
            ggml_backend_tensor_set(w, data.data() + at, at, std::min(piece, data.size() - at));
        }
    }
    ~context() {
        ggml_backend_buffer_free(weights);
        ggml_free(ctx);
    }
};

struct graph {
    ggml_context *        ctx;
    ggml_backend_buffer_t buffer;
    ggml_cgraph *         g;
    ggml_tensor *         x;
    ggml_tensor *         ids = nullptr;
    ggml_tensor *         y;

    // n_used = 0: plain product; cols of one expert otherwise. rows_of: rows instead of a product
    graph(ggml_tensor * w, int64_t cols, int64_t n_used, int64_t x_used, const std::vector<int32_t> & ids_data, bool rows_of = false, int repeat = 1) {
        ctx = ggml_init({ ggml_tensor_overhead() * (16 + repeat) + ggml_graph_overhead(), nullptr, true });
        g   = ggml_new_graph(ctx);
        x   = n_used ? ggml_new_tensor_3d(ctx, GGML_TYPE_F32, w->ne[0], x_used, cols) : ggml_new_tensor_2d(ctx, GGML_TYPE_F32, w->ne[0], cols);
        if (rows_of) {
            ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, ids_data.size());
            y   = ggml_get_rows(ctx, w, ids);
        } else if (n_used) {
            ids = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, n_used, cols);
            y   = ggml_mul_mat_id(ctx, w, x, ids);
        } else {
            y = ggml_mul_mat(ctx, w, x);
        }
        ggml_build_forward_expand(g, y);
        for (int i = 1; i < repeat; i++) {
            ggml_build_forward_expand(g, ggml_mul_mat(ctx, w, x));
        }
        buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
        if (ids) {
            ggml_backend_tensor_set(ids, ids_data.data(), 0, ids_data.size() * sizeof(int32_t));
        }
    }
    std::vector<float> run(ggml_backend_t backend, const std::vector<float> & data) {
        ggml_backend_tensor_set(x, data.data(), 0, data.size() * sizeof(float));
        ggml_backend_graph_compute(backend, g);
        std::vector<float> out(ggml_nelements(y));
        ggml_backend_tensor_get(y, out.data(), 0, out.size() * sizeof(float));
        return out;
    }
    ~graph() {
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
    }
};

static double nmse(const std::vector<float> & want, const std::vector<float> & got) {
    double err = 0, sum = 0;
    for (size_t i = 0; i < want.size(); i++) {
        err += ((double) got[i] - want[i]) * ((double) got[i] - want[i]);
        sum += (double) want[i] * want[i];
    }
    return err / sum;
}

static bool same(const float * a, const float * b, size_t n) { return memcmp(a, b, n * sizeof(float)) == 0; }

static int failures = 0;

// Of all results' bits: the same on every processor
static uint32_t bits = 0;

static void count_bits(const std::vector<float> & v) {
    for (const float x : v) {
        uint32_t b;
        memcpy(&b, &x, 4);
        bits = (bits ^ b) * 16777619u;
    }
}

static void check(bool ok, const std::string & what) {
    if (!ok) {
        failures++;
        printf("FAIL %s\n", what.c_str());
    }
}

static void test_product(ggml_backend_t one, ggml_backend_t two, ggml_type type, int64_t k, int64_t rows, int64_t cols, float scale) {
    const std::string name = std::string(ggml_type_name(type)) + " k=" + std::to_string(k) + " rows=" + std::to_string(rows) + " cols=" + std::to_string(cols);
    const auto q = quantised(type, normal(k * rows, scale), k);
    const auto x = normal(k * cols, 1);
    std::uniform_int_distribution<size_t> pieces(1, q.size());
    context plain(type, k, rows, 1, false, q, q.size());
    context packed(type, k, rows, 1, true, q, pieces(rng));

    std::vector<uint8_t> back(q.size());
    ggml_backend_tensor_get(packed.w, back.data(), 0, back.size());
    check(back == q, name + ": the repacked bytes cannot be read back");

    const auto wf = dequantised(type, q, k, rows);
    std::vector<float> want(rows * cols);
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++) {
                sum += (double) wf[r * k + i] * x[c * k + i];
            }
            want[c * rows + r] = sum;
        }
    }
    graph      g(packed.w, cols, 0, 0, {});
    const auto got   = g.run(one, x);
    const auto stock = graph(plain.w, cols, 0, 0, {}).run(one, x);
    const double e   = nmse(want, got), ref = nmse(stock, got);
    check(e <= 5e-4 && ref <= 5e-4, name + ": error " + std::to_string(e) + " against exact sums, " + std::to_string(ref) + " against upstream");
    check(same(g.run(two, x).data(), got.data(), got.size()), name + ": another result with two threads");
    count_bits(got);
    graph single(packed.w, 1, 0, 0, {});
    for (int64_t c = 0; c < cols; c++) {
        const auto y = single.run(c % 2 ? two : one, std::vector<float>(x.begin() + c * k, x.begin() + (c + 1) * k));
        check(same(y.data(), got.data() + c * rows, rows), name + ": column " + std::to_string(c) + " alone differs");
    }
}

static void test_experts(ggml_backend_t one, ggml_backend_t two, ggml_type type, int64_t k, int64_t rows, int64_t experts, int64_t n_used, int64_t cols, bool shared) {
    const std::string name = std::string(ggml_type_name(type)) + " k=" + std::to_string(k) + " rows=" + std::to_string(rows) + " cols=" + std::to_string(cols) +
        " experts=" + std::to_string(experts) + "/" + std::to_string(n_used) + (shared ? " shared" : "");
    const auto q = quantised(type, normal(k * rows * experts, 0.05f), k);
    const int64_t x_used = shared ? 1 : n_used;
    const auto x = normal(k * cols * x_used, 1);
    std::vector<int32_t> ids;
    for (int64_t c = 0; c < cols; c++) {
        std::vector<int32_t> all(experts);
        for (int32_t e = 0; e < experts; e++) {
            all[e] = e;
        }
        std::shuffle(all.begin(), all.end(), rng);
        ids.insert(ids.end(), all.begin(), all.begin() + n_used);
    }
    context plain(type, k, rows, experts, false, q, q.size());
    context packed(type, k, rows, experts, true, q, 1000);
    const auto want = graph(plain.w, cols, n_used, x_used, ids).run(one, x);
    graph      g(packed.w, cols, n_used, x_used, ids);
    const auto got = g.run(one, x);
    count_bits(got);
    const double e = nmse(want, got);
    check(e <= 5e-4, name + ": error " + std::to_string(e));
    check(same(g.run(two, x).data(), got.data(), got.size()), name + ": another result with two threads");
    for (int64_t c = 0; c < cols; c++) {
        const int64_t n = k * x_used;
        graph alone(packed.w, 1, n_used, x_used, std::vector<int32_t>(ids.begin() + c * n_used, ids.begin() + (c + 1) * n_used));
        const auto y = alone.run(two, std::vector<float>(x.begin() + c * n, x.begin() + (c + 1) * n));
        check(same(y.data(), got.data() + c * rows * n_used, rows * n_used), name + ": token " + std::to_string(c) + " alone differs");
    }
}

static void test_rows(ggml_backend_t one, ggml_backend_t two, ggml_type type, int64_t k, int64_t rows) {
    const auto q = quantised(type, normal(k * rows, 0.05f), k);
    context plain(type, k, rows, 1, false, q, q.size(), "token_embd.weight");
    context packed(type, k, rows, 1, true, q, 777, "token_embd.weight");
    std::vector<int32_t> ids(23);
    for (int32_t & i : ids) {
        i = std::uniform_int_distribution<int32_t>(0, rows - 1)(rng);
    }
    const std::vector<float> x(k);
    const auto want = graph(plain.w, 1, 0, 0, ids, true).run(one, x);
    check(graph(packed.w, 1, 0, 0, ids, true).run(one, x) == want, std::string(ggml_type_name(type)) + ": rows differ");
    check(graph(packed.w, 1, 0, 0, ids, true).run(two, x) == want, std::string(ggml_type_name(type)) + ": rows differ with two threads");
}

// A prompt that is cancelled leaves its product after a piece, on one thread as well.
static void test_cancel(ggml_backend_t backend, int64_t experts) {
    const int64_t k = 512, rows = 4096, cols = 128;
    const auto q = quantised(GGML_TYPE_Q4_0, normal(k * rows * experts, 0.05f), k);
    const auto x = normal(k * cols, 1);
    context packed(GGML_TYPE_Q4_0, k, rows, experts, true, q, q.size());
    graph g(packed.w, cols, experts > 1 ? 1 : 0, 1, std::vector<int32_t>(experts > 1 ? cols : 0, 1));
    const auto whole = g.run(backend, x);
    ggml_backend_tensor_memset(g.y, 0xff, 0, ggml_nbytes(g.y));
    std::atomic<int> asked{ 0 };
    ggml_backend_cpu_set_abort_callback(backend, [](void * n) { return ++*(std::atomic<int> *) n > 1; }, &asked);
    const ggml_status status = ggml_backend_graph_compute(backend, g.g);
    ggml_backend_cpu_set_abort_callback(backend, nullptr, nullptr);
    std::vector<uint32_t> bits(rows * cols), want(rows * cols);
    ggml_backend_tensor_get(g.y, bits.data(), 0, bits.size() * sizeof(uint32_t));
    memcpy(want.data(), whole.data(), want.size() * sizeof(uint32_t));
    const std::string name = experts > 1 ? "a product by expert that is cancelled" : "a product that is cancelled";
    check(status == GGML_STATUS_ABORTED, name + " does not say so");
    check(bits.front() == want.front(), name + " did not begin");
    check(bits.back() == 0xffffffff, name + " was done to its end");
    check(same(g.run(backend, x).data(), whole.data(), whole.size()), name + ": the next one differs");
}

// What the products of other weights quantise their activations with, against the reference: same bits, halves and all.
static void test_activations(ggml_type type, void (*reference)(const float *, void *, int64_t)) {
    const int64_t n = 32 * 1000;
    for (const float scale : { 1e-6f, 1.0f, 1e4f }) {
        std::vector<float> x = normal(n, scale);
        for (int64_t i = 0; i < n; i += 32) {
            if (i % 64 == 0) {
                x[i] = 127 * scale; // a step of 1: the others lie on halves
                for (int64_t j = 1; j < 32; j++) {
                    x[i + j] = std::uniform_int_distribution<int>(-254, 254)(rng) * 0.5f * scale;
                }
            }
        }
        std::fill(x.end() - 32, x.end(), 0.0f);
        std::vector<uint8_t> want(ggml_row_size(type, n)), got(want.size(), 0xff);
        reference(x.data(), want.data(), n);
        ggml_get_type_traits_cpu(type)->from_float(x.data(), got.data(), n);
        check(got == want, std::string(ggml_type_name(type)) + ": activations are not rounded as the reference does");
    }
}

// One layer's attention: 16 heads of 128 numbers that share 8 of keys and values.
struct attention_graph {
    static constexpr int64_t head = 128, n_head = 16, n_head_kv = 8;
    ggml_context *        ctx;
    ggml_cgraph *         g;
    ggml_backend_buffer_t buffer;
    ggml_tensor *         y;
    std::vector<float>    qf, kf, vf; // what the tensors hold

    attention_graph(ggml_type type, int64_t n_kv, int64_t n_tokens) {
        ctx = ggml_init({ ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true });
        ggml_tensor * q    = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, head, n_tokens, n_head);
        ggml_tensor * k    = ggml_new_tensor_3d(ctx, type, head, n_kv, n_head_kv);
        ggml_tensor * v    = ggml_new_tensor_3d(ctx, type, head, n_kv, n_head_kv);
        ggml_tensor * mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_kv, n_tokens);
        g = ggml_new_graph(ctx);
        y = ggml_flash_attn_ext(ctx, q, k, v, mask, 1 / std::sqrt((float) head), 0, 0);
        ggml_build_forward_expand(g, y);
        buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
        qf = normal(ggml_nelements(q), 1);
        ggml_backend_tensor_set(q, qf.data(), 0, ggml_nbytes(q));
        kf = fill(k);
        vf = fill(v);
        ggml_backend_tensor_memset(mask, 0, 0, ggml_nbytes(mask));
    }
    static std::vector<float> fill(ggml_tensor * t) {
        const auto f = normal(ggml_nelements(t), 1);
        if (t->type == GGML_TYPE_F32) {
            ggml_backend_tensor_set(t, f.data(), 0, ggml_nbytes(t));
            return f;
        }
        const auto b = quantised(t->type, f, head);
        ggml_backend_tensor_set(t, b.data(), 0, b.size());
        return dequantised(t->type, b, head, f.size() / head);
    }
    std::vector<float> run(ggml_backend_t backend) {
        ggml_backend_graph_compute(backend, g);
        std::vector<float> out(ggml_nelements(y));
        ggml_backend_tensor_get(y, out.data(), 0, out.size() * sizeof(float));
        return out;
    }
    ~attention_graph() {
        ggml_backend_buffer_free(buffer);
        ggml_free(ctx);
    }
};

// Attention of one token over a cache of f16, as it is beside repacked weights, against exact sums.
static void test_attention(ggml_backend_t one, ggml_backend_t two, int64_t n_kv) {
    const std::string name = "attention over " + std::to_string(n_kv) + " tokens";
    attention_graph a(GGML_TYPE_F16, n_kv, 1);
    const int64_t d = a.head;
    std::vector<float> want;
    for (int64_t h = 0; h < a.n_head; h++) {
        const float * k = a.kf.data() + h / (a.n_head / a.n_head_kv) * n_kv * d;
        const float * v = a.vf.data() + (k - a.kf.data());
        std::vector<double> sum(d);
        double total = 0;
        for (int64_t t = 0; t < n_kv; t++) {
            double dot = 0;
            for (int64_t i = 0; i < d; i++) {
                dot += (double) a.qf[h * d + i] * k[t * d + i];
            }
            const double w = std::exp(dot / std::sqrt((double) d));
            total += w;
            for (int64_t i = 0; i < d; i++) {
                sum[i] += w * v[t * d + i];
            }
        }
        for (const double x : sum) {
            want.push_back(x / total);
        }
    }
    const auto stock = a.run(one);
    const ggml_backend_buffer_t weights = ggml_backend_buft_alloc_buffer(rys_repack_buffer_type(), 64);
    const auto got = a.run(one);
    const double e = nmse(want, got), ref = nmse(want, stock);
    check(e <= 1e-9 && e < ref, name + ": error " + std::to_string(e * 1e9) + "e-9, upstream's " + std::to_string(ref * 1e9) + "e-9");
    check(same(a.run(two).data(), got.data(), got.size()), name + ": another result with two threads");
    ggml_backend_buffer_free(weights);
    check(a.run(one) == stock, name + ": not upstream's once the weights are gone");
}

static int64_t any(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng); }

static void test(uint32_t seed) {
    rng.seed(seed);
    ggml_backend_t one = ggml_backend_cpu_init(), two = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(one, 1);
    ggml_backend_cpu_set_n_threads(two, 2);
    for (const ggml_type type : types) {
        const int before = failures;
        const int64_t unit = std::max<int64_t>(32, ggml_blck_size(type));
        for (int64_t cols = 1; cols <= 9; cols++) {
            test_product(one, two, type, unit * any(1, 5), any(1, 70), cols, 0.05f);
        }
        test_product(one, two, type, 512, 32, 64, unit == 256 ? 2e-3f : 1e-4f); // scales below the normal range of f16
        test_product(one, two, type, 2048 + 256, 17, 5, 0.05f); // two panels
        test_product(one, two, type, 2048, 648, 1, 0.05f); // large enough for threads to share a column
        test_product(one, two, type, unit * any(1, 20), any(1, 200), any(1, 70), 0.05f);
        for (const bool shared : { true, false }) {
            test_experts(one, two, type, unit * any(1, 3), 8 * any(1, 6), 4, 2, any(2, 17), shared);
            test_experts(one, two, type, unit, 16, 8, any(1, 8), any(1, 5), shared);
        }
        test_rows(one, two, type, unit * any(1, 5), any(1, 100));
        printf("%s %s, bits %08x\n", failures == before ? "ok  " : "FAIL", ggml_type_name(type), bits);
        fflush(stdout);
    }
    for (const int64_t n_kv : { any(1, 40), any(41, 511), any(512, 1200) }) {
        test_attention(one, two, n_kv);
    }
    test_cancel(one, 1);
    test_cancel(one, 2);
    test_cancel(two, 1);
    test_cancel(two, 2);
    test_activations(GGML_TYPE_Q8_0, [](const float * x, void * y, int64_t n) { quantize_row_q8_0_ref(x, (block_q8_0 *) y, n); });
    test_activations(GGML_TYPE_Q8_1, [](const float * x, void * y, int64_t n) { quantize_row_q8_1_ref(x, (block_q8_1 *) y, n); });
    ggml_backend_free(one);
    ggml_backend_free(two);
}

static double seconds(ggml_backend_t backend, ggml_cgraph * g) {
    const auto t0 = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend, g);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
}

static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static void perf(const char * only, int64_t k, int64_t rows, int64_t cols) {
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 1);
    for (const ggml_type type : types) {
        if (only && strcmp(only, "all") && strcmp(only, ggml_type_name(type))) {
            continue;
        }
        const auto q = quantised(type, normal(k * rows, 0.05f), k);
        const auto x = normal(k * cols, 1);
        context plain(type, k, rows, 1, false, q, q.size());
        context packed(type, k, rows, 1, true, q, q.size());
        const int repeat = std::max<int64_t>(1, (int64_t) 4e8 / (k * rows * cols));
        graph a(plain.w, cols, 0, 0, {}, false, std::min(repeat, 8)), b(packed.w, cols, 0, 0, {}, false, std::min(repeat, 8));
        a.run(backend, x);
        b.run(backend, x);
        std::vector<double> ta, tb;
        for (int i = 0; i < 7; i++) {
            ta.push_back(seconds(backend, a.g));
            tb.push_back(seconds(backend, b.g));
        }
        const double ops = 2.0 * k * rows * cols * std::min(repeat, 8) * 1e-9;
        printf("%-6s k=%d rows=%d cols=%d: plain %.1f GOPS, repacked %.1f GOPS, ratio %.2f\n", ggml_type_name(type), (int) k, (int) rows, (int) cols,
            ops / median(ta), ops / median(tb), median(ta) / median(tb));
        fflush(stdout);
    }
    ggml_backend_free(backend);
}


// Time of attention by the cache's type: "f16" and "q8_0" as beside repacked weights, "f16-off" as without.
static void attention(int64_t n_kv, int64_t n_tokens) {
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 1);
    const std::pair<const char *, ggml_type> variants[] = {
        { "f16-off", GGML_TYPE_F16 }, { "f16", GGML_TYPE_F16 }, { "f32", GGML_TYPE_F32 }, { "q8_0", GGML_TYPE_Q8_0 },
    };
    for (const auto & [name, type] : variants) {
        ggml_backend_buffer_t weights = strcmp(name, "f16-off") ? ggml_backend_buft_alloc_buffer(rys_repack_buffer_type(), 64) : nullptr;
        attention_graph a(type, n_kv, n_tokens);
        for (double t = 0; t < 0.5;) { // V8 optimises what has run for a while
            t += seconds(backend, a.g);
        }
        std::vector<double> times;
        for (int i = 0; i < 7; i++) {
            times.push_back(seconds(backend, a.g));
        }
        printf("%s %d %d %.3f\n", name, (int) n_kv, (int) n_tokens, median(times) * 1e3);
        fflush(stdout);
        ggml_backend_buffer_free(weights);
    }
    ggml_backend_free(backend);
}

int main(int argc, char ** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "name") {
        printf("%s\n", rys_kernels_name());
    } else if (command == "test") {
        test(argc > 2 ? strtoul(argv[2], nullptr, 10) : 1);
        printf("%d failures\n", failures);
    } else if (command == "attention" && argc > 3) {
        attention(atoll(argv[2]), atoll(argv[3]));
    } else if (command == "perf") {
        const int64_t k = argc > 3 ? atoll(argv[3]) : 1024, rows = argc > 4 ? atoll(argv[4]) : 1024;
        if (argc > 5) {
            perf(argv[2], k, rows, atoll(argv[5]));
        } else {
            perf(argc > 2 ? argv[2] : nullptr, k, rows, 64);
            perf(argc > 2 ? argv[2] : nullptr, k, 4 * rows, 1);
        }
    } else {
        fprintf(stderr, "usage: rys-kernels test [seed] | perf [type [k rows cols]] | attention n_kv n_tokens | name\n");
        return 2;
    }
    return failures ? 1 : 0;
}
