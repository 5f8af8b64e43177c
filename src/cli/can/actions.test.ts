import { expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';

const yes = { allowed: true, action: 'call', role: 'caller', rule: null, reason: 'ci has the role caller.' };
const no = {
  ...{ allowed: false, action: 'call', role: 'caller', reason: 'A rule denies it.' },
  rule: { id: 'r12345678', text: 'deny everyone tool */delete_*' },
};

it('says yes or no, with the exit code', async () => {
  const path = 'GET /can?principal=ci&action=call&kind=tool&name=delete_it';
  expect(await runWith({ [path]: yes }, 'can', 'ci', 'call', 'delete_it')).toMatchObject({
    ...{ code: 0, stdout: 'yes: ci has the role caller.\nrole: caller\n' },
  });
  expect(await runWith({ [path]: no }, 'can', 'ci', 'call', 'delete_it')).toMatchObject({
    ...{
      code: 1,
      stdout: 'no: A rule denies it.\nrole: caller\nrule: deny everyone tool */delete_* (r12345678)\n',
    },
  });
});

it('is about a key', async () => {
  const group = await runWith({}, 'can', 'group:x', 'call');
  expect(group).toMatchObject({ code: 2, requests: [] });
  const keys = [{ id: 'k1', secrets: [{ id: 'yaKg0WTumPW6' }] }];
  const answers = { 'GET /keys': { keys }, 'GET /can?principal=k1&action=call': yes };
  for (const id of ['sbk_yaKg0WTumPW6', 'yaKg0WTumPW6']) {
    expect((await runWith(answers, 'can', id, 'call')).code).toBe(0);
  }
});

it.each([
  [['operate', '-P', 'research'], 'action=operate&project=research'],
  [['see', 'prompt:greet'], 'action=see&kind=prompt&name=greet'],
  [['see', 'file:///a/{b}'], 'action=see&kind=resource&name=file%3A%2F%2F%2Fa%2F%7Bb%7D'],
  [['call', 'resource:x:y'], 'action=call&kind=resource&name=x%3Ay'],
  [['call', 'delete', '--server', 'github'], 'action=call&server=github&kind=tool&name=delete'],
])('asks about %s', async (words, query) => {
  const { code } = await runWith({ [`GET /can?principal=ci&${query}`]: yes }, 'can', 'ci', ...words);
  expect(code).toBe(0);
});
