// Numbers that the C++ side and TypeScript both know: the headers are what TypeScript says.

import { assert, assertEquals } from "@std/assert";
import { EventKind } from "../src/engine/protocol.ts";
import { FACTS } from "./device.ts";
import { Op } from "./executor.ts";

const header = (path: string) => Deno.readTextFileSync(new URL(`../${path}`, import.meta.url));

/** The body of a declaration. */
function bodyOf(text: string, head: string): string {
  const body = new RegExp(`${head}[^{]*\\{(.*?)\\n\\};`, "s").exec(text)?.[1];
  assert(body !== undefined, `there is no ${head}`);
  return body;
}

/** Members of an enum: names in camel case, without their common beginning, and their numbers. */
function enumOf(text: string, name: string, prefix: string): Record<string, number> {
  const members = bodyOf(text, `enum ${name}\\b`).matchAll(/^\s*([A-Z0-9_]+)\s*=\s*(\d+),/gm);
  return Object.fromEntries([...members].map(([, member, value]) => {
    assert(member!.startsWith(prefix), member);
    const words = member!.slice(prefix.length).toLowerCase().split("_");
    return [words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join(""), Number(value)];
  }));
}

Deno.test("EventKind has the numbers of cpp/rys.h", () => {
  assertEquals<Record<string, number>>(
    EventKind,
    enumOf(header("cpp/rys.h"), "event_kind", "EVENT_"),
  );
});

Deno.test("Op has the numbers of gpu/webgpu/rys_gpu.h", () => {
  assertEquals<Record<string, number>>(
    Op,
    enumOf(header("gpu/webgpu/rys_gpu.h"), "rys_gpu_op", "RYS_GPU_"),
  );
});

Deno.test("FACTS has the members of rys_gpu_facts in their order", () => {
  const body = bodyOf(header("gpu/webgpu/rys_gpu.h"), "struct rys_gpu_facts");
  const members = [...body.matchAll(/^\s*(uint32_t|uint64_t|char)\s+(\w+)(?:\[(\d+)\])?\s*=/gm)];
  assertEquals(
    Object.entries(FACTS),
    members.map(([, type, name, length]) => [name, type === "char" ? Number(length) : type]),
  );
});
