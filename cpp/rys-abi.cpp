// The C ABI: rys_<noun>_<verb>, handles as int32, no exception crosses, nothing blocks the calling thread. Every call
// that takes `req` answers by events for that number, the last of them EVENT_DONE or EVENT_ERROR.
// Requests and answers that are upstream's JSON stay JSON.

#include "rys.h"
#include "rys-budget.h"

#include "generated/rys-build-id.h" // written by wasm/build.ts

#include "chat.h"
#include "common.h"
#include "json.h"
#include "llama.h"
#include "log.h"
#include "server-chat.h"
#include "server-common.h"
#include "server-context.h"
#include "server-stream.h"

#include "llama-ext.h"
#include "llama-memory.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-recurrent.h"
#include "llama-model.h"

#include <emscripten.h>
#include <emscripten/eventloop.h>
#include <emscripten/heap.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

using json = common_json;

// common/arg.cpp, by its hook
void rys_params_parse(const std::vector<std::string> & args, common_params & params);

namespace rys {

struct loaded_model {
    common_init_result_ptr init;
    llama_model *          model = nullptr;
    std::string            path;
};

// A context with upstream's server loop on a thread of its own.
struct serving_context {
    std::shared_ptr<loaded_model> model; // outlives the context
    common_params                 params;
    server_context                server;
    std::unique_ptr<server_routes> routes;
    std::map<std::string, server_http_context::handler_t> handlers;
    std::thread                   loop;

    std::atomic<bool>       closing{ false };
    std::mutex              mutex;
    std::condition_variable cv;
    int                     n_requests = 0;

    bool enter() {
        std::lock_guard<std::mutex> lock(mutex);
        if (closing) {
            return false;
        }
        n_requests++;
        return true;
    }

    void leave() {
        std::lock_guard<std::mutex> lock(mutex);
        n_requests--;
        cv.notify_all();
    }

    // Stops every request, then the loop. Upstream terminates the process if a request still waits for a result.
    void close() {
        {
            std::unique_lock<std::mutex> lock(mutex);
            closing = true;
            cv.wait(lock, [this] { return n_requests == 0; });
        }
        if (loop.joinable()) {
            server.terminate();
            loop.join();
        }
    }

