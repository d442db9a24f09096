import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "../errors.ts";
import { parseFlags } from "./parse_flags.ts";

const refuses = (args: string[], ...parts: string[]) => {
  const { message } = assertThrows(() => parseFlags(args), UsageError);
  for (const part of parts) assertEquals(message.includes(part), true, `${message} / ${part}`);
};

Deno.test("parseFlags() runs where no command is named", () => {
  assertEquals(parseFlags([]).command, "run");
  assertEquals(parseFlags(["--temp", "0"]).command, "run");
  assertEquals(parseFlags(["-m", "plan", "chat"]).command, "chat");
});

Deno.test("parseFlags() takes short flags of several letters whole", () => {
  const flags = parseFlags(["-ctk", "q8_0", "-ngl", "99", "-st", "-sys", "be brief", "-np", "2"]);
  assertEquals(flags.text("cacheTypeK"), "q8_0");
  assertEquals(flags.text("gpuLayers"), "99");
  assertEquals(flags.on("singleTurn"), true);
  assertEquals(flags.text("systemPrompt"), "be brief");
  assertEquals(flags.number("nParallel"), 2);
});

Deno.test("parseFlags() takes the next argument as the value, whatever it looks like", () => {
  assertEquals(parseFlags(["--repeat-layers", "-1,2"]).text("repeatLayers"), "-1,2");
  assertEquals(parseFlags(["--repeat-layers=-1,2"]).text("repeatLayers"), "-1,2");
  assertEquals(parseFlags(["--repeat-layers", ""]).text("repeatLayers"), "");
  assertEquals(parseFlags(["--repeat-layers="]).text("repeatLayers"), "");
  assertEquals(parseFlags(["--repeat-layers", "33"]).text("repeatLayers"), "33");
  assertEquals(parseFlags(["-p", "--json"]).text("prompt"), "--json");
  assertEquals(parseFlags(["-p", "=a=b"]).text("prompt"), "=a=b");
  assertEquals(parseFlags(["-p", "a\nb"]).text("prompt"), "a\nb");
  assertEquals(parseFlags(["-p=x=y"]).text("prompt"), "x=y");
  assertEquals(parseFlags(["-s", "-1"]).number("seed"), -1);
});

Deno.test("parseFlags() reads underscores as llama.cpp does", () => {
  assertEquals(parseFlags(["--top_k", "5"]).number("topK"), 5);
});

Deno.test("parseFlags() takes the last of a flag and warns", () => {
  const flags = parseFlags(["-s", "1", "--seed", "2", "-s", "3"]);
  assertEquals(flags.number("seed"), 3);
  assertEquals(flags.warnings, ["--seed is given more than once; only the last value counts"]);
  assertEquals(parseFlags(["--json", "--json"]).warnings, []);
});

Deno.test("parseFlags() collects flags that may repeat", () => {
  assertEquals(parseFlags(["-r", "a", "-r", ""]).all("stop"), ["a", ""]);
  assertEquals(parseFlags([]).all("stop"), []);
  const bench = parseFlags(["bench", "--repeat-layers", "1,2", "--repeat-layers", "3,4"]);
  assertEquals(bench.all("repeatLayersList"), ["1,2", "3,4"]);
  assertEquals(bench.warnings, []);
});

Deno.test("parseFlags() reads the same letter as its command means it", () => {
  assertEquals(parseFlags(["bench", "-p", "64", "-r", "2"]).text("benchPrompt"), "64");
  assertEquals(parseFlags(["run", "-p", "64"]).text("prompt"), "64");
});

Deno.test("parseFlags() takes -fa alone, and with a value", () => {
  assertEquals(parseFlags(["-fa", "-n", "3"]).text("flashAttention"), "on");
  assertEquals(parseFlags(["-fa", "off"]).text("flashAttention"), "off");
  assertEquals(parseFlags(["--flash-attn=auto"]).text("flashAttention"), "auto");
});

