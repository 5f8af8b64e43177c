import type { Database, Queries } from '../database.ts';
import { hashOf } from './entry.ts';

const PAGE = 2_000;

export interface Verification {
  entries: number;
  /** Of the first and the last entry; undefined if there is none. */
  firstSeq: number | undefined;
  lastSeq: number | undefined;
  /** The hash of the last entry, hexadecimal: whoever notes it elsewhere can prove later that nothing before it was changed. */
  head: string;
  /** The first one. */
  problem?: { seq: number; why: string };
}

interface Link {
  seq: number;
  hash: Buffer;
}

/** Reads the log from the last removed entry to the newest, in one snapshot. */
export function verify(database: Database): Promise<Verification> {
  return database.readTogether(async (queries) => {
    const anchor: Link = await queries
      .selectFrom('audit_anchor')
      .select(['seq', 'hash'])
      .executeTakeFirstOrThrow();
    const head: Link = await queries
      .selectFrom('audit_head')
      .select(['seq', 'hash'])
      .executeTakeFirstOrThrow();
    return follow(queries, anchor, head);
  });
}

async function follow(queries: Queries, anchor: Link, head: Link): Promise<Verification> {
  let entries = 0;
  let firstSeq: number | undefined;
  let last = anchor;
  let problem: Verification['problem'];
  for (let cursor: number | undefined; ; ) {
    const rows = await queries
      .selectFrom('audit_log')
      .selectAll()
      .$if(cursor !== undefined, (query) => query.where('seq', '>', cursor!))
      .orderBy('seq')
      .limit(PAGE)
      .execute();
    for (const { previous, hash, ...entry } of rows) {
      const { seq } = entry;
      const why =
        brokenAt(last, seq, previous) ?? (hashOf(previous, entry).equals(hash) ? undefined : changed);
      if (why !== undefined) problem ??= { seq, why };
      firstSeq ??= seq;
      entries++;
      last = { seq, hash };
    }
    if (rows.length < PAGE) break;
    cursor = last.seq;
  }
  if (last.seq !== head.seq || !last.hash.equals(head.hash)) {
    const why = `the newest entry is not the one that was written last, which has the number ${head.seq}`;
    problem ??= { seq: last.seq, why };
  }
  return {
    ...{ entries, firstSeq, lastSeq: entries === 0 ? undefined : last.seq, head: last.hash.toString('hex') },
    ...(problem === undefined ? {} : { problem }),
  };
}

const changed = 'its content was changed after it was written';

function brokenAt(last: Link, seq: number, previous: Buffer): string | undefined {
  if (seq !== last.seq + 1) return `the entries between ${last.seq} and ${seq} are missing`;
  if (previous.equals(last.hash)) return undefined;
  return `it does not follow entry ${last.seq}: that one was changed, or one of the two was inserted or moved`;
}
