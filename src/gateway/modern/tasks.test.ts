import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { publicTaskId, requireTasks, supportsTasks, taskOf } from './tasks.ts';

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
        expect(taskOf(publicTaskId(address))).toEqual(address);
      }),
    );
  });

  it('has only one spelling', () => {
    const id = publicTaskId({ project: 'lab', server: 'lab', number: 1, own: '1' });
    for (const other of [`${id}=`, `${id} `, `${id}A`, id.replace('sb-task.', 'SB-task.'), id.slice(0, -1)])
      expect(taskOf(other)).toBeUndefined();
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
        const task = taskOf(`sb-task.${Buffer.from(JSON.stringify(list)).toString('base64url')}`);
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
