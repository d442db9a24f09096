// Logits of every token of a prompt, in a context of their own.

#include "rys-engine.h"

#include <algorithm>

namespace rys {

json eval_logits(int32_t req, const loaded_model & m, const json & options, const packed_plan & plan,
        const std::vector<llama_token> & tokens, const int32_t * cancel) {
    check_plan(m.model, plan);
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m.model));
    check_tokens(m, tokens);
    auto params = parse_params(options);
    params.rys_repeat_kind = plan.kind;
    params.rys_repeats     = plan.repeats;
    params.n_parallel      = 1;
    params.n_ctx           = (int32_t) tokens.size();
    params.n_batch         = std::min(params.n_batch, params.n_ubatch);
    params.n_outputs_max   = params.n_batch;
    params.n_outputs_max_per_seq = params.n_batch;
    auto cparams = common_context_params_to_llama(params);
    cparams.abort_callback      = [](void * flag) { return is_set(static_cast<const int32_t *>(flag)); };
    cparams.abort_callback_data = const_cast<int32_t *>(cancel);
    common_threadpools pools; // outlives the context
    llama_context_ptr ctx(llama_init_from_model(m.model, cparams));
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
    return context_json(ctx.get());
}

} // namespace rys
