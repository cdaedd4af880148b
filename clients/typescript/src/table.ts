/** What `superarm learn --publish` and `GET /v1/problems/{name}/table` give. */
export interface SlateTable {
  problem: string;
  version: number;
  salt: string;
  arms: string[];
  slates: Record<string, number[][]>;
  control: { share: number; slates: Record<string, number[][]> };
}

/** A slate, and where it comes from: log `version`, `segment` and `row` with the clicks. Row -1 is the control slate. */
export interface Served { arms: string[]; row: number; segment: string; version: number }

/** The slate of a decision: a function of the table and the id alone, the same in every language. */
export async function decide(table: SlateTable, id: string, segment = ""): Promise<Served> {
  if (typeof id !== "string") throw new TypeError(`id: ${String(id)} is not a string`);
  const own = Object.hasOwn(table.slates, segment) ? segment : "";
  const rows = table.slates[own] ?? [];
  const text = new TextEncoder().encode(`${table.salt}.${id}`);
  const word = new DataView(await crypto.subtle.digest("SHA-256", text));
  const control = word.getUint32(4) < table.control.share * 2 ** 32;
  const row = control ? -1 : Math.floor((word.getUint32(0) * rows.length) / 2 ** 32);
  const slate = control ? table.control.slates[Object.hasOwn(table.control.slates, own) ? own : ""]?.[0] : rows[row];
  return { arms: (slate ?? []).map((j) => table.arms[j]!), row, segment: own, version: table.version };
}

/** Of two tables of a problem the newer one, whichever arrived last: caches may deliver an older version later. */
export function newer(one: SlateTable, other: SlateTable): SlateTable {
  if (one.problem !== other.problem) {
    throw new TypeError(`table: it is of problem ${other.problem}; give one of ${one.problem}`);
  }
  return other.version > one.version ? other : one;
}
