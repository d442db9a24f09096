// Contexts that serve: upstream's server loop, its handlers by route, one request after another handed to them.

#include "rys-engine.h"
#include "rys-budget.h"

#include "chat.h"
#include "log.h"
#include "server-chat.h"
#include "server-common.h"
#include "server-stream.h"

#include "llama-model.h"

#include <emscripten/heap.h>

namespace rys {

bool serving_context::enter() {
    std::lock_guard<std::mutex> lock(mutex);
    if (closing) {
        return false;
    }
    n_requests++;
    return true;
}

void serving_context::leave() {
    std::lock_guard<std::mutex> lock(mutex);
    n_requests--;
    cv.notify_all();
}

void serving_context::close() {
    {
        std::unique_lock<std::mutex> lock(mutex);
        closing = true;
        // Upstream terminates the process if a request still waits for a result.
        cv.wait(lock, [this] { return n_requests == 0; });
    }
    if (loop.joinable()) {
        server.terminate();
        loop.join();
    }
}

std::vector<uint32_t> check_plan(const llama_model * model, const packed_plan & plan) {
    std::vector<uint32_t> layers(1024);
    char error[512] = { 0 };
    const int32_t n = llama_plan_check(model, plan.kind, plan.repeats.data(), (uint32_t) plan.repeats.size(),
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

std::shared_ptr<serving_context> create_context(std::shared_ptr<loaded_model> model, const json & options, const packed_plan & plan) {
    auto c = std::make_shared<serving_context>();
    c->model = std::move(model);
    const auto layers = check_plan(c->model->model, plan);
    c->params = parse_params(options);
    check_memory(c->model->model, c->params, layers);
    c->params.model.path      = c->model->path;
    c->params.rys_model       = c->model->model;
    c->params.rys_repeat_kind = plan.kind;
    c->params.rys_repeats     = plan.repeats;
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
    c->loop = std::thread([server = &c->server] {
        try {
            server->start_loop();
        } catch (const std::exception & e) {
            emit(0, EVENT_FATAL, 0, e.what()); // its requests wait for answers that nobody will give
            throw;
        }
    });
    return c;
}

bool serve_request(int32_t req, serving_context & c, const http_request & given, const int32_t * cancel) {
    if (!c.enter()) {
        throw std::runtime_error("the context is closed");
    }
    struct leave_at_end {
        serving_context & c;
        ~leave_at_end() { c.leave(); }
    } guard{ c };

    const std::function<bool()> should_stop = [&] { return c.closing || is_set(cancel); };
    bool stopped;
    {
        server_http_req request{ {}, {}, given.path, given.query, given.body, {}, should_stop };
        for (const auto & part : string_split<std::string>(given.query, '&')) {
            const size_t eq = part.find('=');
            if (eq != std::string::npos) {
                request.params[part.substr(0, eq)] = part.substr(eq + 1);
            }
        }
        if (given.path.rfind("/slots/", 0) == 0) {
            request.params["id_slot"] = given.path.substr(7);
        }
        auto res = call(c, given.method, request);
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
    return stopped;
}

} // namespace rys
