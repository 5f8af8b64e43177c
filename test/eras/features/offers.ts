import { expect } from 'vitest';
import { askedUri, noteUri } from '../../fixtures/eras/lists.ts';
import { refusalOf } from '../messages.ts';
import type { Feature } from './feature.ts';

export const offerFeatures: Feature[] = [
  {
    name: 'tools, resources, templates and prompts are listed',
    async run(scene) {
      await using peer = await scene.connect();
      expect(await peer.toolNames()).toEqual(
        expect.arrayContaining(['echo', 'count', 'ask_name', 'grow', 'break']),
      );
      expect(await peer.resourceUris()).toEqual([noteUri, askedUri].map(scene.uri));
      expect(await peer.templateUris()).toEqual([scene.uri('test://item/{id}')]);
      expect(await peer.promptNames()).toEqual(['greet', 'ask_prompt']);
    },
  },
  {
    name: 'a resource is read by its public URI and by the URI of the server',
    async run(scene) {
      await using peer = await scene.connect();
      const [note] = await peer.readResource(scene.uri(noteUri));
      expect(note).toMatchObject({ uri: scene.uri(noteUri), mimeType: 'text/plain' });
      expect(note!.text).toContain('test://note, version ');
      for (const uri of [scene.uri('test://item/7'), 'test://item/7']) {
        expect(await peer.readResource(uri)).toMatchObject([
          { uri: scene.uri('test://item/7'), text: 'test://item/7, version 1' },
        ]);
      }
    },
  },
  {
    name: "an unknown resource is refused with the code of the client's era",
    async run(scene) {
      await using peer = await scene.connect();
      const code = scene.clients === 'legacy' ? -32002 : -32602;
      for (const uri of [scene.uri('test://nothing'), 'test://nothing', 'nowhere:at-all']) {
        expect(await refusalOf(peer, peer.readResource(uri))).toMatchObject({ code });
      }
    },
  },
  {
    name: 'a prompt gets its arguments',
    async run(scene) {
      await using peer = await scene.connect();
      expect(await peer.getPrompt('greet', { name: 'Grace' })).toBe('Greet Grace');
    },
  },
  {
    name: 'an argument is completed',
    async run(scene) {
      await using peer = await scene.connect();
      expect(await peer.complete('greet', { name: 'name', value: 'A' })).toEqual(['Ada', 'Alan']);
    },
  },
];
