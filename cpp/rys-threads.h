// How ggml's compute threads wait for each other, and which nodes of a graph are not worth a wait. Included by ggml-cpu.c
// after its thread pool; see its hooks.
#pragma once

#if defined(__EMSCRIPTEN__) && !defined(RYS_PLAIN_CPU)

#include <emscripten/threading.h>

// Looks at a variable before a thread sleeps on it: about as long as a sleeper takes to be woken, so that a wait costs at most
// twice what the better choice would have. Where more threads compute than there are cores, another one needs this core.
enum { RYS_SPINS = 60000, RYS_SPINS_CROWDED = 500 };

static atomic_int rys_sleepers;
static atomic_int rys_computing; // threads within a graph, of all contexts

static int rys_spins(int n_others) {
    static atomic_int cores;
    int n = atomic_load_explicit(&cores, memory_order_relaxed);
    if (n == 0) {
        n = emscripten_num_logical_cores();
        atomic_store_explicit(&cores, n, memory_order_relaxed);
    }
    return atomic_load_explicit(&rys_computing, memory_order_relaxed) + n_others > n ? RYS_SPINS_CROWDED : RYS_SPINS;
}

// Waits until *at is no longer `value`.
static void rys_wait(atomic_int * at, int value) {
    const int spins = rys_spins(0);
    for (int i = 0; atomic_load_explicit(at, memory_order_relaxed) == value; i++) {
        if (i > spins) {
            atomic_fetch_add_explicit(&rys_sleepers, 1, memory_order_seq_cst);
            __builtin_wasm_memory_atomic_wait32((int *) at, value, 500000000); // ns; see rys-thread.cpp
            atomic_fetch_sub_explicit(&rys_sleepers, 1, memory_order_seq_cst);
        }
    }
}

// After *at was changed.
static void rys_wake(atomic_int * at) {
    if (atomic_load_explicit(&rys_sleepers, memory_order_seq_cst) > 0) {
        __builtin_wasm_memory_atomic_notify((int *) at, (unsigned) -1);
    }
}

// How long a thread of its own takes for a node, in nanoseconds, roughly; -1 where nobody has measured it.
static int64_t rys_cost(const struct ggml_tensor * node) {
    switch (node->op) {
        case GGML_OP_MUL_MAT:
        case GGML_OP_MUL_MAT_ID:
            return ggml_nelements(node) * node->src[0]->ne[0] / 4;
        case GGML_OP_FLASH_ATTN_EXT: {
            const struct ggml_tensor * q = node->src[0], * k = node->src[1], * v = node->src[2];
            return ggml_nrows(q) * k->ne[1] * (k->ne[0] + v->ne[0]) / 4;
        }
        case GGML_OP_SET_ROWS: // the node is the whole cache
        case GGML_OP_CPY:
            return 2 * ggml_nelements(node->src[0]);
        case GGML_OP_RMS_NORM: // as much as GGML_OP_MUL, with which it is one step
        case GGML_OP_MUL:
        case GGML_OP_ADD:
        case GGML_OP_SUB:
        case GGML_OP_SCALE:
        case GGML_OP_NORM:
        case GGML_OP_GET_ROWS:
        case GGML_OP_CONT:
            return 2 * ggml_nelements(node);
        case GGML_OP_ROPE:
        case GGML_OP_GLU:
        case GGML_OP_UNARY:
        case GGML_OP_SOFT_MAX:
            return 4 * ggml_nelements(node);
        default:
            return -1;
    }
}

enum {
    RYS_SMALL = 20000,  // ns of a node that is done by the first thread alone: little is won, and a wait can take far longer
    RYS_LEAST = 400000, // ns of all other nodes of a graph for which other threads are woken
};

static bool rys_is_small(const struct ggml_tensor * node) {
    const int64_t ns = rys_cost(node);
    return ns >= 0 && ns < RYS_SMALL;
}

static bool rys_is_computed(const struct ggml_tensor * node) {
    return !ggml_op_is_empty(node->op) && (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

// Whether a graph is worth more than one thread.
static bool rys_is_shared_out(const struct ggml_cgraph * cgraph) {
    int64_t sum = 0;
    for (int i = 0; i < cgraph->n_nodes && sum < RYS_LEAST; i++) {
        if (rys_is_computed(cgraph->nodes[i])) {
            const int64_t ns = rys_cost(cgraph->nodes[i]);
            sum += ns < 0 ? RYS_LEAST : ns < RYS_SMALL ? 0 : ns;
        }
    }
    return sum >= RYS_LEAST;
}

// Whether threads wait for each other after node i: between two that the first thread does alone they need not.
static bool rys_meets(const struct ggml_cgraph * cgraph, int i, int nth) {
    if (nth == 1 || !rys_is_small(cgraph->nodes[i])) {
        return true;
    }
    for (i++; i < cgraph->n_nodes; i++) {
        if (rys_is_computed(cgraph->nodes[i])) {
            return !rys_is_small(cgraph->nodes[i]);
        }
    }
    return true;
}

// A pool of one, for nodes that the first thread does alone.
static void rys_alone_init(struct ggml_threadpool * alone, struct ggml_cgraph * cgraph, struct ggml_cplan * cplan) {
    memset(alone, 0, sizeof(*alone));
    alone->cgraph    = cgraph;
    alone->cplan     = cplan;
    alone->n_threads = 1;
    atomic_store_explicit(&alone->n_graph, 1, memory_order_relaxed);
    atomic_store_explicit(&alone->abort, -1, memory_order_relaxed);
}

#endif
