// What one grammar may cost: while it is made from a schema, while it is parsed, and for each token that it is asked about.
// Counted per thread, as each of these happens on one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace rys_budget {

constexpr uint64_t MAX_BUILD    = 64u << 20; // bytes of rules, and visits of nodes, for one request's schemas
constexpr uint64_t MAX_ELEMENTS = 1u << 20;  // elements of a parsed grammar, 8 bytes each, kept twice
constexpr uint64_t MAX_STEPS    = 1u << 28;  // steps for one token, about a second
constexpr uint64_t PER_TOKEN    = 1u << 25;  // steps that each token adds to what is left of these
constexpr uint64_t MAX_STACKED  = 1u << 24;  // elements of the stacks made for one token, 8 bytes each
constexpr int      MAX_DEPTH    = 250;       // levels of a schema or a grammar, as their readers recurse

inline thread_local uint64_t built   = 0;
inline thread_local uint64_t steps   = 0;
inline thread_local uint64_t allowed = MAX_STEPS;
inline thread_local uint64_t stacked = 0;
inline thread_local int      depth   = 0;
inline thread_local bool     strict  = false; // a pattern that cannot be honoured is refused, not left out

// Why the last grammar could not be parsed.
inline std::string & grammar_error() {
    static thread_local std::string text;
    return text;
}

// A new request.
inline void begin() {
    built  = 0;
    depth  = 0;
    strict = false;
}

inline void spend(uint64_t n) {
    built += n;
    if (built > MAX_BUILD) {
        throw std::runtime_error("JSON schema error at #: it is too large for a grammar: it comes to more than " +
            std::to_string(MAX_BUILD >> 20) + " MiB of rules");
    }
}

// A new token, or what is asked of a grammar before there is one.
inline void begin_token(uint64_t steps_left = MAX_STEPS) {
    allowed = steps_left;
    steps   = 0;
    stacked = 0;
}

// What a grammar is asked for a token, counted against what is left to it.
struct token {
    uint64_t & left;
    explicit token(uint64_t & left) : left(left) { begin_token(left); }
    ~token() { left -= steps < left ? steps : left; }
    token(const token &) = delete;
    token & operator=(const token &) = delete;
};

inline void stack(uint64_t n) {
    stacked += n;
    if (stacked > MAX_STACKED) {
        throw std::invalid_argument("the grammar is too ambiguous: it has too many ways to go on at once");
    }
}

inline void step(uint64_t n) {
    steps += n;
    if (steps > allowed) {
        throw std::invalid_argument("the grammar is too ambiguous: its tokens take too many steps");
    }
}

// A level deeper, for as long as this lives.
struct level {
    explicit level(const char * what) {
        if (++depth > MAX_DEPTH) {
            depth--; // the destructor does not run
            throw std::runtime_error(std::string(what) + " is nested deeper than " + std::to_string(MAX_DEPTH) + " levels");
        }
    }
    ~level() { depth--; }
    level(const level &) = delete;
    level & operator=(const level &) = delete;
};

struct strictly {
    const bool before = strict;
    explicit strictly(bool now) { strict = now; }
    ~strictly() { strict = before; }
    strictly(const strictly &) = delete;
    strictly & operator=(const strictly &) = delete;
};

} // namespace rys_budget
