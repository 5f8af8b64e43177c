import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { openTestStore, storeForTests } from '../../test/helpers/store.ts';
import type { NewAuditEntry } from './audit/append.ts';
import { type AuditRow, hashOf } from './audit/entry.ts';
import type { AuditFilter } from './audit.ts';

const { store, newProject } = await storeForTests();

const ci = { kind: 'key', id: 'id of ci', name: 'ci', address: '192.0.2.1' } as const;
const local = { kind: 'local', id: 'local', name: 'local user', address: undefined } as const;

function denial(more: Partial<NewAuditEntry> = {}): NewAuditEntry {
  return { actor: ci, action: 'call', outcome: 'denied', ...more };
}

/** A store of its own with some entries, and a client without the triggers that protect them. */
async function logOf(count: number) {
  const database = await freshDatabase();
  const store = await openTestStore({ url: database.url });
  await store.audit.append(
    Array.from({ length: count }, (_, index) => denial({ subject: `tool ${index + 1}` })),
  );
  const client = await connectTo(database.name);
  await client.query('SET session_replication_role = replica');
  return {
    ...{ database, store, client },
    async [Symbol.asyncDispose]() {
      await client.end();
      await store[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function rowsOf(client: pg.Client): Promise<AuditRow[]> {
  const { rows } = await client.query('SELECT * FROM kb.audit_log ORDER BY seq');
  return rows.map((row) => ({ ...row, seq: Number(row.seq) }));
}

describe('the audit log', () => {
  it('is a chain that anyone can verify', async () => {
    await using log = await logOf(0);
    const empty = { entries: 0, firstSeq: undefined, lastSeq: undefined, head: '00'.repeat(32) };
    expect(await log.store.audit.verify()).toEqual(empty);
    await log.store.audit.append([]);
    await log.store.audit.append([
      denial({
        subject: 'half \ud800, NUL \0',
        count: 3,
        ruleId: 'r1',
        after: { z: [1.5, -0, 1e21], a: 'ü\0' },
      }),
      denial({ actor: local, action: 'operate', outcome: 'refused', before: ['\udc00', null], after: null }),
    ]);
    const rows = await rowsOf(log.client);
    expect(rows).toMatchObject([
      {
        ...{ seq: 1, actor_kind: 'key', actor_id: 'id of ci', actor_name: 'ci', address: '192.0.2.1' },
        ...{ action: 'call', outcome: 'denied', subject: 'half \ufffd, NUL ', count: 3, rule_id: 'r1' },
        ...{ before: null, after: { a: 'ü', z: [1.5, 0, 1e21] }, previous: Buffer.alloc(32) },
      },
      {
        ...{ seq: 2, actor_kind: 'local', address: null, action: 'operate', outcome: 'refused', count: 1 },
        ...{ before: ['\ufffd', null], after: null, previous: rows[0]!.hash, rule_id: null },
      },
    ]);
    const head = rows[1]!.hash.toString('hex');
    expect(await log.store.audit.verify()).toEqual({ entries: 2, firstSeq: 1, lastSeq: 2, head });
  });

  it('has one chain, whoever writes to it', async () => {
    await using database = await freshDatabase();
    await using one = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url });
    const writes = [one, other].flatMap((store, number) =>
      Array.from({ length: 50 }, (_, index) =>
        store.by({ ...ci, id: `store ${number}` }).access.createGroup({ name: `group ${number} ${index}` }),
      ),
    );
    await Promise.all(writes);
    expect(await one.audit.verify()).toMatchObject({ entries: 100, firstSeq: 1, lastSeq: 100 });
    expect(await one.audit.verify()).not.toHaveProperty('problem');
    const { entries } = await one.audit.list({ principal: 'store 1', limit: 1_000 });
    expect(entries).toHaveLength(50);
  });

  it.each([
    ['changed', "UPDATE kb.audit_log SET subject = 'another' WHERE seq = 3", 3, 'content was changed'],
    ['redated', "UPDATE kb.audit_log SET at = at - interval '1 ms' WHERE seq = 3", 3, 'content was changed'],
    ['disconnected', "UPDATE kb.audit_log SET previous = '' WHERE seq = 3", 3, 'does not follow entry 2'],
    ['removed', 'DELETE FROM kb.audit_log WHERE seq = 3', 4, 'the entries between 2 and 4 are missing'],
    ['removed at the start', 'DELETE FROM kb.audit_log WHERE seq < 3', 3, 'between 0 and 3 are missing'],
    ['removed at the end', 'DELETE FROM kb.audit_log WHERE seq > 3', 3, 'which has the number 5'],
    ['removed altogether', 'DELETE FROM kb.audit_log', 0, 'which has the number 5'],
    [
      'inserted',
      `UPDATE kb.audit_log SET seq = seq + 10 WHERE seq > 3; UPDATE kb.audit_log SET seq = seq - 9 WHERE seq > 3;
       INSERT INTO kb.audit_log SELECT (jsonb_populate_record(log, '{"seq": 4}')).* FROM kb.audit_log AS log WHERE seq = 3`,
      4,
      'does not follow entry 3',
    ],
    [
      'added',
      'INSERT INTO kb.audit_log SELECT (jsonb_populate_record(log, \'{"seq": 6}\')).* FROM kb.audit_log AS log WHERE seq = 5',
      6,
      'does not follow entry 5',
    ],
    [
      'reordered',
      'UPDATE kb.audit_log SET seq = seq + 10 WHERE seq IN (3, 4); UPDATE kb.audit_log SET seq = 17 - seq WHERE seq > 10',
      3,
      'does not follow entry 2',
    ],
  ])('shows that an entry was %s', async (_what, statements, seq, why) => {
    await using log = await logOf(5);
    expect(await log.store.audit.verify()).not.toHaveProperty('problem');
    await log.client.query(statements);
    expect((await log.store.audit.verify()).problem).toEqual({ seq, why: expect.stringContaining(why) });
  });

  it('shows that an entry was rewritten together with its hash', async () => {
    await using log = await logOf(5);
    const { previous, hash: _, ...content } = (await rowsOf(log.client))[2]!;
    const rewritten = { ...content, subject: 'another' };
    await log.client.query('UPDATE kb.audit_log SET subject = $1, hash = $2 WHERE seq = 3', [
      rewritten.subject,
      hashOf(previous, rewritten),
    ]);
    expect((await log.store.audit.verify()).problem).toEqual({
      seq: 4,
      why: expect.stringContaining('does not follow entry 3: that one was changed'),
    });
  });

  it('only grows', async () => {
    await using log = await logOf(2);
    await using client = await connectTo(log.database.name);
    for (const statement of [
      "UPDATE kb.audit_log SET subject = ''",
      'DELETE FROM kb.audit_log',
      'TRUNCATE kb.audit_log',
      'DELETE FROM kb.audit_head',
      'TRUNCATE kb.audit_head',
      'UPDATE kb.audit_anchor SET seq = 1',
      'DELETE FROM kb.audit_anchor',
      'TRUNCATE kb.audit_anchor',
    ]) {
      await expect(client.query(statement)).rejects.toThrow('is refused: the audit log only grows');
    }
    await client.query("SET switchboard.audit_retention = 'on'");
    for (const statement of ["UPDATE kb.audit_log SET subject = ''", 'TRUNCATE kb.audit_log']) {
      await expect(client.query(statement)).rejects.toThrow('is refused: the audit log only grows');
    }
    expect(await log.store.audit.verify()).toMatchObject({ entries: 2 });
  });

  it('loses old entries only, and can still be verified', async () => {
    await using log = await logOf(5);
    const redate = async (days: readonly number[]) => {
      let previous: Buffer = Buffer.alloc(32);
      for (const [index, row] of (await rowsOf(log.client)).entries()) {
        const at = new Date(row.at.getTime() - days[index]! * 24 * 60 * 60 * 1_000);
        const hash = hashOf(previous, { ...row, at });
        await log.client.query('UPDATE kb.audit_log SET at = $1, previous = $2, hash = $3 WHERE seq = $4', [
          at,
          previous,
          hash,
          row.seq,
        ]);
        previous = hash;
      }
      await log.client.query('UPDATE kb.audit_head SET hash = $1', [previous]);
    };
    // The fourth one stays: the third one, before it, is young.
    await redate([400, 400, 0, 400, 0]);
    const { head } = await log.store.audit.verify();
    expect(await log.store.audit.deleteExpired(500)).toBe(0);
    expect(await log.store.deleteExpired()).toBe(2);
    expect(await log.store.audit.verify()).toEqual({ entries: 3, firstSeq: 3, lastSeq: 5, head });
    expect(await log.store.audit.deleteExpired(0)).toBe(3);
    expect(await log.store.audit.verify()).toEqual({
      entries: 0,
      firstSeq: undefined,
      lastSeq: undefined,
      head,
    });
    await log.store.audit.append([denial()]);
    expect(await log.store.audit.verify()).toMatchObject({ entries: 1, firstSeq: 6, lastSeq: 6 });
    await log.client.query('DELETE FROM kb.audit_log');
    expect((await log.store.audit.verify()).problem).toMatchObject({ seq: 5 });
  });

  it('is kept for as many days as the store is told', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url, auditDays: 0 });
    await store.audit.append([denial(), denial()]);
    expect(await store.deleteExpired()).toBe(2);
  });
});

