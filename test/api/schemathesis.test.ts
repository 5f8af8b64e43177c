import { it } from 'vitest';
import { trySchemathesis } from './schemathesis.ts';

/** The slowest to generate. */
const elaborate = [
  'createServer',
  'changeServer',
  'createHosted',
  'changeHosted',
  'installProduct',
  'putSecret',
];

it('the API responds to schemathesis as documented', (test) =>
  trySchemathesis(test, {
    flags: [
      ...['--phases', 'fuzzing', '--max-examples', '1'],
      ...elaborate.flatMap((operation) => ['--exclude-operation-id', operation]),
    ],
    exchanges: 20,
    operations: 3,
  }));
