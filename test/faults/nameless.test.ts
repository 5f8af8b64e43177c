import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

it('items without a name are dropped, and delay neither their server nor others', async () => {
  await using switchboard = await startSwitchboard(
    {
      nameless: fixtureServer('lists-invalid-names'),
      workhorse: fixtureServer('answers-after-cancel'),
    },
    { naming: 'always' },
  );
  const session = await RawSession.open(switchboard.url);
  const names = async (kind: string, method: string) => {
    const answer = await session.request(method);
    expect(answer).toMatchObject({ result: { [kind]: expect.any(Array) } });
    return (answer.result![kind] as { name: string }[]).map(({ name }) => name);
  };
  expect(await names('tools', 'tools/list')).toEqual(
    expect.arrayContaining(['nameless__sound', 'workhorse__echo']),
  );
  expect(await names('resources', 'resources/list')).toEqual(['sound']);
  expect(await names('resourceTemplates', 'resources/templates/list')).toEqual(['notes']);
  expect(await names('prompts', 'prompts/list')).toEqual(['nameless__sound']);
  expect(await session.callText('workhorse__echo', { text: 'x' })).toContain('"text":"x"');

  // Its log messages have levels that no client can request.
  await session.request('logging/setLevel', { level: 'error' });
  expect(await session.callText('nameless__sound')).toBe('done');
  expect(await session.callText('nameless__sound')).toBe('done');

  const { baseUrl, events } = switchboard;
  const { lines } = (await (
    await fetch(`${baseUrl}/api/v1/projects/default/servers/nameless/logs`)
  ).json()) as {
    lines: { text: string }[];
  };
  expect(JSON.stringify(lines)).toContain('one of its tools is left out: its name is not a string');
  expect(events.filter(({ event }) => event === 'warning')).toEqual([]);
});
