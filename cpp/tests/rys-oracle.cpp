// Oracles of the layer plan: a plan's view against a model whose layers were duplicated physically.
//
//   rys-oracle [filter]                every check on every architecture whose name contains `filter` (=name: is it)
//   rys-oracle --plans N [filter]      the same with the first N plans that the architecture can run
//   rys-oracle --quick [filter]        two plans, and of the checks only identity, twin and refusals
//   rys-oracle --repacked [filter]     weights in Q8_0 and F16, repacked against upstream's path
//   rys-oracle --list                  names to filter by
//   rys-oracle --write DIR [filter]    tiny GGUF fixtures; =NAME: that of any variant
//   rys-oracle --quantize TYPE IN OUT  a model's file in another type, from whichever it has (F16, Q8_0, Q4_0)
//
// The models are those of upstream's tests/test-llama-archs.cpp with 12 layers, random weights filled by tensor name.

#include "llama.h"
#include "llama-adapter.h"
#include "llama-arch.h"
#include "llama-context.h"
#include "llama-ext.h"
#include "llama-model-loader.h"
#include "llama-model.h"

#include "rys-plan.h"
#include "rys-view.h"

#include <algorithm>
#include <cstdarg>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

static uint32_t oracle_layers(llm_arch arch, uint32_t n_layer) {
    switch (arch) {
        case LLM_ARCH_GEMMA3N: return 24; // shares keys and values from layer 20 on
        default:               return std::max(n_layer, 12u);
    }
}

#define RYS_ORACLE_LAYERS oracle_layers
#define main upstream_main
#include "tests/test-llama-archs.cpp"
#undef main

//
// results
//

static size_t max_plans = SIZE_MAX; // accepted plans of each variant that are checked
static bool   quick     = false;    // only what the twin says

static int n_passed  = 0;
static int n_failed  = 0;
static int n_refused = 0;

static void check(bool ok, const std::string & name, const std::string & detail = "") {
    (ok ? n_passed : n_failed)++;
    printf("%s %s%s%s\n", ok ? "ok  " : "FAIL", name.c_str(), detail.empty() ? "" : ": ", detail.c_str());
    fflush(stdout);
}

static void refused(const std::string & name, const std::string & message) {
    n_refused++;
    printf("ref  %s: %s\n", name.c_str(), message.c_str());
    fflush(stdout);
}

//
// plans
//

struct plan_spec {
    std::string               name;
    llama_repeat_kind         kind;
    std::vector<llama_repeat> runs;
};

static plan_spec block(uint32_t i, uint32_t j, uint32_t passes = 2) {
    return { "(" + std::to_string(i) + "," + std::to_string(j) + ")" + (passes == 2 ? "" : "x" + std::to_string(passes)),
        LLAMA_REPEAT_SPEC, {{ i, j, passes }} };
}

static std::vector<plan_spec> plan_specs(uint32_t n_layer, llm_arch arch = LLM_ARCH_UNKNOWN) {
    const uint32_t n = n_layer;
    if (arch == LLM_ARCH_GEMMA3N) { // of 24 layers, 10 are sparse and 4 share keys and values
        return {
            block(12, 16), block(18, 20), block(19, 20), block(18, 22), block(20, 24), block(1, 3),
            { "(21,23);(11,14)", LLAMA_REPEAT_SPEC, {{ 21, 23, 2 }, { 11, 14, 2 }} },
            { "path skip 19",    LLAMA_REPEAT_PATH, {{ 0, 19, 1 }, { 20, n, 1 }} },
        };
    }
    if (arch == LLM_ARCH_GEMMA4) { // layers 3 and 4 lend their keys and values where some are shared
        return {
            block(3, 5), block(4, 5), block(4, 8), block(5, 6), block(1, 3), block(8, 12),
            { "(8,10);(2,5)", LLAMA_REPEAT_SPEC, {{ 8, 10, 2 }, { 2, 5, 2 }} },
            block(6, 7, 3),
            { "path skip 7,9", LLAMA_REPEAT_PATH, {{ 0, 7, 1 }, { 8, 9, 2 }, { 10, n, 1 }} },
        };
    }
    return {
        block(4, 8), block(5, 6), block(1, 3), block(n - 4, n), block(0, 2),
        { "(8,10);(2,5)", LLAMA_REPEAT_SPEC, {{ 8, 10, 2 }, { 2, 5, 2 }} },
        block(6, 7, 3),
        { "path skip 5,9", LLAMA_REPEAT_PATH, {{ 0, 5, 1 }, { 6, 9, 2 }, { 10, n, 1 }} },
    };
}

//
// models
//

struct variant {
    llm_arch    arch;
    bool        moe;
    std::string name;
    std::function<void(gguf_context *, uint32_t)> patch;
};

template <typename T> static gguf_type gguf_type_of();
template <> gguf_type gguf_type_of<uint32_t>() { return GGUF_TYPE_UINT32; }
template <> gguf_type gguf_type_of<float>()    { return GGUF_TYPE_FLOAT32; }
template <> gguf_type gguf_type_of<int32_t>()  { return GGUF_TYPE_INT32; }

template <typename T>
static void set_layers(gguf_context * ctx, llm_arch arch, llm_kv kv, uint32_t n_layer, const std::function<T(uint32_t)> & value) {
    std::vector<T> values;
    for (uint32_t il = 0; il < n_layer; ++il) {
        values.push_back(value(il));
    }
    gguf_set_arr_data(ctx, LLM_KV(arch)(kv).c_str(), gguf_type_of<T>(), values.data(), values.size());
}

// Upstream's fixture, with per-layer lists that make sense for 12 layers.
static gguf_context_ptr make_fixture(const variant & v) {
    const llm_arch arch = v.arch;
    gguf_context_ptr ctx = get_gguf_ctx(arch, v.moe);

    const int64_t key_layers = gguf_find_key(ctx.get(), LLM_KV(arch)(LLM_KV_BLOCK_COUNT).c_str());
    const uint32_t n_layer = gguf_get_val_u32(ctx.get(), key_layers);

    auto list = [&](llm_kv kv, std::function<uint32_t(uint32_t)> value) {
        set_layers<uint32_t>(ctx.get(), arch, kv, n_layer, value);
    };

    switch (arch) {
        case LLM_ARCH_PLAMO2:
        case LLM_ARCH_JAMBA:
        case LLM_ARCH_GRANITE_HYBRID:
        case LLM_ARCH_LFM2:
        case LLM_ARCH_LFM2MOE:
        case LLM_ARCH_KIMI_LINEAR:
        case LLM_ARCH_BAILINGMOE3:
        case LLM_ARCH_KIMI_K3: {
            const int64_t key = gguf_find_key(ctx.get(), LLM_KV(arch)(LLM_KV_ATTENTION_HEAD_COUNT).c_str());
            const uint32_t n_head = ((const uint32_t *) gguf_get_arr_data(ctx.get(), key))[0];
            auto heads = [=](uint32_t il) { return il % 3 == 1 ? 0 : n_head; };
            list(LLM_KV_ATTENTION_HEAD_COUNT,    heads);
            list(LLM_KV_ATTENTION_HEAD_COUNT_KV, heads);
            if (arch == LLM_ARCH_BAILINGMOE3) {
                set_layers<float>(ctx.get(), arch, LLM_KV_SWIGLU_CLAMP_EXP,   n_layer, [](uint32_t il) { return il % 2 ? 4.0f + il : 0.0f; });
                set_layers<float>(ctx.get(), arch, LLM_KV_SWIGLU_CLAMP_SHEXP, n_layer, [](uint32_t il) { return il % 3 ? 5.0f + il : 0.0f; });
            }
        } break;
        case LLM_ARCH_NEMOTRON_H:
        case LLM_ARCH_NEMOTRON_H_MOE:
            list(LLM_KV_FEED_FORWARD_LENGTH,      [](uint32_t il) { return il % 3 == 2 ? 384u : 0u; });
            list(LLM_KV_ATTENTION_HEAD_COUNT,     [](uint32_t il) { return il % 3 == 1 ? 0u : 2u; });
            list(LLM_KV_ATTENTION_HEAD_COUNT_KV,  [](uint32_t il) { return il % 3 == 1 ? 0u : 2u; });
            break;
        case LLM_ARCH_DEEPSEEK4:
            list(LLM_KV_ATTENTION_COMPRESS_RATIOS, [](uint32_t il) { return il % 4 == 2 ? 4u : il % 4 == 3 ? 128u : 0u; });
            break;
        case LLM_ARCH_HRM_TEXT:
            gguf_set_val_u32(ctx.get(), LLM_KV(arch)(LLM_KV_HRM_H_CYCLES).c_str(), 3); // 3 * (3 + 1) layers
            break;
        case LLM_ARCH_GEMMA4:
            list(LLM_KV_ATTENTION_SLIDING_WINDOW_PATTERN, [](uint32_t il) { return il % 5 == 4 ? 0u : 1u; });
            break;
        default:
            break;
    }
    if (v.patch) {
        v.patch(ctx.get(), n_layer);
    }
    return ctx;
}

static uint32_t fixture_layers(const gguf_context * ctx, llm_arch arch) {
    return gguf_get_val_u32(ctx, gguf_find_key(ctx, LLM_KV(arch)(LLM_KV_BLOCK_COUNT).c_str()));
}

using model_ptr = std::unique_ptr<llama_model, decltype(&llama_model_free)>;

static llama_model_params model_params() {
    static ggml_backend_dev_t no_devices[] = { nullptr };
    llama_model_params params = llama_model_default_params();
    params.devices  = no_devices;
    params.load_mtp = true;
    return params;
}

// Upstream's random weights, and expert numbers for deepseek4's table.
static void set_base_data(ggml_tensor * tensor, void * userdata) {
    if (tensor->type != GGML_TYPE_I32) {
        set_tensor_data(tensor, userdata);
        return;
    }
    std::vector<int32_t> experts(ggml_nelements(tensor));
    for (size_t i = 0; i < experts.size(); ++i) {
        experts[i] = (i + (i / tensor->ne[0]) * std::hash<std::string>()(tensor->name)) % 2;
    }
    ggml_backend_tensor_set(tensor, experts.data(), 0, ggml_nbytes(tensor));
}

static model_ptr make_base(const variant & v) {
    gguf_context_ptr ctx = make_fixture(v);
    tensor_data_params data = { 1234, 0.1f };
    return model_ptr(llama_model_init_from_user(ctx.get(), set_base_data, &data, model_params()), llama_model_free);
}

// Copies a tensor's data out of the base model, its name mapped from the twin's layer to the source layer.
struct twin_source {
    const llama_model * base;
    rys_plan            sources; // nextn layers included
};

static std::string source_name(const std::string & name, const rys_plan & sources) {
    const size_t at = name.find("blk.");
    if (at == std::string::npos || (at > 0 && name[at - 1] != '.')) {
        return name;
    }
    const size_t from = at + 4;
    const size_t to = name.find('.', from);
    return name.substr(0, from) + std::to_string(sources.at(std::stoul(name.substr(from, to - from)))) + name.substr(to);
}

