import { expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';

const talker = `console.error(process.argv.slice(1), process.env.API_TOKEN, process.env.GIVEN, process.env.COLOUR);`;

it('masks credentials of the configuration file in logs and errors, including those from the environment', async () => {
  const [literal, argument, inherited] = ['literal-hunter2', 'argument-hunter2', 'inherited-hunter2'];
  await using switchboard = await startSwitchboard(
    {
      talker: {
        command: process.execPath,
        args: ['-e', talker, '--', `--password=${argument}`],
        // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how variables are written
        env: { API_TOKEN: literal, GIVEN: '${MASKED_FILE_TOKEN}', COLOUR: 'ultramarine' },
      },
    },
    { startup: 'sequential' },
    { database: 'none', env: { MASKED_FILE_TOKEN: inherited } },
  );
  await switchboard.event(({ name, error }) => name === 'talker' && typeof error === 'string');
  const address = `${switchboard.baseUrl}/api/v1/projects/default/servers/talker`;
  const shown = await Promise.all([address, `${address}/logs`].map(async (url) => (await fetch(url)).text()));
  for (const text of shown) {
    expect(text).toContain('ultramarine');
    for (const secret of [literal, argument, inherited]) expect(text).not.toContain(secret);
  }
});
