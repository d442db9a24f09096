// The C ABI: rys_<noun>_<verb>, handles as int32, no exception crosses, nothing blocks the calling thread. Every call
// that takes `req` answers by events for that number, the last of them EVENT_DONE or EVENT_ERROR.
// Requests and answers that are upstream's JSON stay JSON. What the functions do is in the files that rys-engine.h names.

#include "rys-engine.h"

#include "generated/rys-build-id.h" // written by wasm/build.ts

#include "log.h"

#include <emscripten.h>
#include <emscripten/eventloop.h>
#include <emscripten/heap.h>

#include <cstring>

namespace rys {

// Handles of the host.
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

static packed_plan unpack(int32_t kind, const uint32_t * words, int32_t n_words) {
    packed_plan plan = { (enum llama_repeat_kind) kind, std::vector<llama_repeat>((size_t) n_words / 3) };
    memcpy(plan.repeats.data(), words, plan.repeats.size() * sizeof(llama_repeat));
    return plan;
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
        auto m = load_model(req, json::parse(text), cancel);
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

// See call_model().
EMSCRIPTEN_KEEPALIVE void rys_model_call(int32_t req, int32_t model, const char * call_json) {
    run(req, [req, model, text = std::string(call_json)] {
        const auto m = models().get(model, "model");
        emit(req, EVENT_DONE, 0, call_model(*m, json::parse(text)).dump_safe());
    });
}

// options: {"args": [...]}, the plan as packed triples; answers with a handle and the context's facts.
EMSCRIPTEN_KEEPALIVE void rys_context_create(int32_t req, int32_t model, const char * options_json, int32_t kind, const uint32_t * words, int32_t n_words) {
    run(req, [req, model, text = std::string(options_json), plan = unpack(kind, words, n_words)] {
        take_errors();
        auto c = create_context(models().get(model, "model"), json::parse(text), plan);
        const auto facts = context_json(c->server.get_llama_context()).dump();
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
    run(req, [req, context, cancel, request = http_request{ method, path, query, std::string(body, n_body) }] {
        const auto c = contexts().get(context, "context");
        emit(req, EVENT_DONE, serve_request(req, *c, request, cancel), "");
    }, /* request */ true);
}

// Logits of every token of a prompt: CHUNKs of little-endian f32, [n_tokens, n_vocab], then DONE with the context's facts.
EMSCRIPTEN_KEEPALIVE void rys_logits_eval(int32_t req, int32_t model, const char * options_json, int32_t kind, const uint32_t * words, int32_t n_words, const int32_t * tokens, int32_t n_tokens, const int32_t * cancel) {
    run(req, [req, model, cancel, text = std::string(options_json), plan = unpack(kind, words, n_words), tokens = std::vector<llama_token>(tokens, tokens + n_tokens)] {
        take_errors();
        const auto m = models().get(model, "model");
        emit(req, EVENT_DONE, 0, eval_logits(req, *m, json::parse(text), plan, tokens, cancel).dump());
    });
}

} // extern "C"