describe('entries', () => {
  it('are found by what they are about, newest first, and are paged', async () => {
    const [one, other] = [
      { id: await newProject(), name: 'one' },
      { id: await newProject(), name: 'other' },
    ];
    const first = (await store.audit.list({ limit: 1 })).entries[0]!.seq;
    await store.audit.append([
      denial({ project: one, subject: '1' }),
      denial({ project: other, subject: '2', action: 'operate' }),
      denial({ actor: local, subject: '3', action: 'key.create', outcome: 'done' }),
      denial({ actor: local, subject: '4', action: 'key.revoke', outcome: 'done', project: one }),
      denial({ subject: '5', action: 'keyless', outcome: 'refused' }),
    ]);
    const subjects = async (filter: AuditFilter) => {
      const { entries } = await store.audit.list({ ...filter, limit: 100 });
      const exported: (string | null)[] = [];
      for await (const { seq, subject } of store.audit.each(filter)) if (seq > first) exported.push(subject);
      const found = entries.filter(({ seq }) => seq > first).map(({ subject }) => subject);
      expect(exported.toReversed()).toEqual(found);
      return found.join('');
    };
    const [newest] = (await store.audit.list({ limit: 1 })).entries;
    const later = new Date(newest!.at.getTime() + 1);
    expect(await subjects({})).toBe('54321');
    expect(await subjects({ project: one.id })).toBe('41');
    expect(await subjects({ project: 'none' })).toBe('');
    expect(await subjects({ principal: 'local' })).toBe('43');
    expect(await subjects({ action: 'key' })).toBe('43');
    expect(await subjects({ action: 'key.create' })).toBe('3');
    expect(await subjects({ outcome: 'denied' })).toBe('21');
    expect(await subjects({ outcome: 'done', project: one.id })).toBe('4');
    expect(await subjects({ since: later })).toBe('');
    expect(await subjects({ since: newest!.at, until: later })).toBe('54321');

    const seen: (string | null)[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.audit.list({ limit: 2, cursor });
      seen.push(...page.entries.filter(({ seq }) => seq > first).map(({ subject }) => subject));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen.join('')).toBe('54321');
    await expect(store.audit.list({ limit: 2, cursor: 'nonsense' })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  it('are exported in pages, and only once', async () => {
    await using log = await logOf(2_500);
    const seen: number[] = [];
    for await (const { seq } of log.store.audit.each()) seen.push(seq);
    expect(seen).toEqual(Array.from({ length: 2_500 }, (_, index) => index + 1));
    expect(await log.store.audit.verify()).toMatchObject({ entries: 2_500 });
    expect(await log.store.audit.verify()).not.toHaveProperty('problem');
  });

  it('are cut field by field if they are too large', async () => {
    await using log = await logOf(0);
    const long = 'x'.repeat(20_000);
    const deep = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000));
    await log.store.audit.append([
      denial({ after: { name: 'box', config: { command: long } }, before: [long] }),
      denial({ after: Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`${index}`, 'yes'])) }),
      denial({ after: 'ü'.repeat(10_000) }),
      denial({ after: { name: 'deep', value: deep } }),
    ]);
    const cut = expect.stringMatching(/^x+… \(20000 characters, SHA-256 \w{16}…\)$/);
    expect(await rowsOf(log.client)).toMatchObject([
      { after: { name: 'box', config: { command: cut } }, before: [cut] },
      { after: { 0: 'yes', '…': { more: 2_600 } } },
      { after: expect.stringMatching(/^ü+… \(10000 characters/) },
      { after: { name: 'deep', value: expect.any(Array) } },
    ]);
    expect(await log.store.audit.verify()).not.toHaveProperty('problem');
  });
});