static void copy_source_data(ggml_tensor * tensor, void * userdata) {
    const twin_source & source = *(const twin_source *) userdata;
    const std::string name = source_name(tensor->name, source.sources);
    const ggml_tensor * from = source.base->get_tensor(name.c_str());
    if (from == nullptr) {
        throw std::runtime_error("twin: the base has no tensor " + name);
    }

    std::vector<uint8_t> data(ggml_nbytes(from));
    ggml_backend_tensor_get(from, data.data(), 0, data.size());

    // one slice per layer, side by side in a single tensor (gemma3n, gemma4)
    const bool per_layer = source.base->arch == LLM_ARCH_GEMMA3N || source.base->arch == LLM_ARCH_GEMMA4;
    if (per_layer && (name == "per_layer_token_embd.weight" || name == "per_layer_model_proj.weight")) {
        const bool   rows    = name == "per_layer_token_embd.weight"; // slices of every row, else groups of rows
        const size_t n_src   = source.base->hparams.n_layer();
        const size_t n_slice = rows ? from->nb[1] / n_src : from->nb[1] * (from->ne[1] / n_src);
        const size_t n_outer = rows ? from->ne[1] : 1;
        std::vector<uint8_t> out;
        for (size_t o = 0; o < n_outer; ++o) {
            for (uint32_t src : source.sources) {
                const uint8_t * at = data.data() + o * n_src * n_slice + src * n_slice;
                out.insert(out.end(), at, at + n_slice);
            }
        }
        data = std::move(out);
    }

    if (data.size() != ggml_nbytes(tensor)) {
        throw std::runtime_error("twin: " + std::string(tensor->name) + " has another size than " + name);
    }
    ggml_backend_tensor_set(tensor, data.data(), 0, data.size());
}

// A model whose file lists every layer of the plan, loaded by upstream's loader.
static model_ptr make_twin(const variant & v, const llama_model & base, const rys_plan & plan) {
    const uint32_t n_layer = base.hparams.n_layer();
    const uint32_t n_nextn = base.hparams.n_layer_nextn;

    twin_source source = { &base, plan };
    for (uint32_t il = 0; il < n_nextn; ++il) {
        source.sources.push_back(n_layer + il);
    }
    const uint32_t n_all = source.sources.size();

    // the file: block count, and every list with one entry per layer
    gguf_context_ptr ctx = make_fixture(v);
    const std::string key_count = LLM_KV(v.arch)(LLM_KV_BLOCK_COUNT);
    const uint32_t n_all_base = fixture_layers(ctx.get(), v.arch);
    const uint32_t n_file = n_all_base == n_layer ? plan.size() : n_all; // granite-switch adds its router while loading
    std::vector<std::string> keys; // setting one moves it to the end
    for (int64_t id = 0; id < gguf_get_n_kv(ctx.get()); ++id) {
        keys.push_back(gguf_get_key(ctx.get(), id));
    }
    for (const std::string & key : keys) {
        const int64_t id = gguf_find_key(ctx.get(), key.c_str());
        if (gguf_get_kv_type(ctx.get(), id) != GGUF_TYPE_ARRAY || gguf_get_arr_n(ctx.get(), id) != n_all_base ||
                key.rfind("tokenizer.", 0) == 0) {
            continue;
        }
        const gguf_type type = gguf_get_arr_type(ctx.get(), id);
        GGML_ASSERT(type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32 || type == GGUF_TYPE_FLOAT32);
        const uint32_t * from = (const uint32_t *) gguf_get_arr_data(ctx.get(), id);
        std::vector<uint32_t> values; // the bits of whichever type
        for (uint32_t e = 0; e < n_file; ++e) {
            values.push_back(from[source.sources[e]]);
        }
        gguf_set_arr_data(ctx.get(), key.c_str(), type, values.data(), values.size());
    }
    gguf_set_val_u32(ctx.get(), key_count.c_str(), n_file);
    for (const llm_kv kv : { LLM_KV_LEADING_DENSE_BLOCK_COUNT, LLM_KV_HASH_LAYER_COUNT }) {
        const std::string key = LLM_KV(v.arch)(kv);
        const int64_t id = gguf_find_key(ctx.get(), key.c_str());
        if (id >= 0) {
            const uint32_t n_lead = gguf_get_val_u32(ctx.get(), id);
            gguf_set_val_u32(ctx.get(), key.c_str(),
                    std::count_if(plan.begin(), plan.end(), [&](uint32_t src) { return src < n_lead; }));
        }
    }
    if (v.arch == LLM_ARCH_T5) {
        gguf_set_val_u32(ctx.get(), LLM_KV(v.arch)(LLM_KV_DECODER_BLOCK_COUNT).c_str(), n_all);
    }
    if (v.arch == LLM_ARCH_GEMMA4) {
        const std::string key = LLM_KV(v.arch)(LLM_KV_ATTENTION_SHARED_KV_LAYERS);
        const uint32_t n_shared = gguf_get_val_u32(ctx.get(), gguf_find_key(ctx.get(), key.c_str()));
        gguf_set_val_u32(ctx.get(), key.c_str(),
                std::count_if(plan.begin(), plan.end(), [&](uint32_t src) { return src >= n_layer - n_shared; }));
    }

    // upstream's llama_model_load, with one stop between hyper-parameters and tensors
    llama_model_params params = model_params();
    params.load_mode       = LLAMA_LOAD_MODE_NONE;
    params.use_extra_bufts = false;

    std::vector<std::string> splits;
    llama_model_loader ml(ctx.get(), copy_source_data, &source, "", splits, nullptr, params.load_mode,
            params.check_tensors, params.no_alloc, params.load_mtp, params.kv_overrides, params.tensor_buft_overrides);
    ml.lazy.mode = params.lazy_mode;

    model_ptr twin(llama_model_create(ml, params), llama_model_free);
    llama_hparams & hparams = twin->hparams;
    hparams.vocab_only = false;
    hparams.no_alloc   = false;
    twin->load_hparams(ml);

    // What a file cannot say per layer: patterns the loader derives from a period, and numbers fixed in its source.
    for (uint32_t e = 0; e < n_all; ++e) {
        hparams.is_swa_impl[e]  = base.hparams.is_swa_impl [source.sources[e]];
        hparams.is_recr_impl[e] = base.hparams.is_recr_impl[source.sources[e]];
        hparams.is_ple_impl[e]  = base.hparams.is_ple_impl [source.sources[e]];
    }
    if (v.arch == LLM_ARCH_GEMMA3N) {
        hparams.n_layer_kv_from_start = std::count_if(plan.begin(), plan.end(), [](uint32_t src) { return src < 20; });
    }
    if (v.arch == LLM_ARCH_MINICPM || v.arch == LLM_ARCH_SMALLTHINKER || v.arch == LLM_ARCH_LLAMA4) {
        // derived from the number of layers: the trained value belongs to the source model
        hparams.f_residual_scale     = base.hparams.f_residual_scale;
        hparams.n_no_rope_layer_step = base.hparams.n_no_rope_layer_step;
    }

    twin->load_vocab(ml);
    twin->load_stats(ml);
    if (!twin->load_tensors(ml)) {
        throw std::runtime_error("twin: tensors were not loaded");
    }
    twin->type = base.type;
    return twin;
}

// The graph of these asks for the number of the source layer, which no file can hold.
static bool needs_source_numbers(llm_arch arch) {
    switch (arch) {
        case LLM_ARCH_LLAMA4:
        case LLM_ARCH_AFMOE:
        case LLM_ARCH_SMOLLM3:
        case LLM_ARCH_SMALLTHINKER:
        case LLM_ARCH_ERNIE4_5_MOE:
        case LLM_ARCH_MINIMAX_01:
        case LLM_ARCH_MINICPM3:
        case LLM_ARCH_NOMIC_BERT_MOE:
        case LLM_ARCH_RWKV6:
        case LLM_ARCH_GEMMA3N: // activation sparsity of the first 10
            return true;
        default:
            return false;
    }
}

//
// running
//

static constexpr uint32_t n_prefill = 64;
static constexpr uint32_t n_decode  = 12;

using context_ptr = std::unique_ptr<llama_context, decltype(&llama_free)>;

static bool is_encoder_decoder(llm_arch arch) { return arch == LLM_ARCH_T5; }

// Models without a head: their embeddings are compared.
static bool gives_embeddings(llm_arch arch) {
    switch (arch) {
        case LLM_ARCH_BERT:
        case LLM_ARCH_MODERN_BERT:
        case LLM_ARCH_NOMIC_BERT:
        case LLM_ARCH_NOMIC_BERT_MOE:
        case LLM_ARCH_NEO_BERT:
        case LLM_ARCH_JINA_BERT_V2:
        case LLM_ARCH_JINA_BERT_V3:
        case LLM_ARCH_EUROBERT:
        case LLM_ARCH_T5ENCODER:
        case LLM_ARCH_GEMMA_EMBEDDING:
        case LLM_ARCH_LLAMA_EMBED:
            return true;
        default:
            return false;
    }
}

static llama_context_params context_params(const plan_spec * spec, uint32_t n_ubatch = 16) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx           = 256;
    params.n_batch         = 256;
    params.n_ubatch        = n_ubatch;
    params.n_threads       = 1;
    params.n_threads_batch = 1;
    if (spec) {
        params.repeat_kind = spec->kind;
        params.repeats     = spec->runs.data();
        params.n_repeats   = spec->runs.size();
    }
    return params;
}

static context_ptr make_context(llama_model & model, llama_context_params params) {
    params.embeddings   = gives_embeddings(model.arch);
    params.pooling_type = params.embeddings ? LLAMA_POOLING_TYPE_NONE : LLAMA_POOLING_TYPE_UNSPECIFIED;
    return context_ptr(llama_init_from_model(&model, params), llama_free);
}

static bool has_memory(llama_context & ctx) { return llama_get_memory(&ctx) != nullptr; }

static context_ptr make_context(llama_model & model, const plan_spec * spec) {
    context_ptr ctx = make_context(model, context_params(spec));
    if (ctx && (!has_memory(*ctx) || is_encoder_decoder(model.arch))) {
        ctx = make_context(model, context_params(spec, 256)); // the whole input at once
    }
    return ctx;
}

static std::vector<llama_token> prompt_tokens() { return get_tokens(n_prefill + n_decode, 128, 99); }

// Decodes tokens [from, to) as one batch and returns the logits of all of them.
static std::vector<float> decode(llama_context & ctx, const std::vector<llama_token> & tokens, uint32_t from, uint32_t to) {
    llama_batch batch = llama_batch_init(to - from, 0, 1);
    for (uint32_t i = from; i < to; ++i) {
        common_batch_add(batch, tokens[i], i, { 0 }, true);
    }
    const llama_model & model = *llama_get_model(&ctx);
    const bool encode = is_encoder_decoder(model.arch) && from == 0;
    const bool ok = (!encode || llama_encode(&ctx, batch) == 0) && llama_decode(&ctx, batch) == 0;
    llama_batch_free(batch);
    if (!ok) {
        throw std::runtime_error("decode failed");
    }

    const bool embeddings = gives_embeddings(model.arch);
    const uint32_t n_row = embeddings ? model.hparams.n_embd_out() : model.vocab.n_tokens();
    std::vector<float> logits;
    for (uint32_t i = 0; i < to - from; ++i) {
        const float * row = embeddings ? llama_get_embeddings_ith(&ctx, i) : llama_get_logits_ith(&ctx, i);
        logits.insert(logits.end(), row, row + n_row);
    }
    return logits;
}

