import { expect } from 'vitest';
import { noteUri, unknownMember } from '../../fixtures/eras/lists.ts';
import { paramsOf, refusalOf, textOf } from '../messages.ts';
import type { Feature } from './feature.ts';

const deepValue = {
  words: 'ü€😀 "\\ \u2028',
  nested: { list: [1, -0.5, null, true, { deep: [[]] }], empty: {} },
  '': 'under no name',
};

export const callFeatures: Feature[] = [
  {
    name: 'a tool is called with its arguments',
    async run(scene) {
      await using peer = await scene.connect();
      expect(JSON.parse(textOf(await peer.callTool('echo', { say: 'hello' })))).toEqual({ say: 'hello' });
    },
  },
  {
    name: 'structured content and unknown members pass unchanged',
    async run(scene) {
      await using peer = await scene.connect();
      const result = await peer.callTool('echo', deepValue, { meta: { 'dev.example/said': 'hello' } });
      expect(result.structuredContent).toEqual(deepValue);
      expect(JSON.parse(textOf(result))).toEqual(deepValue);
      expect(result).toMatchObject({
        content: [{ annotations: { priority: 0.25 } }],
        _meta: { 'dev.example/heard': 'hello' },
        ...unknownMember,
      });
      await peer.toolNames();
      const listed = await peer.received.first(({ result: { tools } = {} }) => tools !== undefined);
      expect((listed.result!.tools as unknown[])[0]).toMatchObject({ name: 'echo', ...unknownMember });
    },
  },
  {
    name: "progress is reported under the caller's token, step by step",
    async run(scene) {
      await using peer = await scene.connect();
      // Not with a callback: SDK version 1 drops it if the result comes in the same chunk as the last progress.
      const progressToken = 'a token of mine';
      const result = await peer.callTool('count', { to: 5 }, { meta: { progressToken } });
      expect(textOf(result)).toBe('counted to 5');
      expect(paramsOf(peer, 'notifications/progress')).toEqual(
        [1, 2, 3, 4, 5].map((progress) => ({ progressToken, progress, total: 5 })),
      );
    },
  },
  {
    name: 'a tool reports its failure in its result',
    async run(scene) {
      await using peer = await scene.connect();
      const result = await peer.callTool('fail');
      expect(result.isError).toBe(true);
      expect(textOf(result)).toBe('It failed, as it always does');
    },
  },
  {
    name: 'a JSON-RPC error keeps its code, message and data',
    async run(scene) {
      await using peer = await scene.connect();
      expect(await refusalOf(peer, peer.callTool('break'))).toEqual({
        code: -32050,
        message: 'It is broken',
        data: { part: 'axle' },
      });
    },
  },
  {
    name: 'linked and embedded resources have URIs that can be read',
    async run(scene) {
      await using peer = await scene.connect();
      const uri = scene.uri(noteUri);
      const { content } = await peer.callTool('link');
      expect(content).toMatchObject([
        { type: 'resource_link', uri, name: 'note' },
        { type: 'resource', resource: { uri } },
        { type: 'text', text: noteUri },
      ]);
      expect(await peer.readResource(String(content[0]!.uri))).toMatchObject([{ uri }]);
    },
  },
];
