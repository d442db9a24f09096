import { assert, assertEquals, assertMatch } from "@std/assert";
import { page } from "./page.ts";

const get = (path: string, method = "GET") =>
  page(new Request(`http://localhost:8080${path}`, { method }));

Deno.test("page() serves the page and every file that it names", async () => {
  const seen = new Set<string>();
  const open = ["/"];
  for (let path = open.pop(); path; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const response = get(path);
    assertEquals(response?.status, 200, path);
    const text = await response!.text();
    const names = text.matchAll(/(?:src|href)="([^":]+)"|from "(\.[^"]+)"/g);
    for (const [, inHtml, inScript] of names) {
      open.push(new URL(inHtml ?? inScript!, `http://localhost${path}`).pathname);
    }
  }
  assertEquals([...seen].sort(), [
    "/",
    "/rys/answer.js",
    "/rys/api.js",
    "/rys/layer_bar.js",
    "/rys/page.css",
    "/rys/page.js",
    "/rys/plan_picker.js",
    "/rys/plans.js",
    "/rys/sse.js",
  ]);
});

Deno.test("page() says each file's type", () => {
  const type = (path: string) => get(path)?.headers.get("Content-Type");
  assertEquals(type("/"), "text/html; charset=utf-8");
  assertEquals(type("/rys/page.css"), "text/css; charset=utf-8");
  assertEquals(type("/rys/page.js"), "text/javascript; charset=utf-8");
});

Deno.test("page() lets only the page's own scripts and styles run", async () => {
  const response = get("/")!;
  const policy = new Map(
    response.headers.get("Content-Security-Policy")!.split("; ").map((part) => {
      const [name, ...values] = part.split(" ");
      return [name, values.join(" ")];
    }),
  );
  assertEquals(policy.get("default-src"), "'none'");
  assertEquals(policy.get("script-src"), "'self'");
  assertEquals(policy.get("style-src"), "'self'");
  assertEquals(policy.get("frame-ancestors"), "'none'");
  const html = await response.text();
  assertEquals(html.match(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:/gi), null);
});

Deno.test("page() answers HEAD with the same head and no body", async () => {
  const [head, whole] = [get("/", "HEAD")!, get("/")!];
  assertEquals([...head.headers], [...whole.headers]);
  assertEquals(await head.text(), "");
});

Deno.test("page() ignores a query", () => {
  assertEquals(get("/?plan=26,34")?.status, 200);
});

Deno.test("page() leaves all else to the server", () => {
  for (
    const path of ["/rys/plan", "/rys/plan?spec=none", "/rys/", "/rys", "/index.html", "/v1/models"]
  ) {
    assertEquals(get(path), undefined, path);
  }
  for (const path of ["/rys/page.ts", "/rys/../page.js", "//", "/rys/page_test.ts"]) {
    assertEquals(get(path), undefined, path);
  }
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    assertEquals(get("/", method), undefined, method);
  }
});

Deno.test("page() never puts text into the page as HTML", async () => {
  for (const name of ["answer", "api", "layer_bar", "page", "plan_picker", "plans"]) {
    const text = await get(`/rys/${name}.js`)!.text();
    assertMatch(text, /^\/\/ @ts-check\n/);
    assert(
      !/innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|setHTML/
        .test(text),
      name,
    );
  }
});
