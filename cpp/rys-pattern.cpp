#include "rys-pattern.h"

#include "rys-budget.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

constexpr uint32_t LAST_CHAR  = 0x10FFFF;
constexpr int      MAX_REPEAT = 2000; // the grammar's own limit
constexpr int      MAX_NESTED = 100;

// Code points as sorted ranges that do not touch.
struct char_set {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;

    void add(uint32_t from, uint32_t to) { ranges.emplace_back(from, to); }

    void add(const char_set & other) { ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end()); }

    void normalize() {
        std::sort(ranges.begin(), ranges.end());
        std::vector<std::pair<uint32_t, uint32_t>> out;
        for (const auto & range : ranges) {
            if (!out.empty() && range.first <= out.back().second + 1) {
                out.back().second = std::max(out.back().second, range.second);
            } else {
                out.push_back(range);
            }
        }
        ranges = std::move(out);
    }

    char_set inverse() const {
        char_set out;
        uint32_t next = 0;
        for (const auto & range : ranges) {
            if (range.first > next) {
                out.add(next, range.first - 1);
            }
            next = range.second + 1;
        }
        if (next <= LAST_CHAR) {
            out.add(next, LAST_CHAR);
        }
        return out;
    }

    bool has(uint32_t c) const {
        return std::any_of(ranges.begin(), ranges.end(), [&](const auto & r) { return r.first <= c && c <= r.second; });
    }
};

char_set make_set(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges, bool inverse = false) {
    char_set set;
    set.ranges = ranges;
    set.normalize();
    return inverse ? set.inverse() : set;
}

