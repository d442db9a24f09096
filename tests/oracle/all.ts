// Every check on every architecture: `deno task test:oracle`. The tests run a part of it.

import { checkVariants, variants } from "./variants.ts";

const names = (await variants()).filter((name) => name.includes(Deno.args[0] ?? ""));
const total = { passed: 0, failed: 0, refused: 0 };
const atOnce = navigator.hardwareConcurrency;
const repacked = names.filter((name) => name !== "messages" && name !== "mtp");
const results = [
  ...checkVariants(names, { atOnce }),
  ...checkVariants(repacked, { atOnce, args: () => ["--repacked"] }),
];
for (const [name, result] of results) {
  try {
    const { passed, failures, refused } = await result;
    total.passed += passed;
    total.failed += failures.length;
    total.refused += refused.length;
    console.log(`${name}: ${passed} passed, ${failures.length} failed, ${refused.length} refused`);
    for (const line of failures) console.log(`  ${line}`);
  } catch (error) {
    total.failed++;
    console.log(`${name}: ${error instanceof Error ? error.message : error}`);
  }
}
console.log(`${names.length} variants`);
console.log(`${total.passed} passed, ${total.failed} failed`);
console.log(`${total.refused} plans refused as documented`);
Deno.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
