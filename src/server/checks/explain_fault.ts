import { grammarFault } from "../../engine/grammar_fault.ts";
import { isObject, type JsonObject as Json } from "../../json.ts";

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
  const fault = grammarFault(message);
  if (fault === undefined) return undefined;
  const param = fault.in !== "schema" && typeof body.grammar === "string" && body.grammar !== ""
    ? "grammar"
    : field;
  if (param === undefined) return undefined;
  if (param === "grammar") {
    return { message: `"grammar" could not be parsed: ${fault.what}`, param };
  }
  const what = fault.in === "schema"
    ? "has a JSON schema that cannot be used"
    : "could not be made into a grammar";
  return { message: `"${param}" ${what}: ${fault.what}`, param };
}
