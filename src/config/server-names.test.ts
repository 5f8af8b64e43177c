import { expect, it } from 'vitest';
import { type NamedServer, nameClashes } from './server-names.ts';

it.each<[why: string, servers: NamedServer[]]>([
  ['only names are given', [{ name: 'a' }, { name: 'b' }]],
  [
    'prefixes differ',
    [
      { name: 'a', prefix: 'x' },
      { name: 'b', prefix: 'y' },
    ],
  ],
  ['the prefix is its own name', [{ name: 'a', prefix: 'a' }, { name: 'b' }]],
  [
    'the group has the name of a member',
    [
      { name: 'a', group: 'a' },
      { name: 'b', group: 'a' },
    ],
  ],
  ['only the case differs', [{ name: 'a', prefix: 'B' }, { name: 'b' }]],
])('names do not conflict if %s', (_why, servers) => {
  expect(nameClashes(servers)).toEqual([]);
});

it.each<[servers: NamedServer[], ...clashes: string[]]>([
  [[{ name: 'a', group: 'b' }, { name: 'b' }], 'group of a: name of b'],
  [[{ name: 'a', prefix: 'b' }, { name: 'b' }], 'prefix of a: name of b'],
  [
    [
      { name: 'a', prefix: 'x' },
      { name: 'b', prefix: 'x' },
    ],
    'prefix of a: prefix of b',
    'prefix of b: prefix of a',
  ],
  [
    [
      { name: 'a', prefix: 'team' },
      { name: 'b', group: 'team' },
    ],
    'prefix of a: group of b',
  ],
  [[{ name: 'a', prefix: 'team', group: 'team' }], 'prefix of a: group of a'],
  [[{ name: 'a', prefix: 'my_server' }, { name: 'my.server' }], 'prefix of a: name of my.server'],
])('%j conflict', (servers, ...clashes) => {
  const found = nameClashes(servers).map(
    ({ server, key, other, as }) => `${key} of ${server}: ${as} of ${other}`,
  );
  expect(found).toEqual(clashes);
});
