#pragma once

#include "rys-plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct llama_model;

// What upstream's files ask of a plan, so that a hook there is one line.

// Plan of a context: the identity unless its parameters say otherwise. Throws when the plan is malformed.
rys_plan rys_context_plan(const llama_model & model, const llama_context_params & params);

// View for a plan, null for the identity. Throws when the architecture cannot run it.
std::unique_ptr<llama_model> rys_context_view(const llama_model & model, const rys_plan & plan);

// Why the model cannot run the plan; empty when it can. Names architecture, layer and reason.
std::string rys_view_refusal(const llama_model & model, const rys_plan & plan);

// Times a nanbeige file runs its layers (its class is known to upstream's files only)
int rys_nanbeige_loops(const llama_model & model);

// Place of the last pass of a source layer in a context's plan. Throws when the plan skips it.
int32_t rys_context_last(const llama_context * ctx, uint32_t src);

// A budget of graph nodes for n_layer layers, scaled to a plan of n_layer_eff
uint32_t rys_scale_nodes(uint32_t n_nodes, uint32_t n_layer, uint32_t n_layer_eff);

// Copies at most n_max layers, returns how many the plan has
int32_t rys_plan_copy(const rys_plan & plan, uint32_t * layers, int32_t n_max);

// "arch" written into a saved state as "arch+rys:<hash>", and back
std::string rys_state_arch(const std::string & arch, const rys_plan & plan);
std::string rys_state_arch_base(const std::string & state_arch);
