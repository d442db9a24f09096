import { ApiError } from "../http/api_error.ts";
import { isObject, type JsonObject as Body } from "../../json.ts";

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function wrong(name: string, what: string): ApiError {
  return new ApiError(400, `"${name}" ${what}`, { fields: { param: name } });
}

/**
 * Refuses what upstream would leave out without a word, or call an error of the server's, which clients try again.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body.
 * @throws {ApiError} 400, with the field and what it may be.
 */
export function checkShape(path: string, body: Body): void {
  if (isGiven(body.logit_bias) && typeof body.logit_bias !== "object") {
    throw wrong("logit_bias", "must be an object of tokens and numbers, or a list of such pairs");
  }
  checkTools(body.tools);
  const { response_format: format } = body;
  if (isObject(format) && format.type === "json_schema") {
    const inner = isObject(format.json_schema) ? format.json_schema.schema : format.schema;
    if (!isObject(inner)) {
      throw wrong("response_format", `of type "json_schema" needs json_schema.schema, an object`);
    }
  }
  if (path.endsWith("/chat/completions") || path.startsWith("/v1/messages")) {
    checkMessages(body.messages);
  }
  if (path.startsWith("/v1/messages")) checkSystem(body.system);
  if (
    /\/completions?$/.test(path) && !path.endsWith("/chat/completions") && !isGiven(body.prompt)
  ) {
    throw wrong("prompt", "is missing");
  }
  if (path.endsWith("/responses") && Array.isArray(body.input) && body.input.length === 0) {
    throw wrong("input", "has nothing in it");
  }
}

function checkTools(tools: unknown): void {
  if (!isGiven(tools)) return;
  if (!Array.isArray(tools)) throw wrong("tools", "must be a list");
  tools.forEach((tool, i) => {
    const at = `tools[${i}]`;
    if (!isObject(tool)) throw wrong(at, "must be an object");
    if (!("name" in tool) && !("type" in tool)) throw wrong(at, "has neither a type nor a name");
    // In chats the function is an object of its own; elsewhere, and for tools of other kinds, there is a name.
    if ("function" in tool && !isObject(tool.function)) {
      throw wrong(`${at}.function`, "must be an object");
    }
    if (tool.type === "function" && toolName(tool) === undefined) throw wrong(at, "has no name");
  });
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages)) {
    throw wrong("messages", isGiven(messages) ? "must be a list" : "is missing");
  }
  messages.forEach((message, i) => {
    if (!isObject(message)) throw wrong(`messages[${i}]`, "must be an object");
    if (isGiven(message.role) && typeof message.role !== "string") {
      throw wrong(`messages[${i}].role`, "must be text");
    }
  });
}

function checkSystem(system: unknown): void {
  if (isGiven(system) && typeof system !== "string" && !Array.isArray(system)) {
    throw wrong("system", "must be text or a list of blocks");
  }
}

function toolName(tool: Body): string | undefined {
  const name = isObject(tool.function) ? tool.function.name : tool.name;
  return typeof name === "string" && name !== "" ? name : undefined;
}

/**
 * Makes of a `tool_choice` that names one tool what upstream understands: that tool alone, and a call of it required.
 *
 * @param body The request's body.
 * @returns The fields that are others for upstream.
 * @throws {ApiError} 400 if there is no such tool, or the choice is not one that there is.
 */
export function chooseTool(body: Body): Body {
  const { tool_choice: choice, tools } = body;
  if (!isGiven(choice)) return {};
  const needsTools = () => {
    if (Array.isArray(tools) && tools.length > 0) return;
    throw wrong("tool_choice", "requires a call of a tool, but there are no tools");
  };
  if (typeof choice === "string") {
    if (choice === "required") needsTools();
    if (["none", "auto", "required"].includes(choice)) return {};
    throw wrong("tool_choice", `must be "none", "auto", "required", or name a tool`);
  }
  // Anthropic's auto, any and none.
  if (isObject(choice) && choice.type === "any") needsTools();
  if (isObject(choice) && ["auto", "any", "none"].includes(String(choice.type))) return {};
  const name = isObject(choice) && ["function", "tool"].includes(String(choice.type))
    ? toolName(choice)
    : undefined;
  if (name === undefined) {
    throw wrong("tool_choice", `must be "none", "auto", "required", or name a tool`);
  }
  const named = Array.isArray(tools) ? tools.filter((tool) => toolName(tool) === name) : [];
  if (named.length === 0) {
    throw wrong("tool_choice", `names ${JSON.stringify(name)}, which is not in tools`);
  }
  // Anthropic's form upstream takes for "required" already.
  const isOpenAi = (choice as Body).type === "function";
  return { tools: named, ...isOpenAi ? { tool_choice: "required" } : {} };
}

/** Routes whose messages go through the chat template. */
const CHATS = /\/(?:chat\/completions|responses|messages)$/;

/**
 * For a model whose chat template has no tools: refuses a request that requires a call of one. Others are answered
 * without the tools.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body, with what {@linkcode chooseTool} gave.
 * @returns Whether tools are left out.
 * @throws {ApiError} 400 if a call is required.
 */
export function leavesOutTools(path: string, { tools, tool_choice: choice }: Body): boolean {
  if (!CHATS.test(path) || !Array.isArray(tools) || tools.length === 0) return false;
  const type = isObject(choice) ? choice.type : choice;
  if (type === "none") return false;
  if (!isGiven(type) || type === "auto") return true;
  throw wrong(
    "tool_choice",
    "requires a call of a tool, which cannot be: the model's chat template has no tools",
  );
}
