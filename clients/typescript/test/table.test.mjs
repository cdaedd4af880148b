// Run by tests/test_tables.py with the path of the cases that all languages share: `node table.test.mjs cases.json`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decide, newer } from "superarm";

const { table, cases } = JSON.parse(readFileSync(process.argv[2]));
const slate = (segment, row) => (row < 0 ? table.control.slates[""][0] : (table.slates[segment] ?? table.slates[""])[row]);
for (const [id, segment, row] of cases) {
  const served = await decide(table, id, segment);
  assert.equal(served.row, row, id);
  assert.deepEqual(served.arms, slate(segment, row).map((j) => table.arms[j]));
}
await assert.rejects(decide(table, 17), /17 is not a string/);
assert.equal(newer(table, { ...table, version: table.version - 1 }), table);
assert.throws(() => newer(table, { ...table, problem: "other" }), /it is of problem other; give one of/);
assert.equal((await decide(table, "1", "constructor")).segment, "");
console.log(cases.length);