static void append(std::vector<float> & to, const std::vector<float> & from) { to.insert(to.end(), from.begin(), from.end()); }

// Prefill in micro-batches, then one token at a time.
static std::vector<float> run(llama_context & ctx) {
    const std::vector<llama_token> tokens = prompt_tokens();
    std::vector<float> logits = decode(ctx, tokens, 0, n_prefill);
    if (has_memory(ctx)) {
        for (uint32_t i = n_prefill; i < n_prefill + n_decode; ++i) {
            append(logits, decode(ctx, tokens, i, i + 1));
        }
    }
    return logits;
}

static bool same(const std::vector<float> & a, const std::vector<float> & b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

static std::string difference(const std::vector<float> & a, const std::vector<float> & b) {
    if (a.size() != b.size()) {
        return "sizes differ";
    }
    double max = 0;
    size_t n = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double d = std::fabs(a[i] - b[i]);
        n += a[i] != b[i];
        max = std::max(max, std::isnan(d) ? INFINITY : d);
    }
    return std::to_string(n) + " of " + std::to_string(a.size()) + " logits differ, at most by " + std::to_string(max);
}

static bool finite_and_alive(const std::vector<float> & logits) {
    float min = INFINITY, max = -INFINITY;
    for (float x : logits) {
        if (!std::isfinite(x)) {
            return false;
        }
        min = std::min(min, x);
        max = std::max(max, x);
    }
    return max > min;
}

//
// graph lint
//

// What a node computes, without what names its layer.
struct lint_node {
    std::string text;
    int         layer;
};

struct lint_log {
    std::vector<lint_node>              nodes;
    std::map<const ggml_tensor *, int>  layers;
};

static int name_layer(const char * name) {
    const char * dash = strrchr(name, '-');
    if (!dash || !isdigit((unsigned char) dash[1])) {
        return -1;
    }
    char * end = nullptr;
    const int layer = strtol(dash + 1, &end, 10);
    return *end == '\0' || *end == ' ' ? layer : -1;
}

static bool lint_collect(ggml_tensor * t, bool /*ask*/, void * user_data) {
    std::string text = ggml_op_name(t->op);
    auto shape = [&](const ggml_tensor * x) {
        char buf[128];
        snprintf(buf, sizeof(buf), " %s[%lld,%lld,%lld,%lld]", ggml_type_name(x->type),
                (long long) x->ne[0], (long long) x->ne[1], (long long) x->ne[2], (long long) x->ne[3]);
        text += buf;
    };
    shape(t);
    for (size_t i = 0; i < GGML_MAX_OP_PARAMS / sizeof(int32_t); ++i) {
        text += "," + std::to_string(t->op_params[i]);
    }
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (const ggml_tensor * src = t->src[i]) {
            shape(src);
            if (src->op == GGML_OP_NONE && strchr(src->name, '.')) { // a weight
                text += std::string(" ") + src->name;
            }
        }
    }

    // an unnamed node belongs to the layer of its latest input, a cache to the layer in its name
    lint_log & log = *(lint_log *) user_data;
    int layer = name_layer(t->name);
    for (int i = 0; layer < 0 && i < GGML_MAX_SRC; ++i) {
        for (const ggml_tensor * src = t->src[i]; src; src = src->view_src) {
            const auto it = log.layers.find(src);
            const char * cache = strncmp(src->name, "cache_", 6) == 0 ? strstr(src->name, "_l") : nullptr;
            layer = std::max(layer, it != log.layers.end() ? it->second : cache ? atoi(cache + 2) : -1);
        }
    }
    for (int i = 0; name_layer(t->name) < 0 && i < GGML_MAX_SRC; ++i) {
        const auto it = log.layers.find(t->src[i]);
        layer = std::max(layer, it != log.layers.end() ? it->second : -1);
    }
    log.layers[t] = layer;
    log.nodes.push_back({ text, layer });
    return false;
}

// Nodes of each layer, in no order: where they stand in the graph depends on the neighbours.
static std::map<int, std::vector<std::string>> lint_layers(const lint_log & log) {
    std::map<int, std::vector<std::string>> layers;
    for (const lint_node & node : log.nodes) {
        layers[node.layer].push_back(node.text);
    }
    for (auto & [layer, nodes] : layers) {
        std::sort(nodes.begin(), nodes.end());
    }
    return layers;
}

static std::map<int, std::vector<std::string>> lint_run(llama_model & model, const plan_spec * spec) {
    lint_log log;
    llama_context_params params = context_params(spec, 256);
    params.cb_eval           = lint_collect;
    params.cb_eval_user_data = &log;
    context_ptr ctx = make_context(model, params);
    log = {};
    decode(*ctx, prompt_tokens(), 0, n_prefill);
    return lint_layers(log);
}

// Layer e of the plan's run against layer plan[e] of the identity run. Left out: the first layer (inputs), the last
// and what stands before it (selection of outputs), and layers whose cache other layers read. Where a pass begins or
// ends, an unnamed node may count as the neighbour's: there a match counts and a mismatch does not.
static std::string lint_compare(
        const std::map<int, std::vector<std::string>> & identity,
        const std::map<int, std::vector<std::string>> & planned,
        const rys_plan & plan, const llama_hparams & hparams, size_t & n_compared) {
    const uint32_t last   = hparams.n_layer() - 1;
    const uint32_t shared = hparams.n_layer_kv_from_start > 0 && hparams.n_layer_kv_from_start <= (int32_t) last ?
        hparams.n_layer_kv_from_start : 0;
    for (uint32_t e = 1; e + 1 < plan.size(); ++e) {
        if (plan[e] == 0 || plan[e] == last || plan[e + 1] == last || (plan[e] + 2 >= shared && plan[e] < shared)) {
            continue;
        }
        const auto a = identity.find(plan[e]);
        const auto b = planned.find(e);
        if (a == identity.end() || b == planned.end()) {
            return "layer " + std::to_string(e) + " has no named node";
        }
        if (a->second == b->second) {
            n_compared += a->second.size();
        } else if (plan[e - 1] + 1 == plan[e] && plan[e] + 1 == plan[e + 1]) {
            size_t i = 0;
            while (i < a->second.size() && i < b->second.size() && a->second[i] == b->second[i]) {
                ++i;
            }
            return "place " + std::to_string(e) + " (layer " + std::to_string(plan[e]) + ") node " + std::to_string(i) + ": '" +
                (i < b->second.size() ? b->second[i] : "-") + "' is not '" + (i < a->second.size() ? a->second[i] : "-") + "'";
        }
    }
    return "";
}

//
// checks of one architecture
//

static size_t model_bytes(const llama_context & ctx) {
    size_t n = 0;
    for (const auto & [buft, mb] : llama_get_memory_breakdown(&ctx)) {
        n += mb.model;
    }
    return n;
}

static size_t memory_bytes(const llama_context & ctx) {
    size_t n = 0;
    for (const auto & [buft, mb] : llama_get_memory_breakdown(&ctx)) {
        n += mb.context;
    }
    return n;
}

static rys_plan expand_plan(const llama_model & model, const plan_spec & spec) {
    return rys_plan_expand(spec.kind, spec.runs.data(), spec.runs.size(), model.hparams.n_layer(), LLAMA_MAX_LAYERS);
}

// "" when a plan is accepted, else the message.
static std::string plan_refusal(const llama_model & model, const plan_spec & spec) {
    char error[512] = "";
    const int32_t n = llama_plan_check(&model, spec.kind, spec.runs.data(), spec.runs.size(), nullptr, 0, error, sizeof(error));
    return n < 0 ? error : "";
}

static std::vector<uint8_t> save_state(llama_context & ctx) {
    std::vector<uint8_t> state(llama_state_get_size(&ctx));
    const size_t n = llama_state_get_data(&ctx, state.data(), state.size());
    state.resize(n);
    return state;
}

static std::vector<uint8_t> save_seq(llama_context & ctx, llama_state_seq_flags flags = 0) {
    std::vector<uint8_t> state(llama_state_seq_get_size_ext(&ctx, 0, flags));
    const size_t n = llama_state_seq_get_data_ext(&ctx, state.data(), state.size(), 0, flags);
    state.resize(n);
    return state;
}

// A context that has read the prompt, and the token after it.
static std::vector<float> continuation(llama_context & ctx) {
    std::vector<float> logits;
    for (uint32_t i = n_prefill; i < n_prefill + 4; ++i) {
        append(logits, decode(ctx, prompt_tokens(), i, i + 1));
    }
    return logits;
}

static std::string last_log;

