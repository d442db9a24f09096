#pragma once

#include "llama.h"

#include <cstdint>
#include <vector>

// A plan: source layers in the order they run.
using rys_plan = std::vector<uint32_t>;

// Expands packed triples into a plan of at most n_layer_max layers.
// Throws std::invalid_argument with a message for people; never allocates for a plan that is too long.
rys_plan rys_plan_expand(
        llama_repeat_kind    kind,
        const llama_repeat * repeats,
        uint32_t             n_repeats,
        uint32_t             n_layer,
        uint32_t             n_layer_max);

bool rys_plan_is_identity(const rys_plan & plan, uint32_t n_layer);

// FNV-1a (64 bit) over the layers as little-endian uint32
uint64_t rys_plan_hash(const rys_plan & plan);

// Place of the last pass of source layer `src`; where the plan skips it, the place right after the last pass of an
// earlier layer. src == n_layer is the head: the plan's length.
uint32_t rys_plan_last(const rys_plan & plan, uint32_t n_layer, uint32_t src);
