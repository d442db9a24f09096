// What a plain context computes and saves, as one line of hashes for each model. Built twice, from the hooked sources and from
// upstream's as they are; the lines must be equal. Only llama.h as upstream has it is used.
//
//   rys-stock FILE...

#include "llama.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static const int n_prompt = 48;
static const int n_single = 8;

static uint64_t fnv1a(uint64_t hash, const void * data, size_t size) {
    const uint8_t * bytes = static_cast<const uint8_t *>(data);
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

static const uint64_t seed = 0xcbf29ce484222325u;

static void quiet(enum ggml_log_level, const char *, void *) {}

struct batch {
    llama_batch b;

    batch(const std::vector<llama_token> & tokens, int from, int to) : b(llama_batch_init(to - from, 0, 1)) {
        b.n_tokens = to - from;
        for (int i = from; i < to; i++) {
            b.token[i - from]     = tokens[(size_t) i];
            b.pos[i - from]       = i;
            b.n_seq_id[i - from]  = 1;
            b.seq_id[i - from][0] = 0;
            b.logits[i - from]    = 1;
        }
    }

    ~batch() { llama_batch_free(b); }
};

static bool one(const char * path) {
    llama_model_params mparams = llama_model_default_params();
    mparams.load_mode       = LLAMA_LOAD_MODE_NONE;
    mparams.use_extra_bufts = false; // repacked weights sum in another order
    mparams.load_mtp        = true;
    llama_model * model = llama_model_load_from_file(path, mparams);
    if (!model) {
        printf("%s: does not load\n", path);
        return false;
    }
    const bool encodes = llama_model_has_encoder(model) && llama_model_has_decoder(model);
    const int  n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));

    llama_context_params cparams = llama_context_default_params();
    cparams.n_ctx           = 128;
    cparams.n_batch         = 64;
    cparams.n_ubatch        = encodes ? 64 : 16;
    cparams.n_threads       = 1; // upstream's threads spin, which takes for ever on a busy machine
    cparams.n_threads_batch = 1;
    llama_context * ctx = llama_init_from_model(model, cparams);
    if (!ctx) {
        printf("%s: no context\n", path);
        llama_model_free(model);
        return false;
    }

    std::vector<llama_token> tokens;
    uint32_t random = 99;
    for (int i = 0; i < n_prompt + n_single; i++) {
        random = random * 1664525u + 1013904223u;
        tokens.push_back((llama_token) ((random >> 8) % (uint32_t) n_vocab));
    }
    uint64_t logits = seed;
    bool ok = true;
    const auto run = [&](int from, int to) {
        batch part(tokens, from, to);
        ok = ok && (!encodes || from > 0 || llama_encode(ctx, part.b) == 0) && llama_decode(ctx, part.b) == 0;
        for (int i = 0; ok && i < to - from; i++) {
            logits = fnv1a(logits, llama_get_logits_ith(ctx, i), sizeof(float) * (size_t) n_vocab);
        }
    };
    run(0, n_prompt);
    for (int i = n_prompt; i < n_prompt + n_single; i++) {
        run(i, i + 1);
    }
    if (!ok) {
        printf("%s: decode failed\n", path);
    } else {
        std::vector<uint8_t> whole(llama_state_get_size(ctx));
        whole.resize(llama_state_get_data(ctx, whole.data(), whole.size()));
        std::vector<uint8_t> seq(llama_state_seq_get_size(ctx, 0));
        seq.resize(llama_state_seq_get_data(ctx, seq.data(), seq.size(), 0));
        printf("%s: logits %016" PRIx64 ", state %zu %016" PRIx64 ", sequence %zu %016" PRIx64 "\n", path, logits,
            whole.size(), fnv1a(seed, whole.data(), whole.size()), seq.size(), fnv1a(seed, seq.data(), seq.size()));
    }
    llama_free(ctx);
    llama_model_free(model);
    return ok;
}

int main(int argc, char ** argv) {
    llama_log_set(quiet, nullptr);
    llama_backend_init();
    bool ok = argc > 1;
    for (int i = 1; i < argc; i++) {
        ok = one(argv[i]) && ok;
    }
    return ok ? 0 : 1;
}
