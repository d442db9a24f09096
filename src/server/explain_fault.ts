type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Where a request may have a schema, the first that upstream looks at first. */
const SCHEMAS: readonly [name: string, has: (body: Json) => boolean][] = [
  ["json_schema", ({ json_schema: schema }) => schema != null],
  ["response_format", ({ response_format: format }) => format != null],
  ["text.format", ({ text }) => isObject(text) && text.format != null],
  ["output_config", ({ output_config: config }) => config != null],
  ["tools", ({ tools }) => Array.isArray(tools) && tools.length > 0],
];

/**
 * Says of a grammar or a schema that upstream could not use which field of the request it is.
 *
 * @param message Upstream's message.
 * @param body The request's body.
 * @returns The message and the field; nothing where the message is another one.
 */
export function explainFault(
  message: string,
  body: unknown,
): { message: string; param: string } | undefined {
  if (!isObject(body)) return undefined;
  const field = SCHEMAS.find(([, has]) => has(body))?.[0];
  const schema = /JSON schema error at (\S*): ([^]*)$/.exec(message);
  if (schema && field !== undefined) {
    const [, at, what] = schema;
    return {
      message: `"${field}" has a JSON schema that cannot be used: at ${at}: ${what!.trim()}`,
      param: field,
    };
  }
  if (!/failed to parse grammar/i.test(message)) return undefined;
  if (typeof body.grammar === "string" && body.grammar !== "") {
    return {
      message: `"grammar" could not be parsed: it must be a GBNF grammar with a rule "root"`,
      param: "grammar",
    };
  }
  return field === undefined ? undefined : {
    message: `"${field}" could not be made into a grammar`,
    param: field,
  };
}
