import { describe, expect, it } from 'vitest';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { calls, resultsIn, says } from './messages-api.ts';
import { openScene } from './scene.ts';

describe('an agent in a project of a running Switchboard', () => {
  it('has the tools of the project under their names there, and calls them', async () => {
    await using witness = await Witness.open();
    const mcpServers = {
      a: fixtureServer('echoes-requests', {}, 'a', 'look', 'only_a'),
      b: fixtureServer('echoes-requests', {}, 'b', 'look'),
      box: fixtureServer('toolbox', witness.env('box')),
    };
    await using switchboard = await startSwitchboard(mcpServers);
    const script = [calls({ name: 'b__look' }, { name: 'wait', id: 'second' }), says('done')];
    await using scene = await openScene(script, () => ({ url: `${switchboard.baseUrl}/mcp/default` }));
    const chat = scene.agent.chat('look');
    await witness.sees('box', 'waiting');
    witness.tell('box', 'go');
    const result = await chat;
    const owners = Object.fromEntries(scene.agent.tools().map(({ name, server }) => [name, server]));
    expect(owners).toMatchObject({ a__look: 'a', b__look: 'b', only_a: 'a', echo: 'box' });
    expect(result.toolCalls).toMatchObject([
      { name: 'b__look', server: 'b', isError: false },
      { name: 'wait', server: 'box', content: [{ type: 'text', text: 'waited' }] },
    ]);
    expect(JSON.stringify(resultsIn(scene.api.requests.items[1]!)[0])).toContain('\\"name\\":\\"b\\"');
    expect(scene.warnings).toEqual([]);
  });

  it('cancels its call at the server when the chat is cancelled', async () => {
    await using witness = await Witness.open();
    const mcpServers = { slow: fixtureServer('hangs-in-call', witness.env('slow')) };
    await using switchboard = await startSwitchboard(mcpServers);
    await using scene = await openScene([calls({ name: 'hang' })], () => ({ url: switchboard.url }));
    const user = new AbortController();
    const chat = scene.agent.chat('hang', { signal: user.signal });
    await witness.sees('slow', 'tools/call');
    user.abort(new Error('enough'));
    await expect(chat).rejects.toThrow('enough');
    await witness.sees('slow', 'notifications/cancelled');
  });

  it('fails without a Switchboard', async () => {
    await using scene = await openScene([], () => ({ url: 'http://127.0.0.1:1/mcp' }));
    await expect(scene.agent.chat('hello')).rejects.toMatchObject({ code: 'server_start_failed' });
  });
});
