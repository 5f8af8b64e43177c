import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Feature } from './feature.ts';

export const cancellationFeatures: Feature[] = [
  {
    name: 'a cancelled call is cancelled at the server',
    async run(scene) {
      await using peer = await scene.connect();
      const patience = new AbortController();
      const key = randomUUID();
      const call = peer.callTool('wait', { key }, { signal: patience.signal });
      // A call that fails at once never reaches the server.
      await Promise.race([scene.serverSees('waiting', key), call]);
      patience.abort('no longer needed');
      await expect(call).rejects.toThrow();
      await scene.serverSees('cancelled', key);
    },
  },
];
