import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';

const inspector = join(
  import.meta.dirname,
  '../peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
);

let home: string;
let switchboard: RunningSwitchboard;

setUp(async (use) => {
  home = use(await temporaryFolder()).path;
  switchboard = use(
    await startSwitchboard({
      everything: referenceServer('everything'),
      notes: fixtureServer('notes'),
    }),
  );
});

describe.each(['/mcp', '/sse'])("the inspector's command line at %s", (path) => {
  const inspect = async (...words: string[]): Promise<object> => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [inspector, '--cli', `${switchboard.baseUrl}${path}`, '--quiet', '--format', 'json', ...words],
      { env: { ...process.env, HOME: home } },
    );
    return (JSON.parse(stdout) as { result: object }).result;
  };

  it('lists tools and calls one', async () => {
    expect(await inspect('--method', 'tools/list')).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'get-sum' })]),
    });
    const words = ['--method', 'tools/call', '--tool-name', 'get-sum', '--tool-arg', 'a=2', 'b=3'];
    expect(await inspect(...words)).toMatchObject({ content: [{ text: 'The sum of 2 and 3 is 5.' }] });
  });

  it('lists resources and reads one', async () => {
    const uri = 'resource://notes/note://todo';
    expect(await inspect('--method', 'resources/list')).toMatchObject({
      resources: expect.arrayContaining([expect.objectContaining({ uri })]),
    });
    expect(await inspect('--method', 'resources/read', '--uri', uri)).toMatchObject({ contents: [{ uri }] });
  });

  it('gets a prompt', async () => {
    const words = ['--method', 'prompts/get', '--prompt-name', 'args-prompt', '--prompt-args', 'city=Bern'];
    expect(await inspect(...words)).toMatchObject({
      messages: [{ content: { text: "What's weather in Bern?" } }],
    });
  });
});
