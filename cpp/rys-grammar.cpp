#include "rys-grammar.h"

#include "llama-grammar.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace {

// A rule's name as its author knows it: parts of a rule have names of their own, "x_12".
std::string written_name(const llama_grammar_parser & parser, uint32_t id) {
    for (const auto & [name, other] : parser.symbol_ids) {
        if (other == id) {
            return name.substr(0, name.find('_'));
        }
    }
    return "?";
}

[[noreturn]] void fail(const llama_grammar_parser & parser, const std::string & name, const std::string & what) {
    std::string place;
    const auto id = parser.symbol_ids.find(name);
    if (id != parser.symbol_ids.end()) {
        const auto used = parser.rys_used.find(id->second);
        if (used != parser.rys_used.end()) {
            place = std::string(" at ") + used->second;
        }
    }
    throw std::runtime_error("rule \"" + name + "\" " + what + place);
}

bool is_end(const llama_grammar_element & element) {
    return element.type == LLAMA_GRETYPE_END || element.type == LLAMA_GRETYPE_ALT;
}

// Which rules may match nothing.
std::vector<bool> find_nullable(const llama_grammar_rules & rules) {
    struct alternative {
        uint32_t rule;
        uint32_t n_left; // elements that match something
    };
    std::vector<alternative> alternatives;
    std::vector<std::vector<uint32_t>> users(rules.size()); // alternatives of rule references alone
    std::vector<bool> nullable(rules.size());
    std::vector<uint32_t> todo;
    const auto mark = [&](uint32_t rule) {
        if (!nullable[rule]) {
            nullable[rule] = true;
            todo.push_back(rule);
        }
    };
    for (uint32_t i = 0; i < rules.size(); i++) {
        size_t begin = 0;
        for (size_t k = 0; k < rules[i].size(); k++) {
            if (!is_end(rules[i][k])) {
                continue;
            }
            const auto first = rules[i].begin() + begin;
            const auto last  = rules[i].begin() + k;
            if (first == last) {
                mark(i);
            } else if (std::all_of(first, last, [](const auto & e) { return e.type == LLAMA_GRETYPE_RULE_REF; })) {
                for (auto e = first; e != last; ++e) {
                    users[e->value].push_back((uint32_t) alternatives.size());
                }
                alternatives.push_back({ i, (uint32_t) (last - first) });
            }
            begin = k + 1;
        }
    }
    while (!todo.empty()) {
        const uint32_t rule = todo.back();
        todo.pop_back();
        for (const uint32_t user : users[rule]) {
            if (--alternatives[user].n_left == 0) {
                mark(alternatives[user].rule);
            }
        }
    }
    return nullable;
}

struct edge {
    uint32_t to;
    bool     first; // nothing stands before it
    bool     grows; // something stands after it, which stays on the stack
};

// The strongly connected component of each rule, after Tarjan, without recursion.
std::vector<uint32_t> find_components(const std::vector<std::vector<edge>> & edges, bool first_only) {
    const uint32_t none = UINT32_MAX;
    const size_t   n    = edges.size();
    std::vector<uint32_t> index(n, none), low(n), component(n, none), open;
    std::vector<bool>     is_open(n);
    std::vector<std::pair<uint32_t, size_t>> path;
    uint32_t next = 0, n_components = 0;
    for (uint32_t start = 0; start < n; start++) {
        if (index[start] != none) {
            continue;
        }
        path.push_back({ start, 0 });
        while (!path.empty()) {
            auto & [i, at] = path.back();
            if (at == 0) {
                index[i] = low[i] = next++;
                open.push_back(i);
                is_open[i] = true;
            }
            if (at < edges[i].size()) {
                const edge & e = edges[i][at++];
                if (first_only && !e.first) {
                    continue;
                }
                if (index[e.to] == none) {
                    path.push_back({ e.to, 0 });
                } else if (is_open[e.to]) {
                    low[i] = std::min(low[i], index[e.to]);
                }
                continue;
            }
            const uint32_t done = i;
            path.pop_back();
            if (!path.empty()) {
                low[path.back().first] = std::min(low[path.back().first], low[done]);
            }
            if (low[done] == index[done]) {
                uint32_t member;
                do {
                    member = open.back();
                    open.pop_back();
                    is_open[member]   = false;
                    component[member] = n_components;
                } while (member != done);
                n_components++;
            }
        }
    }
    return component;
}

} // namespace

void rys_grammar_check(const llama_grammar_parser & parser) {
    const auto & rules = parser.rules;
    for (const auto & [name, id] : parser.symbol_ids) {
        if (id >= rules.size() || rules[id].empty()) {
            fail(parser, name, "is used but not defined");
        }
    }
    const auto nullable = find_nullable(rules);
    std::vector<std::vector<edge>> edges(rules.size());
    for (uint32_t i = 0; i < rules.size(); i++) {
        bool first  = true; // nothing stands before
        bool begins = true; // what stands before may match nothing
        for (size_t k = 0; k < rules[i].size(); k++) {
            const auto & element = rules[i][k];
            if (is_end(element)) {
                first = begins = true;
                continue;
            }
            const bool is_ref = element.type == LLAMA_GRETYPE_RULE_REF;
            if (is_ref && begins) {
                edges[i].push_back({ element.value, first, !is_end(rules[i][k + 1]) });
            }
            first  = false;
            begins = begins && is_ref && nullable[element.value];
        }
    }
    for (const bool first_only : { true, false }) {
        const auto component = find_components(edges, first_only);
        for (uint32_t i = 0; i < rules.size(); i++) {
            for (const edge & e : edges[i]) {
                // what grows piles up on the stack without end; what does not leads back to where it began
                if (component[i] == component[e.to] && (first_only ? e.first : e.grows)) {
                    fail(parser, written_name(parser, i), "begins with itself (left recursion)");
                }
            }
        }
    }
}

std::string rys_grammar_place(const char * text, const std::string & message) {
    const size_t length = strlen(text);
    std::string reason = message;
    const char * place = nullptr;
    for (size_t at = message.find(" at "); at != std::string::npos; at = message.find(" at ", at + 1)) {
        const size_t n_rest = message.size() - at - 4;
        if (n_rest <= length && message.compare(at + 4, n_rest, text + length - n_rest) == 0) {
            reason = message.substr(0, at);
            place  = text + length - n_rest;
            break;
        }
    }
    if (message == "unexpected end of input") {
        reason = "a string or a set of characters has no end";
        place  = text + length;
    }
    if (!place) {
        return reason;
    }
    size_t line = 1, column = 1;
    for (const char * c = text; c < place; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char) *c & 0xC0) != 0x80) {
            column++;
        }
    }
    std::string found;
    for (const char * c = place; *c && *c != '\n' && *c != '\r' && found.size() < 24; c++) {
        found += *c;
    }
    while (!found.empty() && ((unsigned char) found.back() & 0x80)) { // no part of a character
        found.pop_back();
    }
    const std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + reason;
    return *place == 0 ? where + ", found the end of the grammar"
        : found.empty() ? where : where + ", found: " + found;
}
