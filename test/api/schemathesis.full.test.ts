import { it } from 'vitest';
import { trySchemathesis } from './schemathesis.ts';

it('the API answers all that schemathesis makes up as its document says', (test) =>
  trySchemathesis(test, { flags: [], exchanges: 500, operations: 18 }));