static void test_states(const std::string & name, llama_model & model, const plan_spec & a, const plan_spec & b) {
    context_ptr ctx_a = make_context(model, &a);
    if (!has_memory(*ctx_a) || is_encoder_decoder(model.arch)) {
        return;
    }
    decode(*ctx_a, prompt_tokens(), 0, n_prefill);
    const std::vector<uint8_t> whole = save_state(*ctx_a);
    const std::vector<uint8_t> seq   = save_seq(*ctx_a);
    const std::vector<float>   next  = continuation(*ctx_a);

    context_ptr ctx_id = make_context(model, (const plan_spec *) nullptr);
    decode(*ctx_id, prompt_tokens(), 0, n_prefill);
    const std::vector<uint8_t> whole_id = save_state(*ctx_id);
    const std::vector<uint8_t> seq_id   = save_seq(*ctx_id);
    const std::vector<float>   next_id  = continuation(*ctx_id);

    const std::string arch = model.arch_name();
    const uint32_t    n_arch = arch.size();
    const uint32_t    magic  = 0xaf143cd8;
    check(memcmp(whole_id.data(), &n_arch, 4) == 0 && memcmp(whole_id.data() + 4, arch.data(), n_arch) == 0 &&
            memcmp(seq_id.data(), &magic, 4) == 0, name + " state: identity has upstream's header");

    // upstream restores a sliding window into other cells, which rounds differently: no plan has to be better than none
    auto resume = [&](const plan_spec * spec, const std::vector<uint8_t> & state, bool sequence) {
        context_ptr ctx = make_context(model, spec);
        const size_t n = sequence ? llama_state_seq_set_data(ctx.get(), state.data(), state.size(), 0) :
                                    llama_state_set_data(ctx.get(), state.data(), state.size());
        return n == state.size() ? continuation(*ctx) : std::vector<float>();
    };
    for (const bool sequence : { false, true }) {
        const std::vector<float> r_id = resume(nullptr, sequence ? seq_id : whole_id, sequence);
        const std::vector<float> r_a  = resume(&a, sequence ? seq : whole, sequence);
        const bool exact = same(r_id, next_id);
        check(r_id.size() == next_id.size() && (exact ? same(r_a, next) : r_a.size() == next.size() && nmse(r_a, next) < 100 * nmse(r_id, next_id)),
                name + " state: " + (sequence ? "sequence" : "whole") + ", same plan goes on equally", exact ? "" :
                    "within rounding, as without a plan (nmse " + std::to_string(nmse(r_id, next_id)) + ", with it " +
                    (r_a.size() == next.size() ? std::to_string(nmse(r_a, next)) : "-") + ")");
    }

    bool ok = true;
    auto refuses = [&](const plan_spec * into, const std::vector<uint8_t> & w, const std::vector<uint8_t> & s) {
        context_ptr ctx = make_context(model, into);
        last_log.clear();
        ok = ok && llama_state_set_data(ctx.get(), w.data(), w.size()) == 0 &&
            last_log.find("another layer plan") != std::string::npos;
        last_log.clear();
        ok = ok && llama_state_seq_set_data(ctx.get(), s.data(), s.size(), 0) == 0 &&
            last_log.find("another layer plan") != std::string::npos;
        last_log.clear();
        ok = ok && llama_state_seq_set_data_ext(ctx.get(), s.data(), s.size(), 0, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE) == 0 &&
            last_log.find("another layer plan") != std::string::npos;
        // and goes on as if nothing had happened
        ok = ok && same(run(*ctx), run(*make_context(model, into)));
    };
    refuses(&b, whole, seq);
    refuses(nullptr, whole, seq);
    refuses(&a, whole_id, seq_id);
    check(ok, name + " state: other plans refuse it, by name");

    {
        decode(*ctx_id, prompt_tokens(), n_prefill + 4, n_prefill + 5);
        context_ptr ctx = make_context(model, &a);
        decode(*ctx, prompt_tokens(), 0, n_prefill);
        const std::vector<uint8_t> dev = save_seq(*ctx, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE);
        continuation(*ctx);
        bool read = llama_memory_seq_rm(llama_get_memory(ctx.get()), 0, -1, -1) &&
            llama_state_seq_set_data_ext(ctx.get(), dev.data(), dev.size(), 0, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE) == dev.size();
        check(read && same(continuation(*ctx), next), name + " state: device, same plan goes on equally");

        context_ptr other = make_context(model, &a); // has no such state on its device
        check(llama_state_seq_set_data_ext(other.get(), dev.data(), dev.size(), 0, LLAMA_STATE_SEQ_FLAGS_ON_DEVICE) == 0,
                name + " state: device, another context refuses it");
    }
}

#ifndef __EMSCRIPTEN__
static void test_state_files() {
    model_ptr base = make_base({ LLM_ARCH_QWEN35, false, "qwen35", nullptr });
    const plan_spec a = block(5, 6), b = block(7, 8);
    const std::string whole = "rys-oracle-state.tmp", seq = "rys-oracle-seq.tmp";
    const std::vector<llama_token> tokens = prompt_tokens();
    auto reader = [&](const plan_spec * spec) { return make_context(*base, spec); };

    context_ptr ctx = reader(&a);
    decode(*ctx, tokens, 0, n_prefill);
    bool ok = llama_state_save_file(ctx.get(), whole.c_str(), tokens.data(), n_prefill) &&
        llama_state_seq_save_file(ctx.get(), seq.c_str(), 0, tokens.data(), n_prefill) > 0;
    const std::vector<float> next = continuation(*ctx);

    std::vector<llama_token> out(256);
    size_t n_out = 0;
    context_ptr again = reader(&a);
    ok = ok && llama_state_load_file(again.get(), whole.c_str(), out.data(), out.size(), &n_out) && n_out == n_prefill &&
        same(continuation(*again), next);
    again = reader(&a);
    ok = ok && llama_state_seq_load_file(again.get(), seq.c_str(), 0, out.data(), out.size(), &n_out) > 0 &&
        same(continuation(*again), next);
    check(ok, "state files: the same plan goes on equally");

    ok = true;
    for (const plan_spec * other : { &b, (const plan_spec *) nullptr }) {
        context_ptr into = reader(other);
        last_log.clear();
        ok = ok && !llama_state_load_file(into.get(), whole.c_str(), out.data(), out.size(), &n_out) &&
            last_log.find("another layer plan") != std::string::npos;
        last_log.clear();
        ok = ok && llama_state_seq_load_file(into.get(), seq.c_str(), 0, out.data(), out.size(), &n_out) == 0 &&
            last_log.find("another layer plan") != std::string::npos;
    }
    context_ptr plain = reader(nullptr);
    decode(*plain, tokens, 0, n_prefill);
    ok = ok && llama_state_save_file(plain.get(), whole.c_str(), tokens.data(), n_prefill) &&
        llama_state_seq_save_file(plain.get(), seq.c_str(), 0, tokens.data(), n_prefill) > 0;
    context_ptr into = reader(&a);
    ok = ok && !llama_state_load_file(into.get(), whole.c_str(), out.data(), out.size(), &n_out) &&
        llama_state_seq_load_file(into.get(), seq.c_str(), 0, out.data(), out.size(), &n_out) == 0;
    check(ok, "state files: other plans refuse them, by name");
    remove(whole.c_str());
    remove(seq.c_str());
}
#endif

static void test_interleaved(const std::string & name, llama_model & model, const std::vector<const plan_spec *> & specs,
        const std::vector<std::vector<float>> & alone) {
    std::vector<context_ptr> ctxs;
    std::vector<std::vector<float>> logits(specs.size());
    for (const plan_spec * spec : specs) {
        ctxs.push_back(make_context(model, spec));
    }
    for (size_t i = 0; i < specs.size(); ++i) {
        append(logits[i], decode(*ctxs[i], prompt_tokens(), 0, n_prefill));
    }
    if (has_memory(*ctxs[0])) {
        for (uint32_t t = n_prefill; t < n_prefill + n_decode; ++t) {
            for (size_t i = 0; i < specs.size(); ++i) {
                append(logits[i], decode(*ctxs[i], prompt_tokens(), t, t + 1));
            }
        }
    }
    bool ok = true;
    for (size_t i = 0; i < specs.size(); ++i) {
        ok = ok && same(logits[i], alone[i]);
    }
    check(ok, name + " interleaved: " + std::to_string(specs.size()) + " contexts equal each alone");
}

// How far prefill plus single tokens is from one batch.
static double slots_nmse(llama_model & model, const plan_spec * spec, const std::vector<float> & stepped) {
    context_ptr ctx = make_context(model, context_params(spec, 256));
    return nmse(decode(*ctx, prompt_tokens(), 0, n_prefill + n_decode), stepped);
}

static void test_layer_inputs(const std::string & name, llama_model & model, llama_model & twin, const plan_spec & spec, const rys_plan & plan) {
    context_ptr a = make_context(model, &spec);
    context_ptr b = make_context(twin, (const plan_spec *) nullptr);
    bool ok = true;
    for (uint32_t src : { 2u, 5u, 9u }) {
        const uint32_t last = rys_plan_last(plan, model.hparams.n_layer(), src);
        llama_set_embeddings_layer_inp(a.get(), src, true);
        llama_set_embeddings_layer_inp(b.get(), last, true);
        decode(*a, prompt_tokens(), 0, 16);
        decode(*b, prompt_tokens(), 0, 16);
        const size_t n = 16 * model.hparams.n_embd * sizeof(float);
        ok = ok && memcmp(llama_get_embeddings_layer_inp(a.get(), src), llama_get_embeddings_layer_inp(b.get(), last), n) == 0;
        llama_set_embeddings_layer_inp(a.get(), src, false);
        llama_set_embeddings_layer_inp(b.get(), last, false);
        llama_memory_clear(llama_get_memory(a.get()), true);
        llama_memory_clear(llama_get_memory(b.get()), true);
    }
    check(ok, name + " layer inputs: by source layer, of the last pass");
}

static void test_control_vector(const std::string & name, llama_model & model, llama_model & twin, const plan_spec & spec, const rys_plan & plan) {
    const int32_t n_embd = model.hparams.n_embd;
    std::mt19937 gen(7);
    std::normal_distribution<float> dis(0.0f, 0.1f);
    auto direction = [&](uint32_t src, size_t i) { return 0.05f * std::sin(0.7f * src + 0.1f * i); };
    auto vector = [&](const rys_plan & layers) {
        std::vector<float> data;
        for (size_t e = 1; e < layers.size(); ++e) {
            for (int32_t i = 0; i < n_embd; ++i) {
                data.push_back(direction(layers[e], i));
            }
        }
        return data;
    };
    rys_plan identity(model.hparams.n_layer());
    for (size_t i = 0; i < identity.size(); ++i) {
        identity[i] = i;
    }
    context_ptr a = make_context(model, &spec);
    context_ptr b = make_context(twin, (const plan_spec *) nullptr);
    const std::vector<float> da = vector(identity), db = vector(plan);
    llama_set_adapter_cvec(a.get(), da.data(), da.size(), n_embd, 1, identity.size());
    llama_set_adapter_cvec(b.get(), db.data(), db.size(), n_embd, 1, plan.size());
    const std::vector<float> la = run(*a);
    const bool alive = !same(la, run(*make_context(model, &spec)));
    check(alive && same(la, run(*b)), name + " control vector: by source layer");
}

static void test_lora(const std::string & name, llama_model & model, llama_model & twin, const plan_spec & spec, const rys_plan & plan) {
    const ggml_tensor * w = model.get_tensor("blk.5.attn_q.weight");
    if (!w) {
        return;
    }
    auto adapter = [&](llama_model & m, const std::vector<uint32_t> & places) {
        auto * lora = new llama_adapter_lora(&m); // the model frees it
        lora->alpha = 0.0f;
        ggml_init_params params = { ggml_tensor_overhead() * 4 * places.size(), nullptr, true };
        lora->ctxs.emplace_back(ggml_init(params));
        ggml_context * ctx = lora->ctxs.back().get();
        for (uint32_t e : places) {
            ggml_tensor * a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, w->ne[0], 4);
            ggml_tensor * b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, w->ne[1]);
            lora->ab_map["blk." + std::to_string(e) + ".attn_q.weight"] = llama_adapter_lora_weight(a, b);
        }
        lora->bufs.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type()));
        for (auto & [key, ab] : lora->ab_map) {
            for (ggml_tensor * t : { ab.a, ab.b }) {
                std::vector<float> data(ggml_nelements(t));
                for (size_t i = 0; i < data.size(); ++i) {
                    data[i] = 0.1f * std::sin(0.37f * i + t->ne[0]);
                }
                ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
            }
        }
        m.loras.insert(lora);
        return lora;
    };
    std::vector<uint32_t> places;
    for (uint32_t e = 0; e < plan.size(); ++e) {
        if (plan[e] == 5) {
            places.push_back(e);
        }
    }
    llama_adapter_lora * lora_a = adapter(model, { 5 });
    llama_adapter_lora * lora_b = adapter(twin, places);
    context_ptr a = make_context(model, &spec);
    context_ptr b = make_context(twin, (const plan_spec *) nullptr);
    float scale = 1.0f;
    llama_set_adapters_lora(a.get(), &lora_a, 1, &scale);
    llama_set_adapters_lora(b.get(), &lora_b, 1, &scale);
    const std::vector<float> la = run(*a);
    const bool alive = !same(la, run(*make_context(model, &spec)));
    check(alive && same(la, run(*b)), name + " LoRA: reaches every pass (" + std::to_string(places.size()) + ")");
    a.reset();
    check(model.loras.size() == 1, name + " LoRA: a context's end leaves it to the model");
}

