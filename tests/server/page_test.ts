// The web page in a real browser, on a real server with the demo model. Without Chromium these tests are skipped.

import { assert, assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { expandPlan, parsePlan } from "../../src/plan/mod.ts";
import { createServer, type RysServer, type ServerOptions } from "../../src/server/mod.ts";
import { MODEL } from "../cli/_program.ts";
import { Browser, findChromium } from "./_browser.ts";
import { until } from "./_server.ts";

const chromium = findChromium();
if (!chromium) console.error("tests/server/page_test.ts skipped: no Chromium");

/** Layers of the demo model. */
const N = 40;

interface Scene {
  browser: Browser;
  server: RysServer;
  url: string;
}

/** A server that listens. */
async function listen(options: Partial<ServerOptions>) {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(createServer({ model: MODEL, nCtx: 2048, ...options }));
  const listener = stack.use(Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request, info) => server.fetch(request, info),
  ));
  const url = `http://127.0.0.1:${listener.addr.port}/`;
  const owned = stack.move();
  return { server, url, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

// One browser for all, and one server for those that ask for nothing special.
let browser: Browser;
let plain: Awaited<ReturnType<typeof listen>>;
if (chromium) {
  Deno.test.beforeAll(async () => {
    browser = await Browser.start(chromium);
    plain = await listen({});
    await plain.server.ready;
  });
  Deno.test.afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
  });
}

/** A test with the page open anew; it fails too if the page complains on the console. */
function onPage(
  name: string,
  test: (scene: Scene) => Promise<void>,
  { options, expected = [], ready = true, cold = false }: {
    /** Of a server of the test's own. */
    options?: Partial<ServerOptions>;
    /** Complaints that belong to the test. */
    expected?: RegExp[];
    /** Whether to wait until the page is ready. */
    ready?: boolean;
    /** Whether the page is opened while the model is loaded. */
    cold?: boolean;
  } = {},
): void {
  Deno.test({
    name,
    ignore: !chromium,
    // The browser's socket outlives a test.
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      await using own = options || cold ? await listen(options ?? {}) : undefined;
      const { server, url } = own ?? plain;
      if (!cold) await server.ready;
      browser.complaints.length = 0;
      await browser.look({ width: 1200, height: 800 });
      await browser.open(url);
      if (ready) await browser.until("!document.querySelector('#send').disabled");
      await test({ browser, server, url });
      const complaints = browser.complaints.filter((text) =>
        !expected.some((pattern) => pattern.test(text))
      );
      await browser.open("about:blank"); // a page that still waits would hold its server
      assertEquals(complaints, []);
    },
  });
}

/** What a plan's card shows. */
interface Card {
  spec: string;
  /** Layers drawn as running more than once. */
  drawn: number[];
  first: number;
  last: number;
  says: string;
  runs: string;
  count: string;
  problem: string;
  advice: string[];
  passes: string;
}

const card = async (browser: Browser, plan = "a"): Promise<Card> => {
  await settled(browser);
  return await browser.evaluate<Card>(`(() => {
    const root = document.querySelector(".plan.${plan}");
    const text = (selector) => root.querySelector(selector).textContent;
    const [first, last] = [...root.querySelectorAll("[role=slider]")];
    return {
      spec: root.querySelector(".spec").value,
      drawn: [...root.querySelectorAll(".cells i")]
        .flatMap((cell, il) => cell.classList.contains("many") ? [il] : []),
      first: Number(first.getAttribute("aria-valuenow")),
      last: Number(last.getAttribute("aria-valuenow")),
      says: text(".says"),
      runs: text(".runs"),
      count: text("h2 span"),
      problem: text(".problem"),
      advice: [...root.querySelectorAll(".advice li")].map((item) => item.textContent),
      passes: root.querySelector(".passes").value,
    };
  })()`);
};

/** Waits until the server has answered to the plans as they are. */
async function settled(browser: Browser): Promise<void> {
  await browser.until("!document.querySelector('.plan[aria-busy=true]')");
}

