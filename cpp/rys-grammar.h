// Checks over a parsed grammar, and where in its text a fault is.
#pragma once

#include <string>

struct llama_grammar_parser;

// Throws where a rule is used but not defined, or where it begins with itself: expanding it would never end.
void rys_grammar_check(const llama_grammar_parser & parser);

// "line 2, column 7: expecting a name, found ..." of a parser's message, most of which end with the rest of the text.
std::string rys_grammar_place(const char * text, const std::string & message);
