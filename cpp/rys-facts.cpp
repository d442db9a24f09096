// What models and contexts say of themselves.

#include "rys-engine.h"

#include "llama-ext.h"
#include "llama-memory.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-recurrent.h"
#include "llama-model.h"

#include <algorithm>

namespace rys {

static std::string meta_string(const llama_model * model, const char * key) {
    const int32_t n = llama_model_meta_val_str(model, key, nullptr, 0);
    if (n < 0) {
        return "";
    }
    std::string value((size_t) n + 1, '\0');
    llama_model_meta_val_str(model, key, &value[0], value.size());
    value.resize((size_t) n);
    return value;
}

static json token_json(llama_token token) {
    return token == LLAMA_TOKEN_NULL ? json(nullptr) : json(token);
}

// Repacked weights are in the CPU's memory as well, though not as host code would read them.
static bool is_cpu(ggml_backend_buffer_type_t buft) {
    const ggml_backend_dev_t dev = ggml_backend_buft_get_device(buft);
    return ggml_backend_buft_is_host(buft) || (dev && ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU);
}

json model_json(const loaded_model & m) {
    const llama_model * model = m.model;
    const llama_vocab * vocab = llama_model_get_vocab(model);
    char desc[256] = { 0 };
    llama_model_desc(model, desc, sizeof(desc));
    const char * tmpl = llama_model_chat_template(model, nullptr);
    size_t gpu_bytes = 0;
    size_t cpu_bytes = 0;
    for (const auto & [buft, n] : model->memory_breakdown()) {
        (is_cpu(buft) ? cpu_bytes : gpu_bytes) += n;
    }
    // Named are those that were to go to the GPU and could not.
    std::vector<std::pair<size_t, std::string>> left;
    if (ggml_backend_dev_count() > 1 && (uint32_t) model->n_gpu_layers() > model->hparams.n_layer_all) {
        for (const auto & [name, tensor] : model->tensors_by_name) {
            if (tensor->buffer && is_cpu(ggml_backend_buffer_get_type(tensor->buffer))) {
                left.emplace_back(ggml_nbytes(tensor), name);
            }
        }
        std::sort(left.rbegin(), left.rend());
        left.resize(std::min<size_t>(left.size(), 16));
    }
    json cpu_tensors = json::array();
    for (const auto & [n, name] : left) {
        cpu_tensors.push_back({ { "name", name }, { "bytes", n } });
    }
    return {
        { "arch",          meta_string(model, "general.architecture") },
        { "name",          meta_string(model, "general.name") },
        { "desc",          std::string(desc) },
        { "n_layer",       llama_model_n_layer(model) },
        { "n_layer_nextn", llama_model_n_layer_nextn(model) },
        { "n_ctx_train",   llama_model_n_ctx_train(model) },
        { "n_embd",        llama_model_n_embd(model) },
        { "n_vocab",       llama_vocab_n_tokens(vocab) },
        { "n_params",      llama_model_n_params(model) },
        { "model_bytes",   llama_model_size(model) },
        { "vocab_type",    (int) llama_vocab_type(vocab) },
        { "bos",           token_json(llama_vocab_bos(vocab)) },
        { "eos",           token_json(llama_vocab_eos(vocab)) },
        { "has_chat_template", tmpl != nullptr },
        { "layer_plan",    meta_string(model, "rys.layer_plan") },
        { "gpu_layers",    std::min((uint32_t) model->n_gpu_layers(), model->hparams.n_layer_all + 1) },
        { "gpu_bytes",     gpu_bytes },
        { "cpu_bytes",     cpu_bytes },
        { "cpu_tensors",   cpu_tensors },
    };
}

static size_t total(const std::map<ggml_backend_buffer_type_t, size_t> & sizes) {
    size_t n = 0;
    for (const auto & [buft, size] : sizes) {
        n += size;
    }
    return n;
}

// Bytes of attention cache and of recurrent state, as allocated.
static std::pair<size_t, size_t> memory_bytes(llama_memory_t memory) {
    if (!memory) {
        return { 0, 0 };
    }
    const size_t all = total(memory->memory_breakdown());
    if (dynamic_cast<llama_memory_recurrent *>(memory)) {
        return { 0, all };
    }
    size_t recurrent = 0;
    if (auto * hybrid = dynamic_cast<llama_memory_hybrid *>(memory)) {
        recurrent = total(hybrid->get_mem_recr()->memory_breakdown());
    } else if (auto * hybrid_iswa = dynamic_cast<llama_memory_hybrid_iswa *>(memory)) {
        recurrent = total(hybrid_iswa->get_mem_recr()->memory_breakdown());
    }
    return { all - recurrent, recurrent };
}

json context_json(llama_context * ctx) {
    const int32_t n_eff = llama_plan_layers(ctx, nullptr, 0);
    std::vector<uint32_t> layers((size_t) n_eff);
    llama_plan_layers(ctx, layers.data(), n_eff);
    json layers_json = json::array();
    for (const uint32_t layer : layers) {
        layers_json.push_back(layer);
    }
    char hash[17];
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long) llama_plan_hash(ctx));
    const auto [kv_bytes, recurrent_bytes] = memory_bytes(llama_get_memory(ctx));
    size_t compute_bytes = 0;
    size_t model_bytes   = 0;
    for (const auto & [buft, data] : llama_get_memory_breakdown(ctx)) {
        compute_bytes += data.compute;
        model_bytes   += data.model;
    }
    return {
        { "n_ctx",           llama_n_ctx(ctx) },
        { "n_ctx_seq",       llama_n_ctx_seq(ctx) },
        { "n_batch",         llama_n_batch(ctx) },
        { "n_ubatch",        llama_n_ubatch(ctx) },
        { "n_seq_max",       llama_n_seq_max(ctx) },
        { "n_threads",       llama_n_threads(ctx) },
        { "layers",          layers_json },
        { "plan_hash",       std::string(hash) },
        { "kv_bytes",        kv_bytes },
        { "recurrent_bytes", recurrent_bytes },
        { "compute_bytes",   compute_bytes },
        { "model_bytes",     model_bytes },
    };
}

} // namespace rys