Deno.test("parseFlags() takes defaults from the environment, and the flag wins", () => {
  const env = (name: string) => name === "LLAMA_ARG_REPEAT_LAYERS" ? "1,2" : undefined;
  assertEquals(parseFlags([], env).text("repeatLayers"), "1,2");
  assertEquals(parseFlags([], env).name("repeatLayers"), "LLAMA_ARG_REPEAT_LAYERS");
  assertEquals(parseFlags(["--repeat-layers", "3,4"], env).text("repeatLayers"), "3,4");
  assertEquals(parseFlags(["bench"], env).all("repeatLayersList"), ["1,2"]);
  assertEquals(parseFlags(["doctor"], env).has("repeatLayers"), false);
  assertEquals(parseFlags([], () => "").has("repeatLayers"), false);
});

Deno.test("parseFlags() accepts llama.cpp's flags that change nothing here", () => {
  parseFlags(["--jinja", "--no-warmup", "--no-mmap", "--no-display-prompt", "-no-cnv"]);
});

Deno.test("parseFlags() names the nearest flag or command", () => {
  refuses(["--repeat-layer", "1,2"], "unknown flag --repeat-layer", "--repeat-layers?");
  refuses(["--tempp", "1"], "--temp?");
  refuses(["--repaet-layers=1,2"], "--repeat-layers?");
  refuses(["--zzzzzz"], "unknown flag --zzzzzz");
  refuses(["chatt"], 'unknown command "chatt"', '"chat"');
  refuses(["xyzzy"], 'unknown command "xyzzy"', "run, chat, serve, plan");
});

Deno.test("parseFlags() says where a flag of another command belongs", () => {
  refuses(["--n-layer", "64"], '--n-layer is not a flag of "run"', "belongs to: plan");
  refuses(["plan", "--temp", "1"], '--temp is not a flag of "plan"', "run, chat");
});

Deno.test("parseFlags() refuses stray arguments with a hint", () => {
  refuses(["model.gguf"], "-m model.gguf");
  refuses(["run", "Once"], "-p TEXT");
  refuses(["Once upon a time"], "-p TEXT");
  refuses(["plan", "26,34"], 'unexpected argument "26,34"');
});

Deno.test("parseFlags() refuses missing, superfluous and wrong values", () => {
  refuses(["--repeat-layers"], "--repeat-layers needs a value: SPEC");
  refuses(["--json=yes"], "--json takes no value");
  refuses(["-n", "many"], "-n must be a whole number", '"many"');
  refuses(["-n", "1.5"], "-n must be a whole number");
  refuses(["-b", "0"], "-b must be a whole number from 1");
  refuses(["--temp", ""], "--temp must be a number");
  refuses(["--gpu", "maybe"], '--gpu must be auto, on, off or required, not "maybe"');
  refuses(["chat", "--gpu", "maybe"], '--gpu must be auto, on, off or required, not "maybe"');
  refuses(["--gpu", "chat", "stray"], 'unexpected argument "stray"');
  refuses(["-ctk", "q9_9"], "-ctk must be f32, f16");
  refuses(["-c", "99999999999"], "-c must be a whole number up to 2147483647, not");
  for (const name of ["-m", "-f", "-md", "--grammar-file"]) {
    refuses([name, ""], `${name} needs the name of a file`);
  }
});

Deno.test("parseFlags() knows the ranges of the sampler's numbers", () => {
  refuses(["--temp", "-1"], "--temp must be a number in 0..1000000");
  refuses(["--top-p", "3"], "--top-p must be a number in 0..1");
  refuses(["--min-p", "1.1"], "--min-p must be a number in 0..1");
  refuses(["--repeat-penalty", "-1"], "--repeat-penalty must be a number in 0..");
  refuses(["--presence-penalty", "1e9"], "--presence-penalty must be a number in");
  refuses(["--frequency-penalty", "-1e9"], "--frequency-penalty must be a number in");
  refuses(["--top-k", "-2"], "--top-k must be a whole number from -1");
  refuses(["-n", "-3"], "-n must be a whole number from -2");
  parseFlags(["--temp", "0", "--top-p", "1", "--min-p", "0", "--presence-penalty", "-2"]);
});

Deno.test("parseFlags() says what this version does not have", () => {
  refuses(["serve", "--path", "x"], "--path: the server neither serves nor stores files");
  for (const name of ["-hfd", "--spec-draft-hf"]) {
    refuses([name, "a/b"], `${name}: a draft model is given by its file`);
  }
  refuses(["chat", "--port=1"], '--port is not a flag of "chat"; it belongs to: serve');
});