char_set named_set(char name) {
    switch (name) {
        case 'd': case 'D': return make_set({ { '0', '9' } }, name == 'D');
        case 'w': case 'W': return make_set({ { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' }, { '_', '_' } }, name == 'W');
        default: return make_set({ { 9, 13 }, { ' ', ' ' }, { 0xA0, 0xA0 }, { 0x1680, 0x1680 }, { 0x2000, 0x200A },
            { 0x2028, 0x2029 }, { 0x202F, 0x202F }, { 0x205F, 0x205F }, { 0x3000, 0x3000 }, { 0xFEFF, 0xFEFF } }, name == 'S');
    }
}

struct node;
using node_ptr = std::unique_ptr<node>;

struct node {
    enum kind_t { CHARS, SEQUENCE, ALTERNATIVES, REPEAT, BEGIN, END } kind;
    char_set              chars;
    std::vector<node_ptr> children;
    int                   min = 0;
    int                   max = -1; // -1: no end
    size_t                at  = 0;  // its place in the pattern

    explicit node(kind_t kind) : kind(kind) {}
};

struct parser {
    std::vector<uint32_t> text;
    size_t                pos    = 0;
    int                   nested = 0;

    [[noreturn]] void fail(const std::string & what, size_t at) const {
        throw std::invalid_argument(what + " at character " + std::to_string(at + 1));
    }

    explicit parser(const std::string & pattern) {
        for (size_t i = 0; i < pattern.size();) {
            const uint8_t  byte = pattern[i];
            const size_t   n    = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
            uint32_t       c    = n == 1 ? byte : byte & (0xFF >> (n + 1));
            for (size_t k = 1; k < n && i + k < pattern.size(); k++) {
                c = c << 6 | (pattern[i + k] & 0x3F);
            }
            text.push_back(c);
            i += n;
        }
    }

    bool more() const { return pos < text.size(); }
    uint32_t peek(size_t ahead = 0) const { return pos + ahead < text.size() ? text[pos + ahead] : 0; }
    bool take(uint32_t c) {
        if (more() && text[pos] == c) {
            pos++;
            return true;
        }
        return false;
    }
    static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }

    uint32_t hex(int n_digits, size_t at) {
        uint32_t value = 0;
        for (int i = 0; i < n_digits; i++) {
            const uint32_t c = peek();
            const int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
            if (digit < 0) {
                fail("an escape lacks hexadecimal digits", at);
            }
            value = value << 4 | digit;
            pos++;
        }
        return value;
    }

    // What follows a backslash, where that is one character.
    uint32_t escape(size_t at) {
        const uint32_t c = text[pos++];
        switch (c) {
            case 't': return '\t';
            case 'n': return '\n';
            case 'r': return '\r';
            case 'f': return '\f';
            case 'v': return '\v';
            case '0':
                if (is_digit(peek())) {
                    fail("octal escapes cannot be honoured", at);
                }
                return 0;
            case 'x': return hex(2, at);
            case 'c': {
                const uint32_t letter = peek() & ~0x20u;
                if (letter < 'A' || letter > 'Z') {
                    fail("\\c lacks a letter", at);
                }
                pos++;
                return letter - 'A' + 1;
            }
            case 'u': {
                uint32_t value = 0;
                if (take('{')) {
                    while (peek() != '}') {
                        value = value << 4 | hex(1, at);
                        if (value > LAST_CHAR) {
                            fail("an escape is past the last character", at);
                        }
                    }
                    pos++;
                    return value;
                }
                value = hex(4, at);
                if (value >= 0xD800 && value < 0xDC00 && peek() == '\\' && peek(1) == 'u') {
                    pos += 2;
                    const uint32_t low = hex(4, at);
                    if (low < 0xDC00 || low > 0xDFFF) {
                        fail("an escape is half a character", at);
                    }
                    return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
                }
                if (value >= 0xD800 && value <= 0xDFFF) {
                    fail("an escape is half a character", at);
                }
                return value;
            }
            case 'p': case 'P': fail("Unicode properties (\\p{...}) cannot be honoured", at);
            case 'k':           fail("references to groups cannot be honoured", at);
            default: break;
        }
        if (is_digit(c)) {
            fail("references to groups cannot be honoured", at);
        }
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            fail(std::string("the escape \\") + (char) c + " is not known", at);
        }
        return c;
    }

    static bool is_class(uint32_t c) { return c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S'; }

    // One member of a set in brackets; whether it is a single character.
    bool member(char_set & set, uint32_t & c) {
        const size_t at = pos;
        if (take('\\')) {
            if (!more()) {
                fail("the pattern ends in a backslash", at);
            }
            if (is_class(peek())) {
                set.add(named_set((char) text[pos++]));
                return false;
            }
            if (peek() == 'b') { // a backspace, inside of brackets
                pos++;
                c = '\b';
            } else {
                c = escape(at);
            }
            return true;
        }
        if (peek() == '[' && (peek(1) == ':' || peek(1) == '.' || peek(1) == '=')) {
            fail("POSIX classes ([[:digit:]]) cannot be honoured", at);
        }
        c = text[pos++];
        return true;
    }

    node_ptr brackets() {
        const size_t begin = pos - 1;
        auto out = std::make_unique<node>(node::CHARS);
        const bool inverse = take('^');
        while (true) {
            if (!more()) {
                fail("a set of characters has no \"]\"", begin);
            }
            if (take(']')) {
                break;
            }
            const size_t at = pos;
            uint32_t from = 0, to = 0;
            const bool single = member(out->chars, from);
            if (peek() == '-' && pos + 1 < text.size() && peek(1) != ']') {
                pos++;
                char_set ignored;
                if (!single || !member(ignored, to)) {
                    fail("a range lacks a character at one end", at);
                }
                if (to < from) {
                    fail("a range ends before it begins", at);
                }
                out->chars.add(from, to);
            } else if (single) {
                out->chars.add(from, from);
            }
        }
        out->chars.normalize();
        if (inverse) {
            out->chars = out->chars.inverse();
        }
        return out;
    }

    node_ptr group() {
        const size_t at = pos - 1;
        if (take('?')) {
            if (take(':')) {
                // a group that captures nothing
            } else if ((peek() == '<' && peek(1) != '=' && peek(1) != '!') || (peek() == 'P' && peek(1) == '<')) {
                while (more() && peek() != '>') { // its name matters to references alone
                    pos++;
                }
                if (!take('>')) {
                    fail("a group's name has no end", at);
                }
            } else if (peek() == '=' || peek() == '!') {
                fail("look-ahead cannot be honoured", at);
            } else if (peek() == '<') {
                fail("look-behind cannot be honoured", at);
            } else {
                fail("flags inside of a pattern cannot be honoured", at);
            }
        }
        if (++nested > MAX_NESTED) {
            fail("it is nested deeper than " + std::to_string(MAX_NESTED) + " groups", at);
        }
        auto out = alternatives();
        nested--;
        if (!take(')')) {
            fail("a group has no \")\"", at);
        }
        return out;
    }

    node_ptr chars(char_set set) {
        auto out = std::make_unique<node>(node::CHARS);
        out->chars = std::move(set);
        return out;
    }

    node_ptr atom() {
        const size_t   at = pos;
        const uint32_t c  = text[pos++];
        switch (c) {
            case '.': return chars(make_set({ { '\n', '\n' }, { '\r', '\r' }, { 0x2028, 0x2029 } }, true));
            case '[': return brackets();
            case '(': return group();
            case '^': return std::make_unique<node>(node::BEGIN);
            case '$': return std::make_unique<node>(node::END);
            case '*': case '+': case '?': fail("there is nothing to repeat", at);
            case '\\':
                if (!more()) {
                    fail("the pattern ends in a backslash", at);
                }
                if (is_class(peek())) {
                    return chars(named_set((char) text[pos++]));
                }
                switch (peek()) {
                    case 'b': case 'B': fail("word boundaries (\\b) cannot be honoured", at);
                    case 'A': pos++; return std::make_unique<node>(node::BEGIN);
                    case 'Z': case 'z': pos++; return std::make_unique<node>(node::END);
                    default: break;
                }
                {
                    const uint32_t escaped = escape(at);
                    return chars(make_set({ { escaped, escaped } }));
                }
            default: return chars(make_set({ { c, c } }));
        }
    }

    // "{2,3}", or nothing where the brace is a character.
    bool braces(int & min, int & max) {
        const size_t at = pos;
        const auto number = [&](int & out) {
            const size_t begin = pos;
            int64_t value = 0;
            while (is_digit(peek())) {
                value = std::min<int64_t>(value * 10 + (text[pos++] - '0'), 1000000000);
            }
            out = (int) value;
            return pos > begin;
        };
        pos++;
        if (!number(min)) {
            pos = at;
            return false;
        }
        max = min;
        if (take(',') && !number(max)) {
            max = -1;
        }
        if (!take('}')) {
            pos = at;
            return false;
        }
        if (max >= 0 && max < min) {
            fail("a repetition's maximum of " + std::to_string(max) + " is below its minimum of " + std::to_string(min), at);
        }
        if (min > MAX_REPEAT || max > MAX_REPEAT) {
            fail("more than " + std::to_string(MAX_REPEAT) + " repetitions", at);
        }
        return true;
    }

    node_ptr repeated(node_ptr out, size_t at) {
        while (more()) {
            int min = 0, max = -1;
            const uint32_t c = peek();
            const bool is_brace = c == '{';
            if (is_brace) {
                if (!braces(min, max)) {
                    break;
                }
            } else if (c == '*' || c == '+' || c == '?') {
                pos++;
                min = c == '+' ? 1 : 0;
                max = c == '?' ? 1 : -1;
            } else {
                break;
            }
            if (out->kind == node::BEGIN || out->kind == node::END || out->kind == node::REPEAT) {
                fail("there is nothing to repeat", pos - 1);
            }
            auto repeat = std::make_unique<node>(node::REPEAT);
            repeat->min = min;
            repeat->max = max;
            repeat->at  = at;
            repeat->children.push_back(std::move(out));
            out = std::move(repeat);
            take('?'); // as many or as few as can be: the strings are the same
        }
        return out;
    }

    node_ptr sequence() {
        auto out = std::make_unique<node>(node::SEQUENCE);
        while (more() && peek() != '|' && peek() != ')') {
            const size_t at = pos;
            auto one = atom();
            one->at = at;
            out->children.push_back(repeated(std::move(one), at));
        }
        return out;
    }

    node_ptr alternatives() {
        auto out = std::make_unique<node>(node::ALTERNATIVES);
        do {
            out->children.push_back(sequence());
        } while (take('|'));
        return out;
    }

    node_ptr parse() {
        auto out = alternatives();
        if (more()) {
            fail("a \")\" has no \"(\"", pos);
        }
        return out;
    }
};

struct writer {
    std::string out;

    void put(const std::string & text) {
        rys_budget::spend(text.size());
        out += text;
    }

    static std::string escaped(uint32_t c) {
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            return std::string(1, (char) c);
        }
        char text[16];
        snprintf(text, sizeof(text), c < 0x80 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X", c);
        return text;
    }

    // The letter of a short escape in JSON.
    static char short_escape(uint32_t c) {
        switch (c) {
            case '"': case '\\': return (char) c;
            case '\b': return 'b';
            case '\f': return 'f';
            case '\n': return 'n';
            case '\r': return 'r';
            case '\t': return 't';
            default:   return 0;
        }
    }

    // A set, in JSON's spelling.
    void put_chars(const char_set & set, size_t at) {
        std::vector<std::string> ways;
        std::string raw, shorts, controls[2];
        for (auto [from, to] : set.ranges) {
            from = std::max<uint32_t>(from, ' ');
            while (from <= to) {
                if (from == '"' || from == '\\') {
                    from++;
                    continue;
                }
                uint32_t end = to;
                if (from < '"') {
                    end = std::min<uint32_t>(end, '"' - 1);
                } else if (from < '\\') {
                    end = std::min<uint32_t>(end, '\\' - 1);
                }
                raw += escaped(from) + (end > from ? "-" + escaped(end) : "");
                from = end + 1;
            }
        }
        for (uint32_t c = 0; c < 0x80; c++) {
            if (!set.has(c)) {
                continue;
            }
            if (const char letter = short_escape(c)) {
                shorts += escaped(letter);
            } else if (c < ' ') {
                controls[c >> 4] += "0123456789abcdef"[c & 15];
            }
        }
        if (!raw.empty()) {
            ways.push_back("[" + raw + "]");
        }
        if (!shorts.empty()) {
            ways.push_back("\"\\x5C\" [" + shorts + "]");
        }
        for (int i = 0; i < 2; i++) {
            if (!controls[i].empty()) {
                ways.push_back("\"\\x5Cu00" + std::string(1, "01"[i]) + "\" [" + controls[i] + "]");
            }
        }
        if (ways.empty()) {
            throw std::invalid_argument("a set of characters is empty at character " + std::to_string(at + 1));
        }
        if (ways.size() == 1 && !raw.empty()) {
            put(ways[0]);
            return;
        }
        put("(");
        for (size_t i = 0; i < ways.size(); i++) {
            put((i ? " | " : "") + ways[i]);
        }
        put(")");
    }

    void put_any() {
        put_chars(make_set({ { 0, LAST_CHAR } }), 0);
        put("*");
    }

    void put_node(const node & n) {
        switch (n.kind) {
            case node::CHARS:
                put_chars(n.chars, n.at);
                break;
            case node::BEGIN:
            case node::END:
                throw std::invalid_argument("an anchor in the middle cannot be honoured at character " + std::to_string(n.at + 1));
            case node::REPEAT: {
                if (n.max == 0) {
                    put("\"\"");
                    break;
                }
                put("(");
                put_node(*n.children[0]);
                put(")");
                if (n.min == 0 && n.max == 1) {
                    put("?");
                } else if (n.max < 0 && n.min <= 1) {
                    put(n.min ? "+" : "*");
                } else {
                    put("{" + std::to_string(n.min) + "," + (n.max < 0 ? "" : std::to_string(n.max)) + "}");
                }
                break;
            }
            case node::SEQUENCE:
                put_sequence(n, 0, n.children.size());
                break;
            case node::ALTERNATIVES:
                put("(");
                for (size_t i = 0; i < n.children.size(); i++) {
                    put(i ? " | " : "");
                    put_node(*n.children[i]);
                }
                put(")");
                break;
        }
    }

    void put_sequence(const node & n, size_t from, size_t to) {
        if (from == to) {
            put("\"\"");
        }
        for (size_t i = from; i < to; i++) {
            put(i > from ? " " : "");
            put_node(*n.children[i]);
        }
    }

    // At the outside, what has no anchor may go on there.
    void put_outer(const node & n, bool open_before, bool open_after) {
        if (n.kind == node::ALTERNATIVES) {
            put("(");
            for (size_t i = 0; i < n.children.size(); i++) {
                put(i ? " | " : "");
                put_outer(*n.children[i], open_before, open_after);
            }
            put(")");
            return;
        }
        size_t from = 0, to = n.children.size();
        while (from < to && n.children[from]->kind == node::BEGIN) {
            from++;
            open_before = false;
        }
        while (to > from && n.children[to - 1]->kind == node::END) {
            to--;
            open_after = false;
        }
        if (to - from == 1 && n.children[from]->kind == node::ALTERNATIVES) {
            put_outer(*n.children[from], open_before, open_after);
            return;
        }
        if (open_before) {
            put_any();
            put(" ");
        }
        put_sequence(n, from, to);
        if (open_after) {
            put(" ");
            put_any();
        }
    }
};

} // namespace

std::string rys_pattern_rule(const std::string & pattern) {
    const auto tree = parser(pattern).parse();
    writer w;
    w.put_outer(*tree, true, true);
    return w.out;
}