/** Draws from the middle of one layer's cell to that of another. */
async function draw(browser: Browser, from: number, to: number, plan = "a"): Promise<void> {
  const { x, y, width, height } = await browser.box(`.plan.${plan} .cells`);
  const at = (il: number) => x + width * (il + 0.5) / N;
  const middle = y + height / 2;
  await browser.mouse("Moved", at(from), middle, false);
  await browser.mouse("Pressed", at(from), middle);
  for (let step = 1; step <= 4; step++) {
    await browser.mouse("Moved", at(from) + (at(to) - at(from)) * step / 4, middle);
  }
  await browser.mouse("Released", at(to), middle);
}

const focus = (browser: Browser, selector: string) =>
  browser.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);

const layers = (start: number, end: number) =>
  Array.from({ length: end - start }, (_, i) => start + i);

const FIRST = ".plan.a .thumb";
const LAST = ".plan.a .thumb + .thumb";

onPage("page: waits for the model", async ({ browser }) => {
  await browser.until("!document.querySelector('#send').disabled");
  assertStringIncludes(
    await browser.evaluate("document.querySelector('#status').textContent"),
    "40 layers",
  );
}, { ready: false, cold: true });

onPage("page: a block is drawn with the mouse", async ({ browser }) => {
  await draw(browser, 12, 19);
  const shown = await card(browser);
  assertEquals(shown.spec, "12,20");
  assertEquals(shown.drawn, layers(12, 20));
  assertEquals([shown.first, shown.last], [12, 19]);
  assertEquals(shown.runs, "0..11 → 12..19 ×2 → 20..39");
  assertEquals(shown.count, "40 layers, 48 run");
  assertEquals(shown.says, "12..19 ×2");
});

onPage(
  "page: a block is drawn from right to left, and a new one takes its place",
  async ({ browser }) => {
    await draw(browser, 30, 25);
    assertEquals((await card(browser)).spec, "25,31");
    await draw(browser, 10, 11);
    assertEquals((await card(browser)).spec, "10,12");
  },
);

onPage("page: a click chooses one layer", async ({ browser }) => {
  await draw(browser, 22, 22);
  const { spec, runs } = await card(browser);
  assertEquals([spec, runs], ["22,23", "0..21 → 22 ×2 → 23..39"]);
});

onPage("page: drawing beyond the bar's ends stops at the ends", async ({ browser }) => {
  await draw(browser, 30, 60);
  const shown = await card(browser);
  assertEquals(shown.spec, "30,40");
  assertEquals(shown.advice, expandPlan("30,40", N).advisories);
  assertGreater(shown.advice.length, 0);
  await draw(browser, 8, -20);
  assertEquals((await card(browser)).spec, "0,9");
});

onPage("page: an edge of a block is dragged", async ({ browser }) => {
  await draw(browser, 12, 19);
  const { x, y, width, height } = await browser.box(LAST);
  const bar = await browser.box(".plan.a .cells");
  await browser.mouse("Moved", x + width / 2, y + height / 2, false);
  await browser.mouse("Pressed", x + width / 2, y + height / 2);
  await browser.mouse("Moved", bar.x + bar.width * 27.5 / N, y + height / 2);
  await browser.mouse("Released", bar.x + bar.width * 27.5 / N, y + height / 2);
  assertEquals((await card(browser)).spec, "12,28");
});

onPage("page: a block is made, moved and removed with the keyboard", async ({ browser }) => {
  const press = async (key: string, times = 1, shift = false) => {
    for (let i = 0; i < times; i++) await browser.press(key, { shift });
  };
  await focus(browser, LAST);
  await press("ArrowRight");
  assertEquals((await card(browser)).spec, "20,22");
  await press("PageUp");
  assertEquals((await card(browser)).spec, "20,27");
  await focus(browser, FIRST);
  await press("ArrowLeft", 8);
  assertEquals((await card(browser)).spec, "12,27");
  await press("ArrowRight", 2, true);
  assertEquals((await card(browser)).spec, "14,29");
  await press("Home");
  assertEquals((await card(browser)).spec, "0,29");
  await press("End");
  assertEquals((await card(browser)).spec, "28,29");
  await press("PageDown", 1, true);
  assertEquals((await card(browser)).spec, "23,24");
  await press("Delete");
  const shown = await card(browser);
  assertEquals([shown.spec, shown.drawn, shown.runs], ["none", [], "0..39"]);
});

