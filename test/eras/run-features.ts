import { afterAll, beforeAll, it } from 'vitest';
import { features } from './features.ts';
import type { Era } from './peer.ts';
import type { Scene } from './scene.ts';

/** A test for each feature, or for those whose names fit, all in one scene. */
export function runFeatures(clients: Era, open: () => Promise<Scene>, chosen = /(?:)/): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await open();
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  for (const { name, only = clients, run } of features) {
    if (only === clients && chosen.test(name)) it(name, () => run(scene));
  }
}
