import { loadModel, type LoadModelOptions, type Model } from "@rys/edge";
import { fetchModel, type ModelName } from "./fetch.ts";

/** Loads one of the fetched models. */
export async function load(name: ModelName, options: LoadModelOptions = {}): Promise<Model> {
  return await loadModel(await fetchModel(name), options);
}

/** The question of the chat tests, and its answer by SmolLM2. */
export const CAPITAL = [
  { role: "user", content: "What is the capital of France? Answer in one sentence." },
];
/** See {@linkcode CAPITAL}. */
export const PARIS = "The capital of France is Paris.";

/** Plans of SmolLM2's middle layers that keep {@linkcode PARIS}, with a margin at every token. */
export const KIND_PLANS = ["10,12", "12,14", "13,15", "20,22"];

/** Everyday text of 49 tokens to SmolLM2, 50 to gemma. */
export const FILLER =
  "The weather was mild that day. People walked along the river and talked about the market. " +
  "A baker sold bread at the corner, and children played near the old bridge. " +
  "Later the sun went down behind the hills and the lamps were lit one after another. ";
