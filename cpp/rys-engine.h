#pragma once

// What the C ABI (rys-abi.cpp) hands its calls to. Everything here may wait and may throw: it runs in run()'s jobs.

#include "rys.h"

#include "common.h"
#include "json.h"
#include "llama.h"
#include "server-context.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rys {

using json = common_json;

// A request's flag in shared memory; the host sets it to cancel.
inline bool is_set(const int32_t * flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

// What failed, with the error lines that upstream logged meanwhile.
std::runtime_error failure(const std::string & what);

// A plan as the host packs it.
struct packed_plan {
    enum llama_repeat_kind    kind;
    std::vector<llama_repeat> repeats;
};

// rys-model.cpp

struct loaded_model {
    common_init_result_ptr init;
    llama_model *          model = nullptr;
    std::string            path;
};

// Options of models and contexts: { "args": [llama-server's flags] }.
common_params parse_params(const json & options);

// Loads options.path; tells the host how far it is by events for `req`.
std::shared_ptr<loaded_model> load_model(int32_t req, const json & options, const int32_t * cancel);

// { "do": "tokenize", "text", "add_special", "parse_special" } -> { "tokens": [] }
// { "do": "detokenize", "tokens", "special" } -> { "text" }
json call_model(const loaded_model & m, const json & call);

// Throws unless every token is one of the model's.
void check_tokens(const loaded_model & m, const std::vector<llama_token> & tokens);

// rys-facts.cpp

json model_json(const loaded_model & m);
json context_json(llama_context * ctx);

// rys-serving.cpp

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

    bool enter();
    void leave();
    // Stops every request, then the loop.
    void close();
    ~serving_context() { close(); }
};

// Expands and checks the plan; throws with the reason where the model cannot run it.
std::vector<uint32_t> check_plan(const llama_model * model, const packed_plan & plan);

// options: { "args": [...], "alias" }
std::shared_ptr<serving_context> create_context(std::shared_ptr<loaded_model> model, const json & options, const packed_plan & plan);

struct http_request {
    std::string method;
    std::string path;
    std::string query;
    std::string body;
};

// Answers by llama-server's handlers: HEAD and CHUNK events for `req`. Returns whether it was stopped.
bool serve_request(int32_t req, serving_context & c, const http_request & request, const int32_t * cancel);

// rys-logits.cpp

// CHUNK events of little-endian f32, one row of n_vocab for each token. Returns the context's facts.
json eval_logits(int32_t req, const loaded_model & m, const json & options, const packed_plan & plan,
    const std::vector<llama_token> & tokens, const int32_t * cancel);

} // namespace rys
