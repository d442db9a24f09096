#include "rys-plan.h"

#include <stdexcept>
#include <string>

static std::string run_text(const llama_repeat & run) {
    std::string text = std::to_string(run.repeat_start) + "," + std::to_string(run.repeat_end);
    if (run.repeat_count != 2) {
        text += " (" + std::to_string(run.repeat_count) + " passes)";
    }
    return text;
}

static void check_length(uint64_t length, uint32_t n_layer_max) {
    if (length > n_layer_max) {
        throw std::invalid_argument("plan needs " + std::to_string(length) + " layers, more than the " +
                std::to_string(n_layer_max) + " that fit");
    }
}

static void append(rys_plan & plan, uint32_t start, uint32_t end) {
    for (uint32_t il = start; il < end; ++il) {
        plan.push_back(il);
    }
}

static void insert_block(rys_plan & plan, const llama_repeat & block) {
    size_t at = plan.size();
    while (plan[at - 1] != block.repeat_end - 1) {
        --at; // every layer of the model stands in a plan made of blocks
    }

    rys_plan out(plan.begin(), plan.begin() + at);
    for (uint32_t pass = 1; pass < block.repeat_count; ++pass) {
        append(out, block.repeat_start, block.repeat_end);
    }
    out.insert(out.end(), plan.begin() + at, plan.end());
    plan = std::move(out);
}

rys_plan rys_plan_expand(
        llama_repeat_kind    kind,
        const llama_repeat * repeats,
        uint32_t             n_repeats,
        uint32_t             n_layer,
        uint32_t             n_layer_max) {
    if (kind != LLAMA_REPEAT_NONE && kind != LLAMA_REPEAT_SPEC && kind != LLAMA_REPEAT_PATH) {
        throw std::invalid_argument("unknown kind of plan: " + std::to_string((int) kind));
    }
    if (kind == LLAMA_REPEAT_NONE && n_repeats > 0) {
        throw std::invalid_argument("plan has blocks but its kind is none");
    }
    if (kind == LLAMA_REPEAT_PATH && n_repeats == 0) {
        throw std::invalid_argument("path is empty");
    }
    if (n_repeats > 0 && repeats == nullptr) {
        throw std::invalid_argument("plan has a count of blocks but no blocks");
    }

    rys_plan plan;
    if (kind != LLAMA_REPEAT_PATH) {
        append(plan, 0, n_layer);
    }

    for (uint32_t i = 0; i < n_repeats; ++i) {
        const llama_repeat & run = repeats[i];
        if (run.repeat_start >= run.repeat_end) {
            throw std::invalid_argument("block " + run_text(run) + " is empty or reversed");
        }
        if (run.repeat_end > n_layer) {
            throw std::invalid_argument("block " + run_text(run) + " ends past layer " + std::to_string(n_layer) +
                    ", the number of layers");
        }
        if (run.repeat_count == 0) {
            throw std::invalid_argument("block " + run_text(run) + " has no pass");
        }

        const uint64_t n_run = run.repeat_end - run.repeat_start;
        if (kind == LLAMA_REPEAT_SPEC) {
            check_length(plan.size() + n_run * (run.repeat_count - 1), n_layer_max);
            insert_block(plan, run);
        } else {
            check_length(plan.size() + n_run * run.repeat_count, n_layer_max);
            for (uint32_t pass = 0; pass < run.repeat_count; ++pass) {
                append(plan, run.repeat_start, run.repeat_end);
            }
        }
    }

    if (!plan.empty() && plan[0] != 0) {
        throw std::invalid_argument("plan starts with layer " + std::to_string(plan[0]) + ", it must start with layer 0");
    }
    return plan;
}

bool rys_plan_is_identity(const rys_plan & plan, uint32_t n_layer) {
    if (plan.size() != n_layer) {
        return false;
    }
    for (uint32_t il = 0; il < n_layer; ++il) {
        if (plan[il] != il) {
            return false;
        }
    }
    return true;
}

uint64_t rys_plan_hash(const rys_plan & plan) {
    uint64_t hash = 0xcbf29ce484222325;
    for (uint32_t il : plan) {
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((il >> shift) & 0xff)) * 0x100000001b3;
        }
    }
    return hash;
}

uint32_t rys_plan_last(const rys_plan & plan, uint32_t n_layer, uint32_t src) {
    if (src >= n_layer) {
        return plan.size();
    }
    for (size_t e = plan.size(); e-- > 0;) {
        if (plan[e] == src) {
            return e;
        }
    }
    for (size_t e = plan.size(); e-- > 0;) {
        if (plan[e] < src) {
            return e + 1;
        }
    }
    return 0;
}
