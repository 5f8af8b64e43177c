import { it } from 'vitest';
import { trySchemathesis } from './schemathesis.ts';

/** What takes longest to make up. */
const elaborate = [
  'createServer',
  'changeServer',
  'createHosted',
  'changeHosted',
  'installProduct',
  'putSecret',
];

it('the API answers schemathesis as its document says', (test) =>
  trySchemathesis(test, {
    flags: [
      ...['--phases', 'fuzzing', '--max-examples', '1'],
      ...elaborate.flatMap((operation) => ['--exclude-operation-id', operation]),
    ],
    exchanges: 20,
    operations: 3,
  }));