// Another way to keep keys and values.
static void test_quantized_cache(const std::string & name, llama_model & model, llama_model & twin, const plan_spec & spec) {
    llama_context_params params = context_params(&spec), params_twin = context_params(nullptr);
    for (llama_context_params * p : { &params, &params_twin }) {
        p->type_k          = GGML_TYPE_Q8_0;
        p->type_v          = GGML_TYPE_Q4_0;
        p->flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        p->n_seq_max       = 2;
        p->kv_unified      = true;
    }
    context_ptr a = make_context(model, params), b = make_context(twin, params_twin);
    check(a && b && same(run(*a), run(*b)), name + " quantised cache, two sequences");
}

static bool compare_hparams(const llama_hparams & a, const llama_hparams & b) {
    bool ok = a.n_layer_all == b.n_layer_all && a.n_layer_nextn == b.n_layer_nextn &&
        a.n_layer_kv_from_start == b.n_layer_kv_from_start && a.dec_n_layer == b.dec_n_layer;
    for (uint32_t il = 0; ok && il < a.n_layer_all; ++il) {
        ok = a.n_head_arr[il] == b.n_head_arr[il] && a.n_head_kv_arr[il] == b.n_head_kv_arr[il] &&
            a.n_ff_arr[il] == b.n_ff_arr[il] && a.n_ff_exp_arr[il] == b.n_ff_exp_arr[il] &&
            a.n_expert_used_arr[il] == b.n_expert_used_arr[il] && a.rope_pattern[il] == b.rope_pattern[il] &&
            a.is_swa_impl[il] == b.is_swa_impl[il] && a.is_recr_impl[il] == b.is_recr_impl[il] &&
            a.xielu_alpha_n[il] == b.xielu_alpha_n[il] && a.xielu_eps[il] == b.xielu_eps[il] &&
            a.dsv4_compress_ratios[il] == b.dsv4_compress_ratios[il] &&
            (il >= a.n_layer() || a.is_indexer_full_impl[il] == b.is_indexer_full_impl[il]) &&
            a.is_ple_impl[il] == b.is_ple_impl[il] && a.deepstack_mapping_arr[il] == b.deepstack_mapping_arr[il] &&
            a.swiglu_clamp_exp[il] == b.swiglu_clamp_exp[il] && a.swiglu_clamp_shexp[il] == b.swiglu_clamp_shexp[il];
    }
    return ok;
}

// A file can hold the plan for these only where nothing depends on the number of a layer.
static bool twin_is_possible(const variant & v, const llama_hparams & hparams, const rys_plan & plan) {
    const uint32_t moe_step = v.arch == LLM_ARCH_LLAMA4 || v.arch == LLM_ARCH_ERNIE4_5_MOE ? hparams.n_moe_layer_step :
        v.arch == LLM_ARCH_NOMIC_BERT_MOE ? hparams.moe_every_n_layers : 0;
    if (moe_step > 1) {
        for (uint32_t e = 0; e < plan.size(); ++e) {
            if (e % moe_step != plan[e] % moe_step) {
                return false; // the loader looks for experts by the number of the layer
            }
        }
    }
    const uint32_t n_layer = hparams.n_layer();
    if (hparams.n_layer_dense_lead > 0 && hparams.n_layer_dense_lead < n_layer) {
        const auto dense = [&](uint32_t src) { return src < hparams.n_layer_dense_lead; };
        if (!std::is_partitioned(plan.begin(), plan.end(), dense)) {
            return false; // exaone-moe, hy_v3: the graph looks at the weights, but the loader counts
        }
    }
    if (v.arch == LLM_ARCH_GEMMA3N) {
        for (uint32_t e = 0; e < plan.size(); ++e) {
            if ((e < 10) != (plan[e] < 10)) {
                return false; // activation sparsity is a matter of the first 10 layers
            }
        }
    }
    if (hparams.n_layer_kv_from_start > 0 && hparams.n_layer_kv_from_start < (int32_t) n_layer) {
        const uint32_t limit = hparams.n_layer_kv_from_start;
        const uint32_t front = std::count_if(plan.begin(), plan.end(), [&](uint32_t src) { return src < limit; });
        if (plan[front - 1] != limit - 1 || plan[front - 2] != limit - 2) {
            return false; // a file always shares the last two layers that have keys and values
        }
    }
    return true;
}

static void test_variant(const variant & v) {
    const std::string & name = v.name;
    model_ptr base = make_base(v);
    if (!base) {
        check(false, name, "upstream's generator gives no model");
        return;
    }
    llama_model & model = *base;
    const uint32_t n_layer = model.hparams.n_layer();

    // identity is upstream
    context_ptr plain = make_context(model, (const plan_spec *) nullptr);
    if (!plain) {
        check(false, name, "upstream makes no context");
        return;
    }
    const std::vector<float> none = run(*plain);
    check(finite_and_alive(none), name + " none: finite logits");
    for (const plan_spec & spec : {
            plan_spec { "empty spec",  LLAMA_REPEAT_SPEC, {} },
            plan_spec { "single pass", LLAMA_REPEAT_SPEC, {{ 3, 6, 1 }} },
            plan_spec { "whole path",  LLAMA_REPEAT_PATH, {{ 0, 5, 1 }, { 5, n_layer, 1 }} } }) {
        if (quick && spec.kind != LLAMA_REPEAT_PATH) {
            continue;
        }
        context_ptr ctx = make_context(model, &spec);
        check(ctx && same(run(*ctx), none) && &ctx->get_model() == &model, name + " identity (" + spec.name + ") == none");
    }

    const size_t n_model_bytes = model_bytes(*plain);
    const size_t n_kv_bytes    = memory_bytes(*plain);
    const double nmse_id       = !quick && has_memory(*plain) && !is_encoder_decoder(v.arch) ? slots_nmse(model, nullptr, none) : 0;
    plain.reset();

    std::map<int, std::vector<std::string>> lint_identity;
    std::vector<plan_spec> accepted;
    std::vector<std::vector<float>> alone;

    for (const plan_spec & spec : plan_specs(n_layer, v.arch)) {
        const std::string what = name + " " + spec.name;
        const std::string reason = plan_refusal(model, spec);
        if (!reason.empty()) {
            context_ptr ctx = make_context(model, &spec);
            if (ctx || reason.find(std::string("'") + model.arch_name() + "'") == std::string::npos) {
                check(false, what, "refused by the check but not by the context, or without its name: " + reason);
            } else {
                refused(what, reason);
            }
            continue;
        }
        const rys_plan plan = expand_plan(model, spec);
        context_ptr ctx = make_context(model, &spec);
        if (!ctx) {
            check(false, what, "no context");
            continue;
        }
        std::vector<uint32_t> layers(plan.size());
        check(llama_plan_layers(ctx.get(), layers.data(), layers.size()) == (int32_t) plan.size() && layers == plan &&
                llama_plan_hash(ctx.get()) == rys_plan_hash(plan) && llama_get_model(ctx.get()) == &model,
                what + " plan is read back");

        const std::vector<float> logits = run(*ctx);
        const bool memory = has_memory(*ctx);
        const bool has_twin = twin_is_possible(v, model.hparams, plan);

        if (has_twin) {
            model_ptr twin = make_twin(v, model, plan);
            const bool numbered = needs_source_numbers(v.arch) && v.arch != LLM_ARCH_GEMMA3N;
            if (numbered) { // give the twin's graph the one thing its file cannot hold
                for (uint32_t e = 0; e < plan.size(); ++e) {
                    twin->hparams.plan_impl[e] = plan[e];
                }
                twin->hparams.n_layer_plan = plan.size();
                twin->hparams.n_layer_base = n_layer;
            }
            context_ptr ctx_twin = make_context(*twin, (const plan_spec *) nullptr);
            const std::vector<float> expected = run(*ctx_twin);
            check(same(logits, expected) && finite_and_alive(logits) && !same(logits, none), what + " == physical twin" +
                    (numbered ? " (with source numbers)" : ""), same(logits, expected) ? "" : difference(logits, expected));

            check(model_bytes(*ctx) == n_model_bytes && memory_bytes(*ctx) == memory_bytes(*ctx_twin), what + " memory",
                    "weights +" + std::to_string(model_bytes(*ctx) - n_model_bytes) + " bytes, cache " +
                    std::to_string(n_kv_bytes) + " -> " + std::to_string(memory_bytes(*ctx)));
            std::unique_ptr<llama_model> view = model.create_view(plan);
            check(compare_hparams(view->hparams, twin->hparams), what + " hyper-parameters of every layer");

            if (accepted.empty() && memory && v.arch == LLM_ARCH_LLAMA) {
                test_layer_inputs(what, model, *twin, spec, plan);
                test_control_vector(what, model, *twin, spec, plan);
                test_lora(what, model, *twin, spec, plan);
                test_quantized_cache(what, model, *twin, spec);
            }
        }

        // lint; not where layers share a selection of keys: its nodes bear the name of one of them
        const bool renamed = (v.arch == LLM_ARCH_GLM_DSA || v.arch == LLM_ARCH_HY_V4) && !model.hparams.is_indexer_full(1);
        if (quick && has_twin) {
            accepted.push_back(spec);
            alone.push_back(logits);
            if (accepted.size() >= max_plans) {
                break;
            }
            continue;
        }
        if (lint_identity.empty()) {
            lint_identity = lint_run(model, nullptr);
        }
        size_t n_compared = 0;
        const std::string lint = lint_compare(lint_identity, lint_run(model, &spec), plan, model.hparams, n_compared);
        check(renamed || (lint.empty() && n_compared > 0), what + (renamed ? " graph lint (left out)" : " graph lint"), lint.empty() ? std::to_string(n_compared) + " nodes" : lint);

        // distinct slots
        if (!quick && memory && !is_encoder_decoder(v.arch)) {
            const double e = slots_nmse(model, &spec, logits);
            const double limit = nmse_id == 0 ? 0 : std::max(1e-5, 10 * nmse_id);
            check(e <= limit, what + " prefill + decode == one batch", "nmse " + std::to_string(e) + ", without a plan " + std::to_string(nmse_id));
        }

        accepted.push_back(spec);
        alone.push_back(logits);
        if (accepted.size() >= max_plans) {
            break;
        }
    }

    if (!quick && accepted.size() >= 2) {
        test_interleaved(name, model, { &accepted[0], nullptr, &accepted[1] }, { alone[0], none, alone[1] });
        test_states(name, model, accepted[0], accepted[1]);
    }
}

//
// malformed plans, refusals, limits
//

