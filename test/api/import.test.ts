import { describe, expect, it } from 'vitest';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const many = <Item>(item: (index: number) => Item) =>
  Array.from({ length: 1_001 }, (_, index) => item(index));
const entry = { command: 'x' };

/** Other requests reject these too. */
const refused: Record<string, object> = {
  'a server by the name of .': { '.': entry },
  'a server by the name of ..': { '..': entry },
  'a command of 5000 characters': { long: { command: 'x'.repeat(5_000) } },
  'more than 1000 arguments': { long: { ...entry, args: many(() => 'x') } },
  'more than 1000 variables': {
    long: { ...entry, env: Object.fromEntries(many((index) => [`A${index}`, 'x'])) },
  },
  'more than 1000 servers': Object.fromEntries(many((index) => [`server-${index}`, entry])),
};

describe('an import rejects', () => {
  let switchboard: RunningSwitchboard;
  setUp(async (use) => {
    switchboard = use(await startSwitchboard({}, {}, { database: 'shared' }));
  });

  it.each(Object.entries(refused))('%s', async (_what, mcpServers) => {
    const place = `${switchboard.baseUrl}/api/v1/projects/default`;
    const headers = { 'content-type': 'application/json' };
    const { status, text } = await exchange(`${place}/import`, { headers, body: { mcpServers } });
    expect(status, text).toBe(400);
  });
});
