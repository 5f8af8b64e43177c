import { expect, it } from 'vitest';
import { freshDatabase } from '../../test/helpers/database.ts';
import { defaultProjectOf, openTestStore } from '../../test/helpers/store.ts';
import { moveCredentials } from '../config.ts';

const ref = (name: string) => `\${${name}}`;
const long = 'x'.repeat(65_537);
const server = (name: string, env: Record<string, string>) => ({
  ...{ name, transport: 'stdio' as const, description: '', enabled: true, settings: {} },
  config: { command: 'none', env },
});

it('a credential too long for a secret stays in place, is reported by name, and does not block others', async () => {
  await using database = await freshDatabase();
  {
    await using before = await openTestStore({ url: database.url });
    const servers = [
      server('big', { BIG_TOKEN: long, BIG_KEY: 'hunter2' }),
      server('box', { KEY: 'hunter3' }),
    ];
    await before.servers.create(await defaultProjectOf(before), servers, false);
  }
  await using store = await openTestStore({ url: database.url, moveCredentials });
  const id = await defaultProjectOf(store);
  const state = (await store.projects.get(id))!;
  expect(state.servers.map(({ config }) => config.env)).toEqual([
    { BIG_TOKEN: long, BIG_KEY: ref('BIG_KEY') },
    { KEY: ref('BOX_KEY') },
  ]);
  expect(store.told).toEqual([
    'warned: Plain-text credentials in the database were moved to secrets of project "default": those of big, box.',
    'warned: The server "big" of project "default" has a plain-text credential in the database that is too long for a secret (65536 bytes at most). Put it into a file that only you can read, and let the server read that file.',
  ]);
  await expect(store.servers.create(id, [server('new', { TOKEN: long })], false)).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringContaining(
      'The server "new" has a credential in its configuration that is too long',
    ),
  });
});