static void test_messages() {
    model_ptr base = make_base({ LLM_ARCH_LLAMA, false, "llama", nullptr });
    llama_model & model = *base;

    struct { plan_spec spec; std::string message; } cases[] = {
        { { "reversed",  LLAMA_REPEAT_SPEC, {{ 5, 3, 2 }} },           "block 5,3 is empty or reversed" },
        { { "empty",     LLAMA_REPEAT_SPEC, {{ 5, 5, 2 }} },           "block 5,5 is empty or reversed" },
        { { "past end",  LLAMA_REPEAT_SPEC, {{ 5, 13, 2 }} },          "block 5,13 ends past layer 12, the number of layers" },
        { { "no pass",   LLAMA_REPEAT_SPEC, {{ 5, 6, 0 }} },           "block 5,6 (0 passes) has no pass" },
        { { "too long",  LLAMA_REPEAT_SPEC, {{ 4, 8, 127 }} },         "plan needs 516 layers, more than the 512 that fit" },
        { { "huge",      LLAMA_REPEAT_SPEC, {{ 0, 12, UINT32_MAX }} }, "plan needs 51539607540 layers, more than the 512 that fit" },
        { { "huge path", LLAMA_REPEAT_PATH, {{ 0, 12, UINT32_MAX }} }, "plan needs 51539607540 layers, more than the 512 that fit" },
        { { "no start",  LLAMA_REPEAT_PATH, {{ 1, 12, 1 }} },          "plan starts with layer 1, it must start with layer 0" },
        { { "no path",   LLAMA_REPEAT_PATH, {} },                      "path is empty" },
        { { "far end",   LLAMA_REPEAT_SPEC, {{ 0, UINT32_MAX, 2 }} },  "block 0,4294967295 ends past layer 12, the number of layers" },
        { { "bad kind",  (llama_repeat_kind) 7, {{ 0, 1, 2 }} },       "unknown kind of plan: 7" },
        { { "none",      LLAMA_REPEAT_NONE, {{ 0, 1, 2 }} },           "plan has blocks but its kind is none" },
    };
    for (auto & c : cases) {
        const std::string reason = plan_refusal(model, c.spec);
        last_log.clear();
        context_ptr ctx = make_context(model, context_params(&c.spec));
        check(reason == c.message && !ctx && last_log.find(c.message) != std::string::npos, "message: " + c.spec.name, reason);
    }

    struct { plan_spec spec; rys_plan plan; } expansions[] = { // on 12 layers
        { { "overlap", LLAMA_REPEAT_SPEC, {{ 3, 6, 2 }, { 4, 6, 2 }} }, { 0, 1, 2, 3, 4, 5, 3, 4, 5, 4, 5, 6, 7, 8, 9, 10, 11 } },
        { { "thrice",  LLAMA_REPEAT_SPEC, {{ 10, 12, 3 }} },            { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 10, 11, 10, 11 } },
        { { "first",   LLAMA_REPEAT_SPEC, {{ 0, 1, 2 }} },              { 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } },
        { { "path",    LLAMA_REPEAT_PATH, {{ 0, 2, 1 }, { 5, 6, 3 }, { 4, 5, 1 }} }, { 0, 1, 5, 5, 5, 4 } },
    };
    for (auto & c : expansions) {
        uint32_t layers[16] = {};
        const int32_t n = llama_plan_check(&model, c.spec.kind, c.spec.runs.data(), c.spec.runs.size(), layers, 4, nullptr, 0);
        check(n == (int32_t) c.plan.size() && std::equal(layers, layers + 4, c.plan.begin()) && layers[4] == 0 &&
                expand_plan(model, c.spec) == c.plan, "expansion: " + c.spec.name);
    }
    check(rys_plan_hash({}) == 0xcbf29ce484222325 && rys_plan_hash({ 0, 1 }) == 0x8cd4c29d1e47d34, "hash: FNV-1a");

    { // the longest plan runs
        const plan_spec longest = { "longest", LLAMA_REPEAT_SPEC, {{ 4, 8, 126 }} };
        context_ptr ctx = make_context(model, &longest);
        check(ctx && llama_plan_layers(ctx.get(), nullptr, 0) == 512 && finite_and_alive(decode(*ctx, prompt_tokens(), 0, 16)),
                "longest plan: 512 layers run");
    }
    { // layers on a device are counted, and "all of them" stays true
        bool ok = true;
        for (const int32_t n_gpu : { -1, 99, 13, 12, 5, 0 }) {
            gguf_context_ptr ctx = make_fixture({ LLM_ARCH_LLAMA, false, "llama", nullptr });
            tensor_data_params data = { 1234, 0.1f };
            llama_model_params params = model_params();
            params.n_gpu_layers = n_gpu;
            model_ptr m(llama_model_init_from_user(ctx.get(), set_tensor_data, &data, params), llama_model_free);
            for (const rys_plan & plan : { rys_plan { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 10, 11 }, rys_plan { 0, 1, 11 } }) {
                std::unique_ptr<llama_model> view = m->create_view(plan);
                ok = ok && (view->n_gpu_layers() > view->hparams.n_layer_all) == (m->n_gpu_layers() > m->hparams.n_layer_all) &&
                    view->dev_layer(plan.size() - 1) == m->dev_layer(11) && view->size() == m->size();
            }
        }
        check(ok, "layers on a device: all of them stays all of them");
    }
    { // tensor parallel models
        gguf_context_ptr ctx = make_fixture({ LLM_ARCH_LLAMA, false, "llama", nullptr });
        tensor_data_params data = { 1234, 0.1f };
        llama_model_params params = model_params();
        params.split_mode = LLAMA_SPLIT_MODE_TENSOR;
        std::unique_ptr<llama_model> m(llama_model_create(LLM_ARCH_LLAMA, params));
        m->hparams = model.hparams;
        const std::string reason = plan_refusal(*m, block(5, 6));
        check(reason.find("'llama' cannot run this plan") == 0 && reason.find("split") != std::string::npos, "message: tensor split", reason);
    }
    { // no model at all
        char error[64] = "";
        check(llama_plan_check(nullptr, LLAMA_REPEAT_NONE, nullptr, 0, nullptr, 0, error, sizeof(error)) == -1 && error[0], "message: no model", error);
    }
    { // an error buffer of any size
        char error[8] = "xxxxxxx";
        const llama_repeat run = { 9, 3, 2 };
        llama_plan_check(&model, LLAMA_REPEAT_SPEC, &run, 1, nullptr, 0, error, sizeof(error));
        check(strlen(error) == 7 && strncmp(error, "block 9", 7) == 0, "message: cut to the buffer");
    }
}

// Every single block on every architecture: refused ones with a reason, accepted ones decode.
static void test_refusals(const variant & v) {
    model_ptr base = make_base(v);
    if (!base) {
        return;
    }
    const uint32_t n_layer = base->hparams.n_layer();
    std::map<std::string, std::vector<std::string>> reasons;
    size_t n_accepted = 0;
    for (uint32_t i = 0; i < n_layer; ++i) {
        for (uint32_t j = i + 1; j <= n_layer; ++j) {
            const plan_spec spec = block(i, j);
            const std::string reason = plan_refusal(*base, spec);
            if (reason.empty()) {
                n_accepted++;
            } else {
                const size_t at = reason.rfind(": ");
                reasons[reason.substr(at + 2)].push_back(spec.name);
            }
        }
    }
    std::string text = std::to_string(n_accepted) + " of " + std::to_string(n_layer * (n_layer + 1) / 2) + " blocks accepted";
    for (const auto & [reason, specs] : reasons) {
        text += "; " + std::to_string(specs.size()) + " refused (" + specs.front() + " ..): " + reason;
    }
    printf("     %s blocks: %s\n", v.name.c_str(), text.c_str());
}

//
// multi-token prediction
//

static variant mtp_variant() {
    return { LLM_ARCH_QWEN35, false, "qwen35+nextn", [](gguf_context * ctx, uint32_t) {
        gguf_set_val_u32(ctx, "qwen35.block_count", 13);
        gguf_set_val_u32(ctx, "qwen35.nextn_predict_layers", 1);
    } };
}

// Hidden states of the target and the draft head's logits for them.
static std::pair<std::vector<float>, std::vector<float>> run_mtp(llama_model & model, const plan_spec * spec, bool & plain) {
    const std::vector<llama_token> tokens = prompt_tokens();
    context_ptr target = make_context(model, context_params(spec, 64));
    llama_set_embeddings_nextn(target.get(), true, false);
    decode(*target, tokens, 0, 32);
    const int32_t n_embd = llama_model_n_embd_out(&model);
    const float * h = llama_get_embeddings_nextn(target.get());
    std::vector<float> hidden(h, h + 32 * n_embd);

    llama_context_params params = context_params(spec, 64); // the plan is asked for, and ignored
    params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    context_ptr draft = make_context(model, params);
    plain = draft && &draft->get_model() == &model && llama_plan_layers(draft.get(), nullptr, 0) == (int32_t) model.hparams.n_layer();

    llama_batch batch = llama_batch_init(32, n_embd, 1);
    std::vector<llama_token> ids(tokens.begin(), tokens.begin() + 32);
    batch.token = ids.data();
    for (int i = 0; i < 32; ++i) {
        common_batch_add(batch, ids[i], i, { 0 }, true);
    }
    memcpy(batch.embd, hidden.data(), hidden.size() * sizeof(float));
    std::vector<float> logits;
    if (draft && llama_decode(draft.get(), batch) == 0) {
        for (int i = 0; i < 32; ++i) {
            const float * row = llama_get_logits_ith(draft.get(), i);
            logits.insert(logits.end(), row, row + model.vocab.n_tokens());
        }
    }
    batch.token = nullptr;
    llama_batch_free(batch);
    return { hidden, logits };
}

static void test_mtp() {
    const variant v = mtp_variant();
    model_ptr base = make_base(v);
    check(base && base->hparams.n_layer() == 12 && base->hparams.n_layer_nextn == 1, "qwen35+nextn: 12 layers and a draft head");
    for (const plan_spec & spec : { block(4, 8), block(5, 6), block(1, 3) }) {
        const rys_plan plan = expand_plan(*base, spec);
        model_ptr twin = make_twin(v, *base, plan);
        bool plain = false, plain_twin = false;
        const auto a = run_mtp(*base, &spec, plain);
        const auto b = run_mtp(*twin, nullptr, plain_twin);
        check(plain && finite_and_alive(a.second) && same(a.first, b.first) && same(a.second, b.second),
                "qwen35+nextn " + spec.name + " draft head: plain, and equal to the twin's");
    }
}

//
// a draft model that reads the target's cache
//

