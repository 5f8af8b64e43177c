import { it } from 'vitest';
import { trySchemathesis } from './schemathesis.ts';

it('the API answers schemathesis as its document says', (test) =>
  trySchemathesis(test, {
    flags: ['--phases', 'fuzzing', '--max-examples', '1'],
    exchanges: 20,
    operations: 3,
  }));
