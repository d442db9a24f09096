// JSON schema's `pattern`: a regular expression, as ECMAScript has them, as a rule for what stands between the quotes of a
// JSON string.
#pragma once

#include <string>

// Throws std::invalid_argument that says what cannot be honoured, and where. `rule` is in GBNF, ASCII alone.
std::string rys_pattern_rule(const std::string & pattern);