Deno.test("parseFlags() keeps the topics of help", () => {
  const flags = parseFlags(["help", "plan"]);
  assertEquals(flags.command, "help");
  assertEquals(flags.topics, ["plan"]);
});

Deno.test("parseFlags() reads words that stand for others, and keeps what was written", () => {
  assertEquals(parseFlags(["-fa", "1"]).text("flashAttention"), "on");
  assertEquals(parseFlags(["-fa", "enabled"]).written("flashAttention"), "enabled");
  assertEquals(parseFlags(["--spec-type", "ngram"]).text("specType"), "ngram-simple");
  assertEquals(parseFlags(["serve", "--max-body", "2"]).number("maxBodyBytes"), 2 << 20);
});

Deno.test("parseFlags() switches off what can be off", () => {
  const off = parseFlags(["--context-shift", "--no-context-shift"]);
  assertEquals([off.on("contextShift"), off.off("contextShift")], [false, true]);
  const none = parseFlags([]);
  assertEquals([none.on("contextShift"), none.off("contextShift")], [false, false]);
  const env = (name: string) => name === "LLAMA_ARG_NO_CONTEXT_SHIFT" ? "" : undefined;
  assertEquals(parseFlags([], env).off("contextShift"), true);
  assertEquals(parseFlags([], env).name("contextShift"), "LLAMA_ARG_NO_CONTEXT_SHIFT");
});

Deno.test("parseFlags() hands flags on as llama-server's arguments, in the table's order", () => {
  const flags = parseFlags([
    ...[
      "--xtc-probability",
      "0.5",
      "-l",
      "1+2",
      "-l",
      "3-4",
      "--no-kv-offload",
      "--typical",
      "1e-3",
    ],
  ]);
  assertEquals(flags.llamaArgs((flag) => flag.of === undefined), [
    ...["--no-kv-offload", "--typical", "0.001", "--xtc-probability", "0.5"],
    ...["--logit-bias", "1+2", "--logit-bias", "3-4"],
  ]);
});

Deno.test("parseFlags() takes two values where a flag has two", () => {
  const flags = parseFlags(["--control-vector-layer-range", "3", "9", "-n", "4"]);
  assertEquals([flags.text("controlVectorRange"), flags.number("maxTokens")], ["3 9", 4]);
  refuses(["--control-vector-layer-range", "3"], "needs 2 values: FIRST LAST");
});

Deno.test("parseFlags() knows what has no effect, with a value and without", () => {
  const flags = parseFlags(["serve", "--mlock", "-ts", "1,2", "--numa=distribute", "--mlock"]);
  assertEquals(flags.inert, ["--mlock", "-ts", "--numa"]);
  assertEquals(parseFlags(["--no-warmup"]).inert, []);
});

Deno.test("parseFlags() makes a chat of -cnv", () => {
  assertEquals(parseFlags(["-m", "x", "-cnv"]).command, "chat");
  assertEquals(parseFlags(["-cnv", "-no-cnv"]).command, "run");
  assertEquals(parseFlags(["chat", "-cnv"]).command, "chat");
  refuses(["-cnv", "--json"], '--json is not a flag of "chat"');
});

Deno.test("parseFlags() suggests nothing for letters that nothing is like", () => {
  for (const flag of ["-x", "-k", "-q", "-zz"]) {
    const { message } = assertThrows(() => parseFlags([flag]), UsageError);
    assertEquals(message.includes("did you mean"), false, message);
  }
  refuses(["-T"], "did you mean -t?");
  refuses(["--n", "4"], "did you mean -n?");
  refuses(["-temp", "4"], "did you mean --temp?");
});

Deno.test("parseFlags() checks the form of what llama.cpp would take wrongly", () => {
  refuses(["-l", "15043"], "-l must be TOKEN+BIAS");
  refuses(["--override-kv", "a=b"], "--override-kv must be KEY=TYPE:VALUE");
  refuses(["--samplers", "top_k;nope"], '"nope" is not one of penalties');
  refuses(["--samplers", ""], "--samplers");
  refuses(["--sampler-seq", "kz"], '"z" is not one of');
  refuses(["--mirostat", "3"], "in 0..2");
  refuses(["--draft-max", "4"], "--spec-draft-n-max");
  refuses(["--mmproj", "x"], "images and sound");
});
