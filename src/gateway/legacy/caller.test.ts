import { expect, it } from 'vitest';
import { localUser } from '../../identity/principal.ts';
import type { InFlight } from '../responder.ts';
import type { Scope } from '../scope.ts';
import { type ClientStream, Session } from './caller.ts';

it('a session has at most ten thousand requests in flight', () => {
  const facts = { capabilities: {}, name: 'x', version: '2025-11-25', clientInfo: {} } as const;
  const session = new Session('s', localUser(), facts, {} as Scope, {} as ClientStream);
  const requests = Array.from(
    { length: 10_001 },
    (_, id) => ({ id, group: undefined }) as unknown as InFlight,
  );
  expect(requests.filter((request) => session.begin(request))).toHaveLength(10_000);
  expect(session.isFull).toBe(true);
  expect(session.finish(requests[7]!)).toBe(true);
  expect(session.isFull).toBe(false);
  expect(session.begin(requests[10_000]!)).toBe(true);
});
