import { assertEquals } from "@std/assert";
import { leftOutTools } from "./left_out_tools.ts";

Deno.test("leftOutTools() names the types of tools that are not functions, once", () => {
  const add = { type: "function", name: "add" };
  assertEquals(leftOutTools(undefined), []);
  assertEquals(leftOutTools([add]), []);
  assertEquals(leftOutTools([{ type: "web_search" }, add, { type: "mcp" }, { type: "mcp" }]), [
    `tools of type "web_search", "mcp" are left out: only functions can be called here`,
  ]);
});