onPage("page: a typed plan moves the block on the bar", async ({ browser }) => {
  await browser.type(".plan.a .spec", "26..33");
  const shown = await card(browser);
  assertEquals(shown.spec, "26..33");
  assertEquals(shown.drawn, layers(26, 34));
  assertEquals([shown.first, shown.last, shown.passes], [26, 33, "2"]);
  await browser.type(".plan.a .spec", "10-12x3");
  const other = await card(browser);
  assertEquals([other.first, other.last, other.passes, other.says], [10, 11, "4", "10..11 ×4"]);
});

onPage("page: several blocks, each edited on its own", async ({ browser }) => {
  await browser.type(".plan.a .spec", "8,10;28,32");
  assertEquals((await card(browser)).drawn, [8, 9, 28, 29, 30, 31]);
  await draw(browser, 8, 8);
  assertEquals((await card(browser)).spec, "8,10;28,32");
  await browser.type(".plan.a .passes", "3");
  assertEquals((await card(browser)).spec, "8-10x2;28,32");
  await browser.click(".plan.a .add");
  assertEquals((await card(browser)).spec, "8-10x2;19,20;28,32");
  await browser.click(".plan.a .remove");
  await browser.click(".plan.a .remove");
  assertEquals((await card(browser)).spec, "8-10x2");
  await browser.type(".plan.a .passes", "1");
  assertEquals((await card(browser)).spec, "8-10x2");
});

onPage(
  "page: a plan that is no block in place is shown, and drawing begins anew",
  async ({ browser }) => {
    await browser.type(".plan.a .spec", "layers:0..19,10..29,35..39");
    const shown = await card(browser);
    assertEquals(shown.drawn, layers(10, 20));
    assertEquals(shown.runs, "0..9 → 10..19 ×2 → 20..29 → 35..39");
    assertEquals(shown.advice, expandPlan(shown.spec, N).advisories);
    assertEquals(
      await browser.evaluate("document.querySelectorAll('.plan.a .skipped').length"),
      5,
    );
    await draw(browser, 4, 6);
    assertEquals((await card(browser)).spec, "4,7");
  },
);

onPage(
  "page: a wrong plan shows what the parser says, and nothing is asked with it",
  async ({ browser }) => {
    await browser.type(".plan.a .spec", "33,");
    const { problem } = await card(browser);
    let says = "";
    try {
      parsePlan("33,");
    } catch (error) {
      says = (error as Error).message;
    }
    assertEquals(problem, says);
    assertEquals(
      await browser.evaluate(`(() => {
        const field = document.querySelector(".plan.a .spec");
        return [
          field.getAttribute("aria-invalid"),
          document.getElementById(field.getAttribute("aria-describedby")).textContent,
        ];
      })()`),
      ["true", says],
    );
    await browser.type("#message", "Hello");
    await browser.press("Enter");
    await browser.until("document.activeElement.matches('.plan.a .spec')");
    assertEquals(await browser.evaluate("document.querySelectorAll('.answer').length"), 0);
    assertEquals(await browser.evaluate("document.querySelector('#message').value"), "Hello");
    await browser.type(".plan.a .spec", "33,34");
    const shown = await card(browser);
    assertEquals([shown.problem, shown.drawn], ["", [33]]);
  },
  { expected: [/status of 400 .*\/rys\/plan\?spec=33(%2C)? *$/] },
);

onPage("page: plans of the server are offered by name", async ({ browser }) => {
  const names = await browser.evaluate<string[]>(
    "[...document.querySelectorAll('.plan.a .presets button')].map((b) => b.textContent)",
  );
  assertEquals(names, ["none", "20,24", "late"]);
  assertEquals((await card(browser)).spec, "20,24");
  await browser.click(".plan.a .presets button:nth-child(3)");
  const shown = await card(browser);
  assertEquals([shown.spec, shown.drawn], ["30-32x2", [30, 31]]);
}, { options: { repeatLayers: "20,24", aliases: { late: "30-32x2" } } });