    ~serving_context() { close(); }
};

template <typename T> struct table {
    std::mutex                           mutex;
    std::map<int32_t, std::shared_ptr<T>> items;
    int32_t                              next = 1;

    int32_t add(std::shared_ptr<T> item) {
        std::lock_guard<std::mutex> lock(mutex);
        items[next] = std::move(item);
        return next++;
    }

    std::shared_ptr<T> get(int32_t id, const char * what) {
        std::lock_guard<std::mutex> lock(mutex);
        const auto it = items.find(id);
        if (it == items.end()) {
            throw std::invalid_argument(std::string(what) + " " + std::to_string(id) + " is not open");
        }
        return it->second;
    }

    std::shared_ptr<T> take(int32_t id) {
        std::lock_guard<std::mutex> lock(mutex);
        const auto it = items.find(id);
        if (it == items.end()) {
            return nullptr;
        }
        auto item = std::move(it->second);
        items.erase(it);
        return item;
    }
};

static table<loaded_model>    & models()   { static auto * t = new table<loaded_model>;    return *t; }
static table<serving_context> & contexts() { static auto * t = new table<serving_context>; return *t; }

static bool is_set(const int32_t * flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static std::runtime_error failure(const std::string & what) {
    const std::string why = take_errors();
    return std::runtime_error(why.empty() ? what : what + ": " + why);
}

// Options that both kinds of context share. `options` = { "args": [llama-server's flags] }.
static common_params parse_params(const json & options) {
    std::vector<std::string> args;
    for (const auto & arg : options.value("args", json::array())) {
        args.push_back(arg.get<std::string>());
    }
    common_params params;
    rys_params_parse(args, params);
    params.load_mode  = LLAMA_LOAD_MODE_NONE; // a mapping would be a second copy here
    params.fit_params = false;                // the host decides sizes, and says them
    params.warmup     = false;
    return params;
}

static std::vector<llama_repeat> unpack(const uint32_t * words, int32_t n_words) {
    std::vector<llama_repeat> repeats((size_t) n_words / 3);
    memcpy(repeats.data(), words, repeats.size() * sizeof(llama_repeat));
    return repeats;
}

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

static json model_json(const loaded_model & m) {
    const llama_model * model = m.model;
    const llama_vocab * vocab = llama_model_get_vocab(model);
    char desc[256] = { 0 };
    llama_model_desc(model, desc, sizeof(desc));
    const char * tmpl = llama_model_chat_template(model, nullptr);
    size_t gpu_bytes = 0;
    size_t cpu_bytes = 0;
    for (const auto & [buft, n] : model->memory_breakdown()) {
        (ggml_backend_buft_is_host(buft) ? cpu_bytes : gpu_bytes) += n;
    }
    // Named are those that were to go to the GPU and could not.
    std::vector<std::pair<size_t, std::string>> left;
    if (ggml_backend_dev_count() > 1 && (uint32_t) model->n_gpu_layers() > model->hparams.n_layer_all) {
        for (const auto & [name, tensor] : model->tensors_by_name) {
            if (tensor->buffer && ggml_backend_buffer_is_host(tensor->buffer)) {
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
        { "has_encoder",   llama_model_has_encoder(model) },
        { "has_decoder",   llama_model_has_decoder(model) },
        { "is_recurrent",  llama_model_is_recurrent(model) },
        { "is_hybrid",     llama_model_is_hybrid(model) },
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

static json context_json(llama_context * ctx) {
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

static std::vector<uint32_t> check_plan(const llama_model * model, int32_t kind, const std::vector<llama_repeat> & repeats) {
    std::vector<uint32_t> layers(1024);
    char error[512] = { 0 };
    const int32_t n = llama_plan_check(model, (enum llama_repeat_kind) kind, repeats.data(), (uint32_t) repeats.size(),
        layers.data(), (int32_t) layers.size(), error, sizeof(error));
    if (n < 0) {
        throw std::invalid_argument(error);
    }
    layers.resize((size_t) n);
    return layers;
}

// Refuses a context whose cache cannot fit. To find that out by allocating would take memory from the host for good.
static void check_memory(const llama_model * model, const common_params & params, const std::vector<uint32_t> & layers) {
    const auto & hparams = model->hparams;
    const uint64_t n_ctx = params.n_ctx > 0 ? (uint64_t) params.n_ctx : hparams.n_ctx_train;
    uint64_t bytes = n_ctx * 48; // bookkeeping of cells
    for (const uint32_t il : layers) {
        const bool on_gpu = !params.no_kv_offload && ggml_backend_dev_type(model->dev_layer(il)) != GGML_BACKEND_DEVICE_TYPE_CPU;
        if (!on_gpu && hparams.has_kv(il) && !hparams.is_recr(il) && !hparams.is_swa(il)) {
            bytes += n_ctx * (ggml_row_size(params.cache_type_k, hparams.n_embd_k_gqa(il)) +
                              (hparams.is_mla() ? 0 : ggml_row_size(params.cache_type_v, hparams.n_embd_v_gqa(il))));
        }
    }
    const uint64_t most = emscripten_get_heap_max();
    if (bytes > most) {
        throw std::invalid_argument("a context of " + std::to_string(n_ctx) + " tokens needs " + std::to_string(bytes >> 20) +
            " MiB for its cache at least, and the engine can have " + std::to_string(most >> 20) + " MiB in all");
    }
}

static void register_routes(serving_context & c) {
    auto & r = *c.routes;
    auto & h = c.handlers;
    h["GET /health"]    = h["GET /v1/health"] = r.get_health;
    h["GET /metrics"]   = r.get_metrics;
    h["GET /props"]     = r.get_props;
    h["POST /props"]    = r.post_props;
    h["GET /models"]    = h["GET /v1/models"] = r.get_models;
    h["POST /completion"] = h["POST /completions"] = r.post_completions;
    h["POST /v1/completions"]      = r.post_completions_oai;
    h["POST /chat/completions"]    = h["POST /v1/chat/completions"] = r.post_chat_completions;
    h["POST /v1/chat/completions/control"] = r.post_control;
    h["POST /responses"]           = h["POST /v1/responses"] = r.post_responses_oai;
    h["POST /v1/messages"]         = r.post_anthropic_messages;
    h["POST /infill"]              = r.post_infill;
    h["POST /embedding"]           = h["POST /embeddings"] = r.post_embeddings;
    h["POST /v1/embeddings"]       = r.post_embeddings_oai;
    h["POST /rerank"] = h["POST /reranking"] = h["POST /v1/rerank"] = h["POST /v1/reranking"] = r.post_rerank;
    h["POST /tokenize"]            = r.post_tokenize;
    h["POST /detokenize"]          = r.post_detokenize;
    h["POST /apply-template"]      = r.post_apply_template;
    h["POST /chat/completions/input_tokens"] = h["POST /v1/chat/completions/input_tokens"] = r.post_chat_completions_tok;
    h["POST /responses/input_tokens"] = h["POST /v1/responses/input_tokens"] = r.post_responses_tok_oai;
    h["POST /v1/messages/count_tokens"] = r.post_anthropic_count_tokens;
    h["GET /lora-adapters"]        = r.get_lora_adapters;
    h["POST /lora-adapters"]       = r.post_lora_adapters;
    h["GET /slots"]                = r.get_slots;
    h["POST /slots/:id_slot"]      = r.post_slots;
}

static server_http_res_ptr error_response(const std::string & message, error_type type) {
    auto res = std::make_unique<server_http_res>();
    const json error = format_error_response(message, type);
    res->status = json_value(error, "code", 500);
    res->data   = safe_json_to_str(json{ { "error", error } });
    return res;
}

static server_http_res_ptr call(serving_context & c, const std::string & method, const server_http_req & req) {
    auto it = c.handlers.find(method + " " + (req.path.rfind("/slots/", 0) == 0 ? "/slots/:id_slot" : req.path));
    if (it == c.handlers.end()) {
        return error_response("File Not Found", ERROR_TYPE_NOT_FOUND);
    }
    rys_budget::begin();
    try {
        return it->second(req);
    } catch (const std::invalid_argument & e) {
        return error_response(e.what(), ERROR_TYPE_INVALID_REQUEST);
    } catch (const common_json_error & e) {
        return error_response(e.what(), ERROR_TYPE_INVALID_REQUEST);
    } catch (const std::exception & e) {
        return error_response(e.what(), ERROR_TYPE_SERVER);
    }
}

} // namespace rys

using namespace rys;

extern "C" {

// Stands in the host's half as well; unequal halves refuse to start.
EMSCRIPTEN_KEEPALIVE const char * rys_build_id(void) {
    return RYS_BUILD_ID;
}

// Bytes of memory that the instance has taken from the host.
EMSCRIPTEN_KEEPALIVE double rys_heap_bytes(void) {
    return (double) emscripten_get_heap_size();
}

EMSCRIPTEN_KEEPALIVE void rys_init(int32_t verbosity) {
    emscripten_runtime_keepalive_push(); // else the runtime ends after the first event
    common_log_set_verbosity_thold(verbosity);
    llama_log_set(common_log_default_callback, nullptr);
    ggml_set_abort_callback([](const char * message) {
        if (assertions_throw() && std::uncaught_exceptions() == 0) {
            throw std::runtime_error(message);
        }
        emit(0, EVENT_FATAL, 0, message);
    });
    llama_backend_init();
}

// options: {"path": "/rys/file/1", "args": [...]}; answers with a handle and the model's facts.
EMSCRIPTEN_KEEPALIVE void rys_model_load(int32_t req, const char * options_json, const int32_t * cancel) {
    run(req, [req, cancel, text = std::string(options_json)] {
        take_errors();
        const json options = json::parse(text);
        auto m = std::make_shared<loaded_model>();
        m->path = options.at("path").get<std::string>();
        auto params = parse_params(options);
        params.model.path = m->path;
        struct progress { int32_t req; const int32_t * cancel; int32_t last; } state = { req, cancel, -1 };
        params.load_progress_callback_user_data = &state;
        params.load_progress_callback = [](float value, void * user_data) {
            auto * p = static_cast<progress *>(user_data);
            const int32_t mille = (int32_t) (value * 1000);
            if (mille != p->last) {
                p->last = mille;
                emit(p->req, EVENT_PROGRESS, mille, "");
            }
            return !is_set(p->cancel);
        };
        m->init  = common_init_from_params(params, /* model_only */ true);
        m->model = m->init->model();
        if (is_set(cancel)) {
            throw std::runtime_error("cancelled");
        }
        if (!m->model) {
            throw failure("the model could not be loaded");
        }
        const auto facts = model_json(*m).dump_safe();
        emit(req, EVENT_DONE, models().add(std::move(m)), facts);
    });
}

// Ends the instance as a failed assertion would; for tests.
EMSCRIPTEN_KEEPALIVE void rys_debug_abort(int32_t req) {
    run(req, [] {
        assertions_throw() = false;
        GGML_ABORT("asked for");
    });
}

// Contexts that still use the model keep it; the last of them frees it.
EMSCRIPTEN_KEEPALIVE void rys_model_free(int32_t req, int32_t model) {
    run(req, [req, model] {
        models().take(model);
        emit(req, EVENT_DONE, 0, "");
    });
}

// {"do": "tokenize", "text", "add_special", "parse_special"} -> {"tokens": []}
// {"do": "detokenize", "tokens", "special"} -> {"text"}
EMSCRIPTEN_KEEPALIVE void rys_model_call(int32_t req, int32_t model, const char * call_json) {
    run(req, [req, model, text = std::string(call_json)] {
        const json call = json::parse(text);
        const auto m = models().get(model, "model");
        const llama_vocab * vocab = llama_model_get_vocab(m->model);
        const std::string what = call.at("do").get<std::string>();
        json out = json::object();
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
            throw std::invalid_argument("the model has no tokenizer");
        }
        if (what == "tokenize") {
            const auto tokens = common_tokenize(vocab, call.at("text").get<std::string>(),
                call.value("add_special", true), call.value("parse_special", true));
            json list = json::array();
            for (const llama_token token : tokens) {
                list.push_back(token);
            }
            out["tokens"] = list;
        } else if (what == "detokenize") {
            std::vector<llama_token> tokens;
            const int32_t n_vocab = llama_vocab_n_tokens(vocab);
            for (const auto & token : call.at("tokens")) {
                const int64_t id = token.get<int64_t>();
                if (id < 0 || id >= n_vocab) {
                    throw std::invalid_argument("token " + std::to_string(id) + " is outside 0.." + std::to_string(n_vocab - 1));
                }
                tokens.push_back((llama_token) id);
            }
            out["text"] = common_detokenize(vocab, tokens, call.value("special", true));
        } else {
            throw std::invalid_argument("unknown call " + what);
        }
        emit(req, EVENT_DONE, 0, out.dump_safe());
    });
}

// options: {"args": [...]}, the plan as packed triples; answers with a handle and the context's facts.
EMSCRIPTEN_KEEPALIVE void rys_context_create(int32_t req, int32_t model, const char * options_json, int32_t kind, const uint32_t * words, int32_t n_words) {
    run(req, [req, model, kind, text = std::string(options_json), repeats = unpack(words, n_words)] {
        take_errors();
        const json options = json::parse(text);
        auto c = std::make_shared<serving_context>();
        c->model = models().get(model, "model");
        const auto layers = check_plan(c->model->model, kind, repeats);
        c->params = parse_params(options);
        check_memory(c->model->model, c->params, layers);
        c->params.model.path      = c->model->path;
        c->params.rys_model       = c->model->model;
        c->params.rys_repeat_kind = (enum llama_repeat_kind) kind;
        c->params.rys_repeats     = repeats;
        if (c->params.slot_save_path.empty()) {
            c->params.slot_save_path = "/rys/mem/";
        }
        if (c->params.model_alias.empty()) {
            c->params.model_alias.insert(options.value("alias", "model"));
        }
        if (c->params.embedding && c->params.n_batch > c->params.n_ubatch) {
            c->params.n_batch = c->params.n_ubatch; // an embedding needs its whole text in one micro-batch
        }
        if (!c->server.load_model(c->params)) {
            throw failure("the context could not be created");
        }
        c->routes = std::make_unique<server_routes>(c->params, c->server);
        c->routes->update_meta(c->server);
        register_routes(*c);
        const auto facts = context_json(c->server.get_llama_context()).dump();
        c->loop = std::thread([server = &c->server] {
            try {
                server->start_loop();
            } catch (const std::exception & e) {
                emit(0, EVENT_FATAL, 0, e.what()); // its requests wait for answers that nobody will give
                throw;
            }
        });
        emit(req, EVENT_DONE, contexts().add(std::move(c)), facts);
    });
}

// Stops the context's requests, then frees it.
EMSCRIPTEN_KEEPALIVE void rys_context_free(int32_t req, int32_t context) {
    run(req, [req, context] {
        if (auto c = contexts().take(context)) {
            c->close();
        }
        emit(req, EVENT_DONE, 0, "");
    });
}

// One request to llama-server's handlers: HEAD, CHUNKs, DONE (aux = 1 when it was cancelled).
// `cancel` is watched until the last event.
EMSCRIPTEN_KEEPALIVE void rys_context_request(int32_t req, int32_t context, const char * method, const char * path, const char * query, const char * body, size_t n_body, const int32_t * cancel) {
    run(req, [req, context, cancel, method = std::string(method), path = std::string(path), query = std::string(query), body = std::string(body, n_body)] {
        const auto c = contexts().get(context, "context");
        if (!c->enter()) {
            throw std::runtime_error("the context is closed");
        }
        struct leave_at_end {
            serving_context & c;
            ~leave_at_end() { c.leave(); }
        } guard{ *c };

        const std::function<bool()> should_stop = [&] { return c->closing || is_set(cancel); };
        bool stopped;
        {
            server_http_req request{ {}, {}, path, query, body, {}, should_stop };
            for (const auto & part : string_split<std::string>(query, '&')) {
                const size_t eq = part.find('=');
                if (eq != std::string::npos) {
                    request.params[part.substr(0, eq)] = part.substr(eq + 1);
                }
            }
            if (path.rfind("/slots/", 0) == 0) {
                request.params["id_slot"] = path.substr(7);
            }
            auto res = call(*c, method, request);
            if (!should_stop()) {
                emit(req, EVENT_HEAD, res->status, res->content_type);
            }
            if (res->is_stream()) {
                while (true) {
                    std::string chunk;
                    const bool more = res->next(chunk);
                    if (!chunk.empty() && !should_stop()) {
                        emit(req, EVENT_CHUNK, 0, std::move(chunk));
                    }
                    if (!more) {
                        break;
                    }
                }
            } else if (!should_stop()) {
                emit(req, EVENT_CHUNK, 0, std::move(res->data));
            }
            res->on_complete();
            stopped = should_stop();
        }
        emit(req, EVENT_DONE, stopped ? 1 : 0, "");
    }, /* request */ true);
}

// Logits of every token of a prompt: CHUNKs of little-endian f32, [n_tokens, n_vocab], then DONE with the context's facts.
EMSCRIPTEN_KEEPALIVE void rys_logits_eval(int32_t req, int32_t model, const char * options_json, int32_t kind, const uint32_t * words, int32_t n_words, const int32_t * tokens, int32_t n_tokens, const int32_t * cancel) {
    run(req, [req, model, kind, cancel, text = std::string(options_json), repeats = unpack(words, n_words), tokens = std::vector<llama_token>(tokens, tokens + n_tokens)] {
        take_errors();
        const json options = json::parse(text);
        const auto m = models().get(model, "model");
        check_plan(m->model, kind, repeats);
        const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m->model));
        for (const llama_token token : tokens) {
            if (token < 0 || token >= n_vocab) {
                throw std::invalid_argument("token " + std::to_string(token) + " is outside 0.." + std::to_string(n_vocab - 1));
            }
        }
        auto params = parse_params(options);
        params.rys_repeat_kind = (enum llama_repeat_kind) kind;
        params.rys_repeats     = repeats;
        params.n_parallel      = 1;
        params.n_ctx           = (int32_t) tokens.size();
        params.n_batch         = std::min(params.n_batch, params.n_ubatch);
        params.n_outputs_max   = params.n_batch;
        params.n_outputs_max_per_seq = params.n_batch;
        auto cparams = common_context_params_to_llama(params);
        cparams.abort_callback      = [](void * flag) { return is_set(static_cast<const int32_t *>(flag)); };
        cparams.abort_callback_data = const_cast<int32_t *>(cancel);
        common_threadpools pools; // outlives the context
        llama_context_ptr ctx(llama_init_from_model(m->model, cparams));
        if (!ctx) {
            throw failure("the context could not be created");
        }
        pools.init(ctx.get(), params);
        const int32_t n_batch = (int32_t) llama_n_batch(ctx.get());
        llama_batch batch = llama_batch_init(n_batch, 0, 1);
        struct free_at_end {
            llama_batch & batch;
            ~free_at_end() { llama_batch_free(batch); }
        } guard{ batch };
        for (size_t from = 0; from < tokens.size(); from += (size_t) n_batch) {
            if (is_set(cancel)) {
                throw std::runtime_error("cancelled");
            }
            common_batch_clear(batch);
            for (size_t i = from; i < tokens.size() && i < from + (size_t) n_batch; i++) {
                common_batch_add(batch, tokens[i], (llama_pos) i, { 0 }, true);
            }
            const int32_t ret = llama_decode(ctx.get(), batch);
            if (ret == 2) {
                throw std::runtime_error("cancelled");
            }
            if (ret != 0) {
                throw failure("the prompt could not be decoded");
            }
            for (int32_t i = 0; i < batch.n_tokens; i++) {
                const float * row = llama_get_logits_ith(ctx.get(), i);
                if (!row) {
                    throw failure("the model gives no logits");
                }
                emit(req, EVENT_CHUNK, 0, std::string((const char *) row, (size_t) n_vocab * sizeof(float)));
            }
        }
        const auto facts = context_json(ctx.get()).dump();
        emit(req, EVENT_DONE, 0, facts);
    });
}

} // extern "C"
