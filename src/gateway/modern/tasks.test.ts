import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { localUser, Principal } from '../../identity/principal.ts';
import { requireTasks, supportsTasks, TaskIds } from './tasks.ts';

const ids = new TaskIds(Buffer.from('key'));
const local = localUser();
const { permissions } = local;
const ci = new Principal('key', 'ci', 'ci', permissions);
const other = new Principal('key', 'other', 'other', permissions);

describe('the id of a task', () => {
  it('contains the replica and its own id', () => {
    const addresses = fc.record({
      project: fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
      server: fc.string(),
      number: fc.integer({ min: 1, max: 64 }),
      own: fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
    });
    fc.assert(
      fc.property(addresses, (address) => {
        for (const owner of [local, ci]) expect(ids.read(ids.issue(address, owner), owner)).toEqual(address);
      }),
    );
  });

  it('has only one spelling', () => {
    for (const owner of [local, ci]) {
      const id = ids.issue({ project: 'lab', server: 'lab', number: 1, own: '1' }, owner);
      const spellings = [`${id}=`, `${id} `, `${id}A`, id.replace('sb-task.', 'SB-task.'), id.slice(0, -1)];
      for (const spelling of [...spellings, `${id}.`, `${id}.x`])
        expect(ids.read(spelling, owner)).toBeUndefined();
    }
  });

  it('is unknown to all but its owner', () => {
    const address = { project: 'lab', server: 'lab', number: 1, own: '1' };
    const id = ids.issue(address, ci);
    expect(ids.read(id, other)).toBeUndefined();
    expect(ids.read(id, local)).toBeUndefined();
    expect(ids.read(ids.issue(address, local), ci)).toBeUndefined();
    expect(new TaskIds(Buffer.from('forged')).read(id, ci)).toBeUndefined();
  });

  it('is invalid if its parts are', () => {
    const parts = fc.array(
      fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.object(), fc.boolean()),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(parts, (list) => {
        const task = ids.read(`sb-task.${Buffer.from(JSON.stringify(list)).toString('base64url')}`, local);
        if (task === undefined) return;
        expect(task).toEqual({
          project: expect.any(String),
          server: expect.any(String),
          number: expect.any(Number),
          own: expect.any(String),
        });
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a client that supports tasks', () => {
  it('declares it in its capabilities', () => {
    expect(supportsTasks({ extensions: { 'io.modelcontextprotocol/tasks': {} } })).toBe(true);
    for (const capabilities of [undefined, {}, { tasks: {} }, { extensions: null }, { extensions: {} }])
      expect(supportsTasks(capabilities)).toBe(false);
    expect(() => requireTasks({})).toThrow('io.modelcontextprotocol/tasks');
  });
});
