import { assertEquals } from "@std/assert";
import { parseArgs } from "@std/cli/parse-args";

function plain(x: unknown): unknown {
  return JSON.parse(JSON.stringify(x));
}

Deno.test("parseArgs() reads values, flags and positional arguments", () => {
  const args = parseArgs(
    [
      "run",
      "-m",
      "model.gguf",
      "--repeat-layers",
      "33,34",
      "--verbose",
      "--temp=0.7",
      "-n",
      "-1",
      "7",
    ],
    { string: ["model", "repeat-layers"], boolean: ["verbose", "quiet"], alias: { model: "m" } },
  );
  const model: string | undefined = args.model;
  const verbose: boolean = args.verbose;
  assertEquals([model, verbose, args.quiet, args["repeat-layers"]], [
    "model.gguf",
    true,
    false,
    "33,34",
  ]);
  assertEquals([args.temp, args.n, args.m, args._], [0.7, -1, "model.gguf", ["run", 7]]);
});

Deno.test("parseArgs() keeps text as text where asked to", () => {
  assertEquals(plain(parseArgs(["--seed", "007", "12"], { string: ["seed", "_"] })), {
    seed: "007",
    _: ["12"],
  });
  assertEquals(plain(parseArgs(["--seed"], { string: ["seed"] })), { seed: "", _: [] });
  assertEquals(plain(parseArgs(["--text=a=b"], { string: ["text"] })), { text: "a=b", _: [] });
});

Deno.test("parseArgs() collects, negates and applies defaults", () => {
  const options = {
    string: ["lora", "gpu"],
    boolean: ["color", "jinja"],
    collect: ["lora"],
    negatable: ["jinja"],
    default: { gpu: "auto", jinja: true },
  } as const;
  assertEquals(plain(parseArgs([], options)), {
    gpu: "auto",
    jinja: true,
    color: false,
    lora: [],
    _: [],
  });
  assertEquals(
    plain(parseArgs(["--lora", "a", "--lora=b", "--no-jinja", "--gpu", "off"], options)),
    {
      gpu: "off",
      jinja: false,
      color: false,
      lora: ["a", "b"],
      _: [],
    },
  );
});

Deno.test("parseArgs() stops at a bare -- and with stopEarly", () => {
  assertEquals(plain(parseArgs(["a", "--", "-b", "1"])), { _: ["a", "-b", "1"] });
  assertEquals(plain(parseArgs(["a", "--", "-b"], { "--": true })), { _: ["a"], "--": ["-b"] });
  assertEquals(plain(parseArgs(["-v", "run", "--x"], { stopEarly: true, boolean: ["v"] })), {
    v: true,
    _: ["run", "--x"],
  });
});

Deno.test("parseArgs() reports options that were not declared", () => {
  const seen: string[] = [];
  const args = parseArgs(["--good", "--bad=1", "pos"], {
    boolean: ["good"],
    unknown: (arg, key) => {
      if (key === undefined) return true;
      seen.push(arg);
      return false;
    },
  });
  assertEquals(seen, ["--bad=1"]);
  assertEquals(plain(args), { good: true, _: ["pos"] });
});

Deno.test("parseArgs() takes grouped letters apart", () => {
  assertEquals(plain(parseArgs(["-ab", "-n5", "-k=x"], { boolean: ["a", "b"] })), {
    a: true,
    b: true,
    n: 5,
    k: "x",
    _: [],
  });
});
