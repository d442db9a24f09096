/** What is wrong with a grammar or a schema. */
export interface GrammarFault {
  /**
   * Where it was found: in the text of a `grammar`, in a `schema`, or by the `cost` of a grammar, which may be that of a
   * schema.
   */
  in: "grammar" | "schema" | "cost";
  /** What is wrong, with its place. */
  what: string;
}

/**
 * Reads from one of llama.cpp's messages what is wrong with a grammar or a schema.
 *
 * @param message The message, or one already made from it.
 * @returns Undefined if the message is about something else.
 */
export function grammarFault(message: string): GrammarFault | undefined {
  const schema = /JSON schema (?:error|cannot be used:) at (\S*): ([^]*)$/.exec(message);
  if (schema) return { in: "schema", what: `at ${schema[1]}: ${schema[2]!.trim()}` };
  const grammar = /(?:failed to parse grammar|The grammar cannot be used): ([^]*)$/.exec(message);
  if (grammar) return { in: "grammar", what: grammar[1]!.trim() };
  const cost = /the grammar (is too ambiguous: |can neither end )([^]*)$/.exec(message);
  return cost ? { in: "cost", what: `the grammar ${cost[1]}${cost[2]!.trim()}` } : undefined;
}

/**
 * A message about a grammar or a schema, in the terms of whoever gave it.
 *
 * @param message The message.
 * @returns The message itself if it is about something else.
 */
export function sayGrammarFault(message: string): string {
  const fault = grammarFault(message);
  if (fault === undefined) return message;
  return fault.in === "schema"
    ? `The JSON schema cannot be used: ${fault.what}`
    : `The grammar cannot be used: ${fault.what}`;
}
