import { expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { type ModernBehaviour, ModernPeer, says, tool } from './modern-peer.ts';
import { RawModern, tasksExtension } from './raw-modern.ts';

it('numbers in extensions of two servers keep their spelling', async () => {
  const extensions = '{"dev.example/x":{"version":1.0,"big":12345678901234567890,"list":[1.0]}}';
  const server: ModernBehaviour = {
    discovered: `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":${extensions}},"ttlMs":0,"cacheScope":"private"}`,
    lists: { 'tools/list': () => ({ tools: [] }) },
  };
  await using peer = await ModernPeer.start({ one: server, two: server });
  await using switchboard = await startSwitchboard(peer.configuration());
  const { text } = await new RawModern(switchboard.url).send('server/discover');
  expect(text).toContain('"version":1.0,"big":12345678901234567890');
});

it('extension settings may have any name', async () => {
  const extensions = { 'dev.example/x': { constructor: { a: 1 }, toString: 'text', valueOf: [1] } };
  await using peer = await ModernPeer.start({
    one: {
      capabilities: { tools: {}, extensions: { 'dev.example/x': {} } },
      lists: { 'tools/list': () => ({ tools: [] }) },
    },
    two: { capabilities: { tools: {}, extensions }, lists: { 'tools/list': () => ({ tools: [] }) } },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const { result } = await new RawModern(switchboard.url).request('server/discover');
  expect(result?.capabilities).toMatchObject({ extensions });
});

it('a tool result with a plain taskId member keeps it', async () => {
  const result = { ...says('done'), taskId: 'a ticket of ours' };
  await using peer = await ModernPeer.start({
    one: {
      capabilities: { tools: {}, extensions: { [tasksExtension]: {} } },
      lists: { 'tools/list': () => ({ tools: [tool('buy')] }) },
      answer: () => result,
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  expect((await new RawModern(switchboard.url).call('buy')).result).toEqual(result);
});

it('an interface that only one server has can be read by its own URI', async () => {
  const uri = 'ui://panel/main.html';
  await using peer = await ModernPeer.start({
    one: {
      capabilities: { resources: {} },
      lists: {
        'resources/list': () => ({ resources: [{ uri, name: 'panel' }] }),
        'resources/templates/list': () => ({ resourceTemplates: [] }),
      },
      answer: ({ params }) => ({
        resultType: 'complete',
        ttlMs: 0,
        cacheScope: 'private',
        contents: [{ uri: params?.uri, text: '<p>' }],
      }),
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  expect(await new RawModern(switchboard.url).request('resources/read', { uri })).toMatchObject({
    result: { contents: [{ uri: `ui://one/${uri}`, text: '<p>' }] },
  });
  expect((await peer.sees('one', 'resources/read')).headers['mcp-name']).toBe(uri);
});