#ifndef __EMSCRIPTEN__
// Logits of a gemma4 assistant for the token after what the target has read.
static std::vector<float> run_assistant(llama_model & assistant, llama_model & target, const plan_spec * spec) {
    const std::vector<llama_token> tokens = prompt_tokens();
    context_ptr ctx = make_context(target, context_params(spec, 64));
    llama_set_embeddings_nextn(ctx.get(), true, false);
    decode(*ctx, tokens, 0, 32);
    const int32_t n_embd = llama_model_n_embd_out(&target);
    const float * hidden = llama_get_embeddings_nextn(ctx.get());

    llama_context_params params = context_params(spec, 64);
    params.ctx_type  = LLAMA_CONTEXT_TYPE_MTP;
    params.ctx_other = ctx.get();
    context_ptr draft = make_context(assistant, params);
    if (!draft) {
        return {};
    }
    llama_batch batch = llama_batch_init(1, n_embd, 1);
    llama_token id = tokens[32];
    batch.token = &id;
    common_batch_add(batch, id, 32, { 0 }, true);
    memcpy(batch.embd, hidden + 31 * n_embd, n_embd * sizeof(float));
    std::vector<float> logits;
    if (llama_decode(draft.get(), batch) == 0) {
        const float * row = llama_get_logits_ith(draft.get(), 0);
        logits.assign(row, row + assistant.vocab.n_tokens());
    }
    batch.token = nullptr;
    llama_batch_free(batch);
    return logits;
}

static void test_assistant() {
    const llm_arch arch = LLM_ARCH_GEMMA4_ASSISTANT;
    const auto set = [](gguf_context * ctx, llm_kv kv, uint32_t value) { gguf_set_val_u32(ctx, LLM_KV(LLM_ARCH_GEMMA4)(kv).c_str(), value); };
    const variant target = { LLM_ARCH_GEMMA4, false, "gemma4", [=](gguf_context * ctx, uint32_t n_layer) {
        set(ctx, LLM_KV_EMBEDDING_LENGTH_PER_LAYER, 0);
        set_layers<uint32_t>(ctx, LLM_ARCH_GEMMA4, LLM_KV_ATTENTION_SLIDING_WINDOW_PATTERN, n_layer, // the last is full
                [](uint32_t il) { return il % 4 == 3 ? 0u : 1u; });
    } };
    const variant draft = { arch, false, "gemma4-assistant", [=](gguf_context * ctx, uint32_t) {
        const std::vector<std::pair<llm_kv, uint32_t>> values = {
            { LLM_KV_BLOCK_COUNT, 2 }, { LLM_KV_NEXTN_PREDICT_LAYERS, 2 }, { LLM_KV_EMBEDDING_LENGTH, 64 }, { LLM_KV_EMBEDDING_LENGTH_OUT, 128 },
            { LLM_KV_FEED_FORWARD_LENGTH, 96 }, { LLM_KV_ATTENTION_KEY_LENGTH, 64 }, { LLM_KV_ATTENTION_VALUE_LENGTH, 64 },
            { LLM_KV_ATTENTION_KEY_LENGTH_SWA, 64 }, { LLM_KV_ATTENTION_VALUE_LENGTH_SWA, 64 },
        };
        for (const auto & [kv, value] : values) {
            gguf_set_val_u32(ctx, LLM_KV(arch)(kv).c_str(), value);
        }
        set_layers<uint32_t>(ctx, arch, LLM_KV_ATTENTION_SLIDING_WINDOW_PATTERN, 2, [](uint32_t il) { return il == 0 ? 1u : 0u; });
    } };

    // upstream's generator needs a trunk, which a drafter has not: its file is written by hand
    const std::string path = "rys-oracle-draft.tmp";
    {
        ggml_context_ptr ctx(ggml_init({ 16 << 20, nullptr, false }));
        gguf_context_ptr keys = make_fixture(draft), out(gguf_init_empty());
        gguf_set_kv(out.get(), keys.get());
        std::mt19937 gen(5);
        std::normal_distribution<float> dis(0.0f, 0.1f);
        const LLM_TN tn(arch);
        auto add = [&](const std::string & name, std::vector<int64_t> ne) {
            ggml_tensor * t = ggml_new_tensor(ctx.get(), GGML_TYPE_F32, ne.size(), ne.data());
            ggml_set_name(t, name.c_str());
            for (int64_t i = 0; i < ggml_nelements(t); ++i) {
                ((float *) t->data)[i] = dis(gen);
            }
            gguf_add_tensor(out.get(), t);
        };
        add(tn(LLM_TENSOR_TOKEN_EMBD, "weight"), { 64, 128 });
        add(tn(LLM_TENSOR_OUTPUT_NORM, "weight"), { 64 });
        add(tn(LLM_TENSOR_NEXTN_PROJ_POST, "weight"), { 64, 128 });
        add(tn(LLM_TENSOR_NEXTN_PROJ_PRE, "weight", 0), { 256, 64 });
        add(tn(LLM_TENSOR_ROPE_FREQS, "weight", 1), { 32 });
        for (int i = 0; i < 2; ++i) {
            add(tn(LLM_TENSOR_ATTN_NORM, "weight", i), { 64 });
            add(tn(LLM_TENSOR_ATTN_Q, "weight", i), { 64, 128 });
            add(tn(LLM_TENSOR_ATTN_OUT, "weight", i), { 128, 64 });
            add(tn(LLM_TENSOR_ATTN_Q_NORM, "weight", i), { 64 });
            add(tn(LLM_TENSOR_ATTN_POST_NORM, "weight", i), { 64 });
            add(tn(LLM_TENSOR_LAYER_OUT_SCALE, "weight", i), { 1 });
            add(tn(LLM_TENSOR_FFN_NORM, "weight", i), { 64 });
            add(tn(LLM_TENSOR_FFN_GATE, "weight", i), { 64, 96 });
            add(tn(LLM_TENSOR_FFN_UP, "weight", i), { 64, 96 });
            add(tn(LLM_TENSOR_FFN_DOWN, "weight", i), { 96, 64 });
            add(tn(LLM_TENSOR_FFN_POST_NORM, "weight", i), { 64 });
        }
        gguf_write_to_file(out.get(), path.c_str(), false);
    }
    model_ptr base = make_base(target);
    model_ptr assistant(llama_model_load_from_file(path.c_str(), model_params()), llama_model_free);
    remove(path.c_str());
    check(base && assistant, "gemma4-assistant: models");
    const std::vector<float> none = run_assistant(*assistant, *base, nullptr);
    for (const plan_spec & spec : { block(8, 12), block(10, 12, 3), block(4, 8) }) {
        model_ptr twin = make_twin(target, *base, expand_plan(*base, spec));
        const std::vector<float> a = run_assistant(*assistant, *base, &spec);
        check(finite_and_alive(a) && !same(a, none) && same(a, run_assistant(*assistant, *twin, nullptr)),
                "gemma4-assistant: reads the last pass of a target with " + spec.name);
    }
    const plan_spec skips = { "path", LLAMA_REPEAT_PATH, {{ 0, 10, 1 }, { 11, 12, 1 }} };
    last_log.clear();
    check(run_assistant(*assistant, *base, &skips).empty() && last_log.find("plan skips layer 10") != std::string::npos,
            "gemma4-assistant: a target that skips what it reads is refused", last_log.substr(0, last_log.find('\n')));
}
#endif

//
// threads
//

#ifndef __EMSCRIPTEN__
#include <thread>

static void test_threads() {
    model_ptr base = make_base({ LLM_ARCH_QWEN35, false, "qwen35", nullptr });
    const std::vector<plan_spec> specs = plan_specs(12);
    std::vector<std::vector<float>> alone;
    for (const plan_spec & spec : specs) {
        alone.push_back(run(*make_context(*base, &spec)));
    }
    std::vector<std::thread> threads;
    std::vector<int> ok(specs.size(), 1);
    for (size_t i = 0; i < specs.size(); ++i) {
        threads.emplace_back([&, i] {
            for (int k = 0; k < 8; ++k) {
                ok[i] = ok[i] && same(run(*make_context(*base, &specs[i])), alone[i]);
            }
        });
    }
    for (auto & t : threads) {
        t.join();
    }
    check(std::all_of(ok.begin(), ok.end(), [](int x) { return x; }), "threads: " + std::to_string(specs.size()) +
            " contexts made, run and freed 8 times, each on its own thread");
}
#endif

//
// fixtures
//

static bool write_model(const variant & v, const llama_model & base, const std::string & path) {
    // the fixture's own keys: upstream's saver does not write all of some architectures
    gguf_context_ptr keys = make_fixture(v), out(gguf_init_empty());
    gguf_set_kv(out.get(), keys.get());
    for (const auto & [tensor_name, tensor] : base.tensors_by_name) {
        if (gguf_find_tensor(out.get(), tensor_name.c_str()) < 0) { // tied weights stand there twice
            gguf_add_tensor(out.get(), tensor);
        }
    }
    return gguf_write_to_file(out.get(), path.c_str(), false);
}

static int write_fixtures(const std::string & dir, const std::vector<variant> & variants, const std::string & filter) {
    const std::set<std::string> chosen = {
        "llama", "qwen3", "gemma3", "qwen35+nextn", "lfm2", "mamba", "jamba", "falcon-h1", "gemma4", "gemma4+shared",
        "granitehybrid", "deepseek2-moe", "kimi-k3-moe", "t5",
    };
    int n = 0;
    for (const variant & v : variants) {
        const bool wanted = filter[0] == '=' ? v.name == filter.substr(1)
                                             : chosen.count(v.name) && v.name.find(filter) != std::string::npos;
        if (!wanted) {
            continue;
        }
        model_ptr base = make_base(v);
        if (!base) {
            fprintf(stderr, "cannot make %s\n", v.name.c_str());
            return 1;
        }
        const std::string path = dir + "/" + v.name + ".gguf";
        if (!write_model(v, *base, path)) {
            fprintf(stderr, "cannot write %s\n", path.c_str());
            return 1;
        }
        printf("%s\n", path.c_str());
        n++;
    }
    return n > 0 ? 0 : 1;
}

// A model's file in another type by llama.cpp's own quantiser. From a quantised file it loses quality twice.
static int quantize(const std::string & type, const char * from, const char * to) {
    static const std::map<std::string, llama_ftype> types = {
        { "F16", LLAMA_FTYPE_MOSTLY_F16 }, { "Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0 }, { "Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0 },
    };
    const auto it = types.find(type);
    if (it == types.end()) {
        fprintf(stderr, "cannot quantise to \"%s\": expected F16, Q8_0 or Q4_0\n", type.c_str());
        return 2;
    }
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype            = it->second;
    params.allow_requantize = true;
    params.pure             = true; // the output head too
    params.nthread          = 2; // what the pool of threads holds
    if (llama_model_quantize(from, to, &params) != 0) {
        fprintf(stderr, "cannot quantise %s: %s\n", from, last_log.c_str());
        return 1;
    }
    printf("%s\n", to);
    return 0;
}

//
// repacked weights
//

static model_ptr load_quantized(const char * path, bool repack) {
    llama_model_params params = model_params();
    params.load_mode       = LLAMA_LOAD_MODE_NONE;
    params.use_extra_bufts = repack;
    return model_ptr(llama_model_load_from_file(path, params), llama_model_free);
}

