import { it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { features } from './features.ts';
import type { Era } from './peer.ts';
import type { Scene } from './scene.ts';

export function runFeatures(clients: Era, open: () => Promise<Scene>, chosen = /(?:)/): void {
  let scene: Scene;
  setUp(async (use) => {
    scene = use(await open());
  });

  for (const { name, only = clients, run } of features) {
    if (only === clients && chosen.test(name)) it(name, () => run(scene));
  }
}
