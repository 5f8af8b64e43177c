import { it } from 'vitest';
import { trySchemathesis } from './schemathesis.ts';

it('the API responds to all requests of schemathesis as documented', (test) =>
  trySchemathesis(test, { flags: [], exchanges: 500, operations: 18 }));
