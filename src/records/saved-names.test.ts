import { expect, it } from 'vitest';
import type { Scope } from '../gateway/scope.ts';
import { SavedNames } from './saved-names.ts';

it('tries once, and not once per change, while the database is unavailable', async () => {
  let tries = 0;
  let fail = (): void => {};
  const failed = new Promise<void>((resolve) => {
    fail = resolve;
  });
  const save = async () => {
    tries++;
    setImmediate(fail);
    throw new Error('away');
  };
  const scope = {
    project: undefined,
    formerNames: { isChanged: true, newest: () => [] },
  } as unknown as Scope;
  const names = new SavedNames({
    table: { all: async () => [], save },
    scopes: { all: scope, of: () => undefined },
    redact: (_scope: Scope, text: string) => text,
    warned() {},
  });
  for (let change = 0; change < 50; change++) {
    scope.formerNames.isChanged = true;
    names.update(scope);
  }
  await failed;
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(tries).toBe(1);
});
