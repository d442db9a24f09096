// Prints which adapter the engine would get if it had to use one, or why none: `{"gpu": ...}` or `{"why": "..."}`.

import { chooseGpu } from "../gpu/device.ts";

const chosen = await chooseGpu({ mode: "required" }, navigator.gpu);
if ("why" in chosen) console.log(JSON.stringify({ why: chosen.why }));
else {
  const { description, software } = chosen.info;
  console.log(JSON.stringify({ gpu: { description, software } }));
  chosen.device.destroy();
}
