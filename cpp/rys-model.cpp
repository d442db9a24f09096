// Models: loading, and what needs no context.

#include "rys-engine.h"

#include "log.h"

// common/arg.cpp, by its hook
void rys_params_parse(const std::vector<std::string> & args, common_params & params);

namespace rys {

std::runtime_error failure(const std::string & what) {
    const std::string why = take_errors();
    return std::runtime_error(why.empty() ? what : what + ": " + why);
}

common_params parse_params(const json & options) {
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

std::shared_ptr<loaded_model> load_model(int32_t req, const json & options, const int32_t * cancel) {
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
    return m;
}

void check_tokens(const loaded_model & m, const std::vector<llama_token> & tokens) {
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m.model));
    for (const llama_token token : tokens) {
        if (token < 0 || token >= n_vocab) {
            throw std::invalid_argument("token " + std::to_string(token) + " is outside 0.." + std::to_string(n_vocab - 1));
        }
    }
}

json call_model(const loaded_model & m, const json & call) {
    const llama_vocab * vocab = llama_model_get_vocab(m.model);
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
        for (const auto & token : call.at("tokens")) {
            tokens.push_back(token.get<llama_token>());
        }
        check_tokens(m, tokens);
        out["text"] = common_detokenize(vocab, tokens, call.value("special", true));
    } else {
        throw std::invalid_argument("unknown call " + what);
    }
    return out;
}

} // namespace rys
