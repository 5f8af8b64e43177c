import { describe } from 'vitest';
import { openBridgedScene } from './bridged-scene.ts';
import type { Era } from './peer.ts';
import { runFeatures } from './run-features.ts';

describe.each<Era>(['legacy', 'modern'])(
  'a modern client and a %s server, through switchboard stdio',
  (server) => {
    runFeatures('modern', () => openBridgedScene(server));
  },
);