// What an architecture does with its weights besides multiplying shows as an abort, or as other logits.
static void test_repacked(const variant & v) {
    const char * plain = "/tmp/plain.gguf", * file = "/tmp/quantized.gguf";
    {
        model_ptr base = make_base(v);
        if (!base || !write_model(v, *base, plain)) {
            return refused(v.name, "no model");
        }
    }
    for (const char * type : { "Q8_0", "F16" }) {
        const std::string name = v.name + " " + type;
        if (v.name == "qwen4exp-moe" && strcmp(type, "Q8_0") == 0) {
            refused(name, "upstream adds a weight to activations, which it cannot in this type");
            continue;
        }
        if (quantize(type, plain, file) != 0) {
            refused(name, last_log.substr(0, last_log.find('\n')));
            last_log.clear();
            continue;
        }
        std::vector<float> stock, repacked;
        size_t n_repacked = 0;
        {
            model_ptr model = load_quantized(file, false);
            if (!model) {
                refused(name, "cannot be loaded: " + last_log.substr(0, last_log.find('\n')));
                last_log.clear();
                continue;
            }
            stock = run(*make_context(*model, nullptr));
        }
        {
            model_ptr model = load_quantized(file, true);
            for (const auto & [buft, n] : model->memory_breakdown()) {
                n_repacked += ggml_backend_buft_is_host(buft) ? 0 : n;
            }
            repacked = run(*make_context(*model, nullptr));
        }
        check(finite_and_alive(repacked) && nmse(stock, repacked) < 2e-2, name + " repacked", std::to_string(n_repacked) + " bytes; error " + std::to_string(nmse(stock, repacked)));
    }
}

static std::vector<variant> make_variants() {
    std::vector<variant> variants;
    for (const llm_arch arch : llm_arch_all()) {
        if (arch == LLM_ARCH_UNKNOWN || arch == LLM_ARCH_EAGLE3 || arch == LLM_ARCH_DFLASH || arch == LLM_ARCH_GEMMA4 ||
                !arch_supported(arch)) {
            continue;
        }
        for (bool moe : { false, true }) {
            if (moe ? moe_implemented(arch) : !moe_mandatory(arch)) {
                variants.push_back({ arch, moe, std::string(llm_arch_name(arch)) + (moe ? "-moe" : ""), nullptr });
            }
        }
    }
    const auto set_u32 = [](llm_arch arch, llm_kv kv, uint32_t value) {
        return [=](gguf_context * ctx, uint32_t) { gguf_set_val_u32(ctx, LLM_KV(arch)(kv).c_str(), value); };
    };
    variants.push_back({ LLM_ARCH_GEMMA4, false, "gemma4", set_u32(LLM_ARCH_GEMMA4, LLM_KV_EMBEDDING_LENGTH_PER_LAYER, 0) });
    variants.push_back({ LLM_ARCH_GEMMA4, false, "gemma4+ple", nullptr });
    variants.push_back({ LLM_ARCH_GEMMA4, false, "gemma4+shared", set_u32(LLM_ARCH_GEMMA4, LLM_KV_ATTENTION_SHARED_KV_LAYERS, 7) });
    variants.push_back(mtp_variant());

    // conditions that upstream's fixtures do not meet
    variants.push_back({ LLM_ARCH_DEEPSEEK2, true, "deepseek2+lead3", set_u32(LLM_ARCH_DEEPSEEK2, LLM_KV_LEADING_DENSE_BLOCK_COUNT, 3) });
    variants.push_back({ LLM_ARCH_DEEPSEEK4, true, "deepseek4+hash", [=](gguf_context * ctx, uint32_t n_layer) {
        set_u32(LLM_ARCH_DEEPSEEK4, LLM_KV_HASH_LAYER_COUNT, 3)(ctx, n_layer);
        for (int il = 0; il < 16; ++il) { // for its type: a twin may have more of them
            ggml_tensor t = {};
            t.type = GGML_TYPE_I32;
            ggml_set_name(&t, LLM_TN(LLM_ARCH_DEEPSEEK4)(LLM_TENSOR_FFN_GATE_TID2EID, "weight", il).str().c_str());
            gguf_add_tensor(ctx, &t);
        }
    } });
    variants.push_back({ LLM_ARCH_GLM_DSA, true, "glm-dsa+shared", [](gguf_context * ctx, uint32_t n_layer) {
        set_layers<uint32_t>(ctx, LLM_ARCH_GLM_DSA, LLM_KV_ATTENTION_INDEXER_TYPES, n_layer, [](uint32_t il) { return il % 4 == 0 ? 1u : 0u; });
    } });
    variants.push_back({ LLM_ARCH_QWEN3VL, false, "qwen3vl+deepstack", set_u32(LLM_ARCH_QWEN3VL, LLM_KV_NUM_DEEPSTACK_LAYERS, 3) });
    variants.push_back({ LLM_ARCH_GRANITE, false, "granite+deepstack", [](gguf_context * ctx, uint32_t n_layer) {
        set_layers<int32_t>(ctx, LLM_ARCH_GRANITE, LLM_KV_DEEPSTACK_MAPPING, n_layer, [](uint32_t il) { return il == 5 ? 0 : il == 9 ? 1 : -1; });
    } });
    variants.push_back({ LLM_ARCH_NANBEIGE, false, "nanbeige+loops", set_u32(LLM_ARCH_NANBEIGE, LLM_KV_NUM_LOOPS, 2) });
    variants.push_back({ LLM_ARCH_T5, false, "t5+short", set_u32(LLM_ARCH_T5, LLM_KV_DECODER_BLOCK_COUNT, 6) });
    variants.push_back({ LLM_ARCH_RWKV6, false, "rwkv6", nullptr });
    variants.push_back({ LLM_ARCH_RWKV6, false, "rwkv6+rescale", set_u32(LLM_ARCH_RWKV6, LLM_KV_RESCALE_EVERY_N_LAYERS, 6) });
    variants.push_back({ LLM_ARCH_GRANITE_SWITCH, false, "graniteswitch", [](gguf_context * ctx, uint32_t) {
        const LLM_KV kv(LLM_ARCH_GRANITE_SWITCH);
        const int32_t activate[] = { 5, 6 }, substitute[] = { 1, 2 };
        gguf_set_val_u32(ctx, kv(LLM_KV_ADAPTER_COUNT).c_str(), 2);
        gguf_set_val_u32(ctx, kv(LLM_KV_ADAPTER_LORA_RANK).c_str(), 8);
        gguf_set_arr_data(ctx, kv(LLM_KV_ADAPTER_TOKEN_IDS_ACTIVATE).c_str(),   GGUF_TYPE_INT32, activate,   2);
        gguf_set_arr_data(ctx, kv(LLM_KV_ADAPTER_TOKEN_IDS_SUBSTITUTE).c_str(), GGUF_TYPE_INT32, substitute, 2);
    } });
    for (const llm_arch arch : { LLM_ARCH_BERT, LLM_ARCH_MODERN_BERT, LLM_ARCH_NOMIC_BERT, LLM_ARCH_NOMIC_BERT_MOE, LLM_ARCH_NEO_BERT,
            LLM_ARCH_JINA_BERT_V2, LLM_ARCH_JINA_BERT_V3, LLM_ARCH_EUROBERT, LLM_ARCH_T5ENCODER, LLM_ARCH_GEMMA_EMBEDDING,
            LLM_ARCH_LLAMA_EMBED, LLM_ARCH_DEEPSEEK2OCR }) {
        variants.push_back({ arch, arch == LLM_ARCH_NOMIC_BERT_MOE || arch == LLM_ARCH_DEEPSEEK2OCR, llm_arch_name(arch), [=](gguf_context * ctx, uint32_t) {
            gguf_set_val_u32(ctx, "tokenizer.ggml.token_type_count", 2);
            gguf_set_val_u32(ctx, LLM_KV(arch)(LLM_KV_MOE_EVERY_N_LAYERS).c_str(), 2);
        } });
    }
    for (const llm_arch arch : { LLM_ARCH_RWKV7, LLM_ARCH_ARWKV7 }) {
        variants.push_back({ arch, false, llm_arch_name(arch), [=](gguf_context * ctx, uint32_t) {
            for (llm_kv kv : { LLM_KV_ATTENTION_DECAY_LORA_RANK, LLM_KV_ATTENTION_ICLR_LORA_RANK,
                    LLM_KV_ATTENTION_VALUE_RESIDUAL_MIX_LORA_RANK, LLM_KV_ATTENTION_GATE_LORA_RANK }) {
                gguf_set_val_u32(ctx, LLM_KV(arch)(kv).c_str(), 32);
            }
            gguf_set_val_u32(ctx, LLM_KV(arch)(LLM_KV_TOKEN_SHIFT_COUNT).c_str(), arch == LLM_ARCH_RWKV7 ? 2 : 1);
        } });
    }
    return variants;
}

int main(int argc, char ** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) {
            last_log += text;
        }
        if (getenv("RYS_ORACLE_LOG")) {
            fputs(text, stderr);
        }
    }, nullptr);

    if (argc == 5 && strcmp(argv[1], "--quantize") == 0) {
        return quantize(argv[2], argv[3], argv[4]);
    }

    const std::vector<variant> variants = make_variants();
    if (argc >= 3 && strcmp(argv[1], "--write") == 0) {
        return write_fixtures(argv[2], variants, argc > 3 ? argv[3] : "");
    }

    if (argc >= 2 && strcmp(argv[1], "--list") == 0) {
        for (const variant & v : variants) {
            printf("%s\n", v.name.c_str());
        }
        printf("messages\nmtp\n");
#ifndef __EMSCRIPTEN__
        printf("assistant\nfiles\nthreads\n");
#endif
        return 0;
    }

    const bool repacked = argc >= 2 && strcmp(argv[1], "--repacked") == 0;
    if (repacked) {
        argc--;
        argv++;
    }
    if (argc >= 2 && strcmp(argv[1], "--quick") == 0) {
        quick     = true;
        max_plans = 2;
        argc--;
        argv++;
    }
    if (argc >= 3 && strcmp(argv[1], "--plans") == 0) {
        max_plans = (size_t) atoi(argv[2]);
        argc -= 2;
        argv += 2;
    }

    const std::string filter = argc > 1 ? argv[1] : "";
    const auto selected = [&](const std::string & name) {
        return filter[0] == '=' ? filter == "=" + name : name.find(filter) != std::string::npos;
    };

    for (const variant & v : variants) {
        if (!selected(v.name)) {
            continue;
        }
        try {
            if (repacked) {
                test_repacked(v);
                continue;
            }
            test_variant(v);
            test_refusals(v);
        } catch (const std::exception & err) {
            check(false, v.name, err.what());
        }
    }
    if (repacked) {
        printf("%d passed, %d failed, %d refused as documented\n", n_passed, n_failed, n_refused);
        return n_failed > 0;
    }
    if (selected("messages")) {
        test_messages();
    }
    if (selected("mtp")) {
        test_mtp();
    }
#ifndef __EMSCRIPTEN__
    if (selected("assistant")) {
        test_assistant();
    }
    if (selected("files")) {
        test_state_files();
    }
    if (selected("threads")) {
        test_threads();
    }
#endif

    printf("%d passed, %d failed, %d refused as documented\n", n_passed, n_failed, n_refused);
    return n_failed > 0 || n_passed == 0;
}
