import { assertEquals, assertThrows } from "@std/assert";
import { chatTemplateArgs } from "./chat_templates.ts";
import { UsageError } from "../errors.ts";

const args = (text: string) => chatTemplateArgs("--chat-template", text);

Deno.test("chatTemplateArgs() takes names and Jinja text", () => {
  assertEquals(args("chatml"), []);
  assertEquals(args("llama3"), ["--no-jinja"]);
  assertEquals(args("{% for m in messages %}{{ m.content }}{% endfor %}"), []);
});

Deno.test("chatTemplateArgs() refuses anything else and names what is near", () => {
  const refused = (text: string) => assertThrows(() => args(text), UsageError).message;
  assertEquals(
    refused("falcon2"),
    '--chat-template "falcon2" is neither a built-in template nor Jinja text, ' +
      "which has {{ or {%; did you mean falcon3?",
  );
  assertEquals(/did you mean llama3, .*llama2.*\?$/.test(refused("lama3")), true);
  assertEquals(/the names are chatml, .*solar-open$/.test(refused("nope")), true, refused("nope"));
  assertEquals(/the names are chatml/.test(refused("")), true);
});
