import { expect } from 'vitest';
import { paramsOf } from '../messages.ts';
import type { Peer } from '../peer.ts';
import type { Feature } from './feature.ts';

const logged = (peer: Peer) => paramsOf(peer, 'notifications/message').map(({ data }) => data);
const hears = (peer: Peer, words: string) => peer.received.first(({ params }) => params?.data === words);

export const logFeatures: Feature[] = [
  {
    name: 'log messages arrive from the requested level up',
    async run(scene) {
      await using peer = await scene.connect();
      await peer.callTool('shout', { what: 'fire' }, { logLevel: 'error' });
      await hears(peer, 'error: fire');
      await peer.callTool('shout', { what: 'water' }, { logLevel: 'info' });
      await hears(peer, 'error: water');
      expect(logged(peer)).toEqual(['error: fire', 'info: water', 'error: water']);
    },
  },
  {
    name: 'log messages do not reach a client that requested none',
    only: 'modern',
    async run(scene) {
      await using peer = await scene.connect();
      await peer.callTool('shout', { what: 'unasked' });
      await peer.callTool('shout', { what: 'asked' }, { logLevel: 'error' });
      await hears(peer, 'error: asked');
      expect(logged(peer)).toEqual(['error: asked']);
    },
  },
];
