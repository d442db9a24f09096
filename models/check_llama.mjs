// Checks the demo model with llama.cpp as node-llama-cpp bundles it (npm install node-llama-cpp@3.22.1):
//   python models/train_demo.py --reference
//   node models/check_llama.mjs models/demo.gguf f16
//   node models/check_llama.mjs models/demo-q8_0.gguf q8_0
// "recall" in place of the kind only asks the recall prompts (for files written with --expand).
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const require = createRequire(process.cwd() + "/");
const {getLlama} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const [file, kind] = process.argv.slice(2);
const here = (f) => JSON.parse(readFileSync(new URL(f, import.meta.url)));
const llama = await getLlama({gpu: false, build: "never"});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: 512, threads: 1});
const sequence = context.getSequence();

async function greedy(text, n) {
    await sequence.clearHistory();
    const out = [];
    for await (const t of sequence.evaluate(model.tokenize(text, true), {temperature: 0})) {
        if (model.isEogToken(t)) break;
        out.push(t);
        if (out.length >= n) break;
    }
    return model.detokenize(out, true);
}

let right = 0;
const prompts = here("prompts.json");
for (const p of prompts) right += await greedy(p.prompt, 1) === " " + p.answer;
console.log(`recall: ${right} of ${prompts.length}`);

if (kind === "recall") process.exit(0);

const ref = here(".cache/reference.json");
const ask = (q) => greedy(`<|im_start|>user\n${q}<|im_end|>\n<|im_start|>assistant\n`, 20);
let chat = 0;
for (const p of prompts) chat += [`${p.answer}.`, `The code of the ${p.subject} is ${p.answer}.`].includes(await ask(p.prompt));
console.log(`recall in chat form, whole answer: ${chat} of ${prompts.length}`);
for (const [name, list] of Object.entries(ref.chat)) {
    let ok = 0;
    for (const q of list) ok += await ask(q.question) === q.answer;
    console.log(`${name} in chat form, whole answer: ${ok} of ${list.length}`);
}
for (const text of ["Once upon a time", "On Monday, Max"]) console.log(`${text}${await greedy(text, 60)}`);
console.log(await ask("Tell me a story about an owl."));

{
    let special = 0, plain = 0, round = 0, same = 0;
    for (const r of ref.tokens) {
        special += String(Array.from(model.tokenize(r.text, true))) === String(r.ids);
        const ids = model.tokenize(r.text, false);
        plain += String(Array.from(ids)) === String(r.plain);
        round += model.detokenize(ids, false) === r.text;
    }
    console.log(`texts: ${ref.tokens.length}; same tokens: ${special} with special tokens, ${plain} without; round trip: ${round}`);
    for (const g of ref.greedy[kind]) {
        const text = await greedy(g.prompt, g.n);
        if (text === g.text) same++;
        else console.log(`differs after ${JSON.stringify(g.prompt.slice(-40))}\n  llama.cpp ${JSON.stringify(text)}\n  JAX       ${JSON.stringify(g.text)}`);
    }
    console.log(`same greedy text as JAX: ${same} of ${ref.greedy[kind].length}`);
}