/** What the demo model answers with hundreds of tokens. */
const LONG = "Once upon a time";

/** What an answer on the page shows. */
interface Shown {
  label: string;
  text: string;
  numbers: string;
}

const answers = (browser: Browser) =>
  browser.evaluate<Shown[]>(
    `[...document.querySelectorAll(".answer")].map((answer) => ({
      label: answer.querySelector("h3").textContent,
      text: answer.querySelector(".text").textContent,
      numbers: answer.querySelector(".numbers").textContent,
    }))`,
  );

/** The server's own answer. */
async function ask(url: string, plan: string, messages: unknown[], maxTokens: number) {
  const response = await fetch(`${url}v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ messages, repeat_layers: plan, temperature: 0, max_tokens: maxTokens }),
  });
  const { choices } = await response.json();
  return choices[0].message.content as string;
}

async function set(browser: Browser, values: Record<string, string>): Promise<void> {
  await browser.click("#settings summary");
  for (const [id, value] of Object.entries(values)) await browser.type(`#${id}`, value);
  await browser.press("Escape");
}

const idle = (browser: Browser) => browser.until("document.querySelector('#stop').hidden");

onPage("page: two plans answer side by side", async ({ browser, url }) => {
  await set(browser, { temperature: "0", "max-tokens": "24" });
  await browser.click("#compare");
  await draw(browser, 2, 37, "b");
  assertEquals((await card(browser, "b")).spec, "2,38");
  const first = "Tell me a story about a fox.";
  await browser.type("#message", first);
  await browser.press("Enter");
  await browser.until("document.querySelectorAll('.answer').length === 2");
  await idle(browser);
  const second = "What is the capital of Norway?";
  await browser.type("#message", second);
  await browser.click("#send");
  await browser.until("document.querySelectorAll('.answer').length === 4");
  await idle(browser);

  const shown = await answers(browser);
  assertEquals(shown.map(({ label }) => label), [
    "Plan A none, 40 layers run",
    "Plan B 2,38, 76 layers run",
    "Plan A none, 40 layers run",
    "Plan B 2,38, 76 layers run",
  ]);
  for (const [i, plan] of ["none", "2,38"].entries()) {
    const user = { role: "user", content: first };
    const text = await ask(url, plan, [user], 24);
    assertEquals(shown[i]!.text, text);
    const more = [user, { role: "assistant", content: text }, { role: "user", content: second }];
    assertEquals(shown[i + 2]!.text, await ask(url, plan, more, 24));
  }
  assert(shown[0]!.text !== shown[1]!.text, shown[0]!.text);
  for (const { numbers } of shown) {
    assertStringIncludes(numbers, "tokens/s");
    assertStringIncludes(numbers, "first after");
  }
  const seeds = shown.map(({ numbers }) => /seed \d+/.exec(numbers)?.[0]);
  assert(seeds[0], shown[0]!.numbers);
  assertEquals(seeds[0], seeds[1]);
  const [a, b] = [await browser.box(".answer.a"), await browser.box(".answer.b")];
  assert(a.x + a.width <= b.x, "side by side");
});

onPage("page: both answers grow at the same time", async ({ browser }) => {
  await set(browser, { temperature: "0", "max-tokens": "400" });
  await browser.click("#compare");
  await browser.type("#message", LONG);
  await browser.press("Enter");
  await browser.until(`(() => {
    const running = [...document.querySelectorAll(".answer.running .text")];
    return running.length === 2 && running.every((text) => text.textContent.length > 20);
  })()`);
  await browser.press("Escape");
  await idle(browser);
});

onPage("page: Stop ends the generation, and the page goes on", async ({ browser, server, url }) => {
  await set(browser, { temperature: "0", "max-tokens": "400" });
  await browser.click("#compare");
  await browser.type("#message", LONG);
  await browser.press("Enter");
  await browser.until("document.querySelector('.answer.a .text')?.textContent.length > 5");
  await browser.click("#stop");
  await idle(browser);
  const before = await answers(browser);
  // Nothing runs any more, long before the answer's own end.
  await until("nothing is in flight", () => server.inFlight === 0);
  assertEquals(await answers(browser), before);
  const [a] = before;
  assertStringIncludes(a!.numbers, "stopped");
  const whole = await ask(url, "none", [{ role: "user", content: LONG }], 400);
  assert(whole.startsWith(a!.text) && whole.length > a!.text.length, a!.text);

  await browser.click("#clear");
  assertEquals(await answers(browser), []);
  const question = "What is the capital of Norway?";
  await browser.type("#message", question);
  await browser.press("Enter");
  await browser.until("document.querySelectorAll('.answer').length === 2");
  await idle(browser);
  const [next] = await answers(browser);
  assertEquals(next?.text, await ask(url, "none", [{ role: "user", content: question }], 400));
});

onPage("page: text is text, never HTML", async ({ browser }) => {
  await set(browser, { "max-tokens": "4" });
  const text = "<img src=x onerror=alert(1)><b>bold</b> &amp; <script>x</script>";
  await browser.type("#message", text);
  await browser.press("Enter");
  await browser.until("document.querySelector('.question')");
  await idle(browser);
  assertEquals(await browser.evaluate("document.querySelector('.question').textContent"), text);
  assertEquals(await browser.evaluate("document.querySelectorAll('#log img, #log b').length"), 0);
});

onPage(
  "page: an error of the server is shown where the answer would be",
  async ({ browser }) => {
    await set(browser, { "max-tokens": "8" });
    await browser.type("#message", "word ".repeat(4000));
    await browser.press("Enter");
    await browser.until("document.querySelector('.answer .alert')");
    const text = await browser.evaluate<string>(
      "document.querySelector('.answer .alert').textContent",
    );
    assertStringIncludes(text, "context size");
    await browser.type("#message", "Hello");
    await browser.press("Enter");
    await browser.until("document.querySelectorAll('.answer').length === 2");
    await idle(browser);
    assertEquals(await browser.evaluate("document.querySelectorAll('.alert').length"), 1);
  },
  { expected: [/status of 400 .*chat\/completions/] },
);

onPage("page: the model's facts are shown", async ({ browser, url }) => {
  await browser.click("#facts summary");
  const facts = await browser.evaluate<Record<string, string>>(`Object.fromEntries(
    [...document.querySelectorAll("#fact-list dt")]
      .map((term) => [term.textContent, term.nextElementSibling.textContent]))`);
  assertEquals([facts.model, facts.layers], ["demo", "40"]);
  assertEquals([facts.architecture, facts["context, tokens"]], ["qwen3", "2,048"]);
  const { device, gpu, gpu_why: why } = await (await fetch(`${url}rys`)).json();
  assertEquals(facts["computes on"], device.toUpperCase(), JSON.stringify(facts));
  assertEquals(facts[gpu ? "GPU" : "GPU not used"], gpu?.description ?? why);
  assert(/^\d+\.\d\d s$/.test(facts["start: load"]!), JSON.stringify(facts));
  assertStringIncludes(
    await browser.evaluate("document.querySelector('#status').textContent"),
    "demo · 40 layers",
  );
});

onPage(
  "page: a server with a key asks for it",
  async ({ browser, url }) => {
    const ready = "!document.querySelector('#send').disabled";
    await browser.until("document.querySelector('#key-dialog').open");
    await browser.type("#key", "wrong");
    await browser.press("Enter");
    await browser.until("document.querySelector('#key').value === ''");
    assertEquals(await browser.evaluate(ready), false);
    await browser.until("document.querySelector('#key-dialog').open");
    assertStringIncludes(
      await browser.evaluate("document.querySelector('#key-note').textContent"),
      "does not take the key",
    );
    await browser.type("#key", "secret");
    await browser.press("Enter");
    await browser.until(ready);
    assertEquals(await browser.evaluate("document.querySelector('#key-dialog').open"), false);
    assertEquals(await browser.evaluate("JSON.stringify({ ...localStorage })"), "{}");
    await browser.open(url); // the same tab
    await browser.until(ready);
    await set(browser, { "max-tokens": "4" });
    await browser.type("#message", "Hello");
    await browser.press("Enter");
    await browser.until("document.querySelector('.answer')");
    await idle(browser);
    assertStringIncludes((await answers(browser))[0]!.numbers, "seed");
  },
  { options: { apiKeys: ["secret"] }, expected: [/status of 401/], ready: false },
);

onPage("page: works for models of 16 to 128 layers", async ({ browser }) => {
  for (const n of [16, 24, 36, 64, 80, 128]) {
    for (const phone of [false, true]) {
      await browser.look({ width: phone ? 360 : 1200, height: 800, phone });
      await browser.evaluate(`(async () => {
        const { LayerBar } = await import("/rys/layer_bar.js");
        document.querySelector("#test-bar")?.remove();
        const root = document.createElement("div");
        root.className = "bar";
        const holder = document.createElement("section");
        holder.className = "plan";
        holder.id = "test-bar";
        holder.append(root);
        document.querySelector("#plans").prepend(holder);
        globalThis.drawn = undefined;
        new LayerBar(root, "Test", (blocks) => globalThis.drawn = blocks)
          .show(new Array(${n}).fill(1), []);
      })()`);
      const { x, y, width, height } = await browser.box("#test-bar .cells");
      const [from, to] = [n >> 1, Math.floor(n * 0.8)];
      const at = (il: number) => x + width * (il + 0.5) / n;
      await browser.mouse("Moved", at(from), y + height / 2, false);
      await browser.mouse("Pressed", at(from), y + height / 2);
      await browser.mouse("Moved", at(to), y + height / 2);
      await browser.mouse("Released", at(to), y + height / 2);
      assertEquals(await browser.evaluate("globalThis.drawn"), [
        { start: from, end: to + 1, count: 2 },
      ], `${n} layers`);
      // Each cell is where its layer is, and the ticks do not run into each other.
      const cells = await browser.evaluate<number[]>(
        `[...document.querySelectorAll("#test-bar .cells i")].map((cell) => {
          const { x, width } = cell.getBoundingClientRect();
          return x + width / 2;
        })`,
      );
      assertEquals(cells.length, n);
      cells.forEach((middle, il) =>
        assert(Math.abs(middle - at(il)) < width / n / 2, `${n}: ${il}`)
      );
      const ticks = await browser.evaluate<[number, number][]>(
        `[...document.querySelectorAll("#test-bar .ticks span")].map((tick) => {
          const { left, right } = tick.getBoundingClientRect();
          return [left, right];
        })`,
      );
      ticks.slice(1).forEach(([left], i) => assert(left > ticks[i]![1], `${n}: tick ${i}`));
    }
  }
});

onPage(
  "page: every control has a name, a place in the order of Tab and a visible focus",
  async ({ browser }) => {
    await browser.click("#compare");
    await browser.type(".plan.a .spec", "20,24");
    await settled(browser);
    await browser.click("#settings summary");
    const nodes = await browser.accessibleNodes();
    const CONTROLS = new Set([
      ...["button", "textbox", "slider", "spinbutton", "checkbox", "combobox", "link", "menuitem"],
      ...["DisclosureTriangle", "searchbox", "switch", "tab"],
    ]);
    const controls = nodes.filter(({ role }) => CONTROLS.has(role));
    assertEquals(controls.filter(({ name }) => name.trim() === ""), []);
    const names = controls.map(({ role, name }) => `${role} ${name}`);
    for (
      const name of [
        "button Compare two plans",
        "slider Plan A: first layer of the block",
        "slider Plan A: last layer of the block",
        "slider Plan B: first layer of the block",
        "textbox Plan A, as text",
        "spinbutton Plan A: passes of the block",
        "button Plan B: add block",
        "spinbutton Temperature",
        "spinbutton Most tokens",
        "spinbutton Seed",
        "textbox Your message",
        "button Send",
        "button New chat",
      ]
    ) assert(names.includes(name), `${name} is not among ${names.join(", ")}`);
    assertEquals(new Set(names).size, names.length, `names are told apart: ${names.join(", ")}`);
    const roles = new Set(nodes.map(({ role }) => role));
    for (const role of ["banner", "main", "log", "status", "form", "heading"]) {
      assert(roles.has(role), `no ${role}`);
    }
    const slider = controls.find(({ name }) => name === "Plan A: last layer of the block");
    assertEquals(slider?.value, "23");

    // Tab leads through every control that can be used, and shows where it is.
    await browser.evaluate("document.activeElement.blur()");
    const seen = new Set<string>();
    const shown = await browser.evaluate<number>(
      `[...document.querySelectorAll("button:enabled, input, textarea, summary, [tabindex='0']")]
      .filter((e) => e.checkVisibility() && !e.disabled).length`,
    );
    // The order may lead out of the page once, and in again.
    for (let i = 0; i < shown + 2; i++) {
      await browser.press("Tab");
      const [id, outline, html] = await browser.evaluate<[string, string, string]>(`(() => {
      const e = document.activeElement;
      if (e === document.body) return ["", "", ""];
      e.dataset.seen ??= String(document.querySelectorAll("[data-seen]").length);
      const { outlineStyle, outlineWidth } = getComputedStyle(e);
      return [e.dataset.seen, outlineStyle + " " + outlineWidth, e.outerHTML.slice(0, 200)];
    })()`);
      if (!id) continue;
      seen.add(id);
      assertEquals(outline, "solid 2px", html);
    }
    assertEquals(seen.size, shown);
  },
);

onPage("page: fits a phone, and its texts can be read in light and dark", async ({ browser }) => {
  await set(browser, { "max-tokens": "8" });
  await browser.click("#compare");
  await browser.type(".plan.a .spec", "0,1;8,9;12,13;16,17;20,21;24,25;28,29;32,33");
  await settled(browser);
  await browser.type("#message", "x".repeat(300));
  await browser.press("Enter");
  await browser.until("document.querySelectorAll('.answer').length === 2");
  await idle(browser);
  for (const width of [320, 360, 414]) {
    await browser.look({ width, height: 700, phone: true });
    assertEquals(await browser.evaluate("document.documentElement.scrollWidth"), width);
  }
  const backgrounds: number[] = [];
  for (const dark of [false, true]) {
    await browser.look({ width: 1200, height: 800, dark });
    const colours = await browser.evaluate<[string, string, string, string][]>(`(() => {
      const below = (e) => {
        for (; e; e = e.parentElement) {
          const { backgroundColor } = getComputedStyle(e);
          if (!/, 0\\)$/.test(backgroundColor)) return backgroundColor;
        }
      };
      const own = (e) => [...e.childNodes].some((node) =>
        node.nodeType === Node.TEXT_NODE && node.data.trim());
      return [...document.querySelectorAll("body *")]
        .filter((e) => own(e) && e.checkVisibility() && !e.closest(":disabled"))
        .map((e) => [e.tagName + "." + e.className, e.textContent, getComputedStyle(e).color, below(e)]);
    })()`);
    assertGreater(colours.length, 20);
    for (const [element, text, over, under] of colours) {
      const [a, b] = [luminance(over), luminance(under)];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      assertGreater(contrast, 4.5, `${element} "${text}": ${over} on ${under}`);
    }
    backgrounds.push(
      luminance(await browser.evaluate("getComputedStyle(document.body).backgroundColor")),
    );
  }
  assert(backgrounds[0]! > 0.8 && backgrounds[1]! < 0.05, `${backgrounds}`);
});

/** Relative luminance of `rgb(r, g, b)`, 0 to 1. */
function luminance(colour: string): number {
  const [r, g, b] = colour.match(/[\d.]+/g)!.slice(0, 3).map((text) => {
    const x = Number(text) / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
